#include "nsight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "csv.hpp"
#include "place.hpp"
#include "recorded_graph.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

constexpr std::string_view kNsysName = "Name";
constexpr std::string_view kNcuName = "Kernel Name";
constexpr std::string_view kDuration = "gpu__time_duration.sum";

struct TimedRow {
  double start = 0;
  double microseconds = 0;
  std::string name;
  int stream = 0;
  std::optional<Launch> launch;
};

int whole(std::optional<double> number, int fallback) {
  return number && *number >= 0 && *number <= 2e9 ? static_cast<int>(*number) : fallback;
}

Recording graph_of(std::vector<TimedRow> rows, std::string gpu) {
  Recording recording;
  KernelGraph& graph = recording.graph;
  graph.gpus = {std::move(gpu)};
  for (TimedRow& row : rows) {
    Kernel kernel;
    kernel.order = graph.kernel_count();
    kernel.id = fmt::format("k{}", kernel.order);
    kernel.position = position_by_order(kernel.order);
    kernel.op = row.name.empty() ? "unknown" : row.name;
    kernel.stream = row.stream;
    kernel.launch = row.launch;
    kernel.times = {measured(row.microseconds)};
    identify(row.name, kernel);
    if (!row.name.empty()) kernel.names = {std::move(row.name)};
    graph.kernels.push_back(std::move(kernel));
  }
  graph.phases.push_back({"step", 0, 0, 0, 0, graph.kernel_count(), {}});
  recording.notes.push_back("the table tells times alone: align it with a graph whose accesses are known (--onto)");
  return recording;
}

/// Reads fields of one table; the first mistake ends it.
class NsightTable {
 public:
  explicit NsightTable(CsvTable table) : table_(std::move(table)) {}

  [[nodiscard]] const CsvTable& csv() const { return table_; }

  [[nodiscard]] std::string text(const CsvRow& row, std::optional<std::size_t> column) const {
    return column ? at(row.fields, *column) : std::string();
  }

  [[nodiscard]] std::optional<double> number(const CsvRow& row, std::optional<std::size_t> column) const {
    return column ? csv_number(at(row.fields, *column)) : std::nullopt;
  }

  [[nodiscard]] Diagnostic wrong(const CsvRow& row, std::string_view what) const {
    return mistake_at(table_.file(), row.line, 1, "wrong-type", fmt::format("expected {}", what));
  }

  [[nodiscard]] Diagnostic no_column(std::string_view name, std::string hint) const {
    return mistake_at(table_.file(), table_.header_line(), 1, "missing-column",
                      fmt::format("the table has no column \"{}\"", name), std::move(hint));
  }

  /// "(16, 1, 1)"
  static std::optional<std::array<std::int64_t, 3>> extent(const std::string& text) {
    std::array<std::int64_t, 3> extent{1, 1, 1};
    std::size_t place = 0;
    std::string digits;
    for (const char c : text + ")") {
      if (c >= '0' && c <= '9') {
        digits += c;
      } else if (!digits.empty()) {
        const auto value = digits.size() < 11 ? csv_number(digits) : std::nullopt;
        if (!value || *value < 1 || place >= extent.size()) return std::nullopt;
        extent[place++] = static_cast<std::int64_t>(*value);
        digits.clear();
      }
    }
    return place > 0 ? std::optional(extent) : std::nullopt;
  }

 private:
  CsvTable table_;
};

Diagnostic no_rows(const RecordingFile& file) {
  return mistake_at(file.name, 1, 1, "no-kernels", "the table has no kernels");
}

/// The unit in "Duration (ns)".
std::optional<double> unit_of_header(std::string_view column) {
  const std::size_t open = column.find('(');
  const std::size_t close = column.find(')');
  if (open == column.npos || close == column.npos || close < open) return std::nullopt;
  return microseconds_in(column.substr(open + 1, close - open - 1));
}

std::optional<Launch> nsys_launch(const NsightTable& table, const CsvRow& row) {
  Launch launch;
  constexpr std::array<std::string_view, 3> kGrid{"GrdX", "GrdY", "GrdZ"};
  constexpr std::array<std::string_view, 3> kBlock{"BlkX", "BlkY", "BlkZ"};
  for (std::size_t i = 0; i < 3; ++i) {
    const int grid = whole(table.number(row, table.csv().column(kGrid[i])), 0);
    const int block = whole(table.number(row, table.csv().column(kBlock[i])), 0);
    if (grid < 1 || block < 1) return std::nullopt;
    launch.grid[i] = grid;
    launch.block[i] = block;
  }
  return launch;
}

// ncu

TimedRow ncu_row(const NsightTable& table, const CsvRow& row, double microseconds) {
  const CsvTable& csv = table.csv();
  TimedRow timed;
  timed.microseconds = microseconds;
  timed.name = symbol(table.text(row, csv.column(kNcuName)));
  timed.stream = whole(table.number(row, csv.column("Stream")), 0);
  const auto grid = NsightTable::extent(table.text(row, csv.column("Grid Size")));
  const auto block = NsightTable::extent(table.text(row, csv.column("Block Size")));
  if (grid && block) timed.launch = Launch{*grid, *block, Bytes(0)};
  return timed;
}

/// One row a kernel: metrics are columns, and the row below the header has their units.
Expected<std::vector<TimedRow>> wide_rows(const NsightTable& table, std::size_t duration) {
  const CsvTable& csv = table.csv();
  std::vector<TimedRow> rows;
  double unit = 0;
  for (const CsvRow& row : csv.rows()) {
    if (unit == 0) {
      const auto in_microseconds = microseconds_in(at(row.fields, duration));
      if (!in_microseconds) {
        return fail(table.wrong(row, fmt::format("units in this row, of {} one of ns, us, ms, s", kDuration)));
      }
      unit = *in_microseconds;
      continue;
    }
    const auto value = table.number(row, duration);
    if (!value || *value <= 0) return fail(table.wrong(row, fmt::format("a time in \"{}\"", kDuration)));
    rows.push_back(ncu_row(table, row, *value * unit));
  }
  return rows;
}

/// One row a metric; the rows of a kernel share its number.
Expected<std::vector<TimedRow>> long_rows(const NsightTable& table) {
  const CsvTable& csv = table.csv();
  const auto metric = csv.column("Metric Name");
  const auto value_column = csv.column("Metric Value");
  if (!metric || !value_column) {
    return fail(table.no_column(kDuration, "ncu --csv --metrics gpu__time_duration.sum writes one"));
  }
  std::map<double, TimedRow> by_id;
  for (const CsvRow& row : csv.rows()) {
    const std::string name = table.text(row, metric);
    if (name != kDuration && name != "Duration") continue;
    const auto id = table.number(row, csv.column("ID"));
    const auto value = table.number(row, value_column);
    const auto unit = microseconds_in(table.text(row, csv.column("Metric Unit")));
    if (!id || !value || *value <= 0 || !unit) return fail(table.wrong(row, "a number, a time and its unit"));
    by_id.insert_or_assign(*id, ncu_row(table, row, *value * *unit));
  }
  std::vector<TimedRow> rows;
  for (auto& [id, row] : by_id) rows.push_back(std::move(row));
  return rows;
}

}  // namespace

Expected<Recording> read_nsys(const RecordingFile& file) {
  auto csv = CsvTable::read(file.text, file.name, kNsysName);
  if (!csv) return fail(std::move(csv.error()));
  const NsightTable table(std::move(*csv));
  const auto start = table.csv().column_beginning("Start");
  const auto duration = table.csv().column_beginning("Duration");
  if (!start || !duration) {
    return fail(table.no_column("Duration", "nsys stats --report cuda_gpu_trace --format csv writes it"));
  }
  const double start_unit = unit_of_header(at(table.csv().columns(), *start)).value_or(1e-3);
  const double unit = unit_of_header(at(table.csv().columns(), *duration)).value_or(1e-3);
  std::vector<TimedRow> rows;
  std::string gpu;
  for (const CsvRow& row : table.csv().rows()) {
    const auto begin = table.number(row, start);
    const auto time = table.number(row, duration);
    if (!begin || !time || *begin < 0 || *time < 0)
      return fail(table.wrong(row, "times in \"Start\" and \"Duration\""));
    TimedRow timed;
    timed.start = *begin * start_unit;
    timed.microseconds = *time * unit;
    timed.name = symbol(table.text(row, table.csv().column(kNsysName)));
    timed.stream = whole(table.number(row, table.csv().column("Strm")), 0);
    timed.launch = nsys_launch(table, row);
    if (gpu.empty()) gpu = table.text(row, table.csv().column("Device"));
    rows.push_back(std::move(timed));
  }
  if (rows.empty()) return fail(no_rows(file));
  std::ranges::stable_sort(rows, {}, &TimedRow::start);
  gpu = symbol(gpu.substr(0, gpu.find(" (")));  // "NVIDIA L40S (0)"
  return graph_of(std::move(rows), std::move(gpu));
}

Expected<Recording> read_ncu(const RecordingFile& file) {
  auto csv = CsvTable::read(file.text, file.name, kNcuName);
  if (!csv) return fail(std::move(csv.error()));
  const NsightTable table(std::move(*csv));
  const auto duration = table.csv().column(kDuration);
  auto rows = duration ? wide_rows(table, *duration) : long_rows(table);
  if (!rows) return fail(std::move(rows.error()));
  if (rows->empty()) return fail(no_rows(file));
  return graph_of(std::move(*rows), "");
}

}  // namespace tangram::kernels
