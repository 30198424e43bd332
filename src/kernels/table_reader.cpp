// Reads tangram.operator_times/1, JSON.
//
//   {
//     "schema": "tangram.operator_times/1",
//     "operator": "gemm",                     gemm, attention_decode, attention_prefill, experts,
//                                              chunk_products, stream
//     "dtype": "bf16",
//     "source": "...",
//     "interpolated": ["n", "k", "m"],        outermost first; none: samples for the roofline alone
//     "gpus": ["A100-80GB-SXM", "L40S"],      catalogue names
//     "inference": [                          what follows from the rows; `tangram kernels accuracy -o` writes it anew
//       { "gpu": "L40S", "floor_us": 2.36, "compute": 0.7, "memory": 0.79,
//         "errors": { "roofline": 0.22, "beyond": 0.1, "n": 0.1, "k": 0.08, "m": 0.08 } },
//       { "floor_us": 3.4, ... } ],           of any other GPU: the last, without a name
//     "rows": [ [1, 512, 512, 4.236, 2.65] ]  the shape, then microseconds by GPU; null: not measured
//   }
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tangram/base/at.hpp"
#include "tangram/io/schema.hpp"
#include "tangram/kernels/operator_table.hpp"

namespace tangram::kernels {
namespace {

constexpr io::NumberRange kFloor{0, 1e6, false, false, "kernels end within a second"};
constexpr io::NumberRange kReached{1e-3, 10, false, false, "a share of the datasheet's rate"};
constexpr io::NumberRange kRelative{0, 100, false, false, "a share of the time: 0.1 is 10 %"};
constexpr double kLargest = 1e15;
constexpr double kShortest = 1e-3;  // us: no kernel ends within a nanosecond
constexpr double kMicrosecond = 1e-6;

class TableReader {
 public:
  explicit TableReader(io::ObjectReader& reader) : reader_(reader) {}

  OperatorTable read() {
    const auto operators = operator_names();
    const auto op = reader_.choice_of("operator", {operators.begin(), operators.end()});
    table_.op = op ? static_cast<Operator>(*op) : Operator::kGemm;
    table_.dtype = reader_.choice<DType>("dtype", {{"bf16", DType::kBf16},
                                                   {"fp16", DType::kFp16},
                                                   {"fp32", DType::kFp32},
                                                   {"tf32", DType::kTf32},
                                                   {"fp8", DType::kFp8}});
    table_.source = reader_.string("source");
    read_axes();
    table_.gpus = reader_.strings_if("gpus");
    for (io::ObjectReader& item : reader_.objects_if("inference")) table_.inference.push_back(read_inference(item));
    check_inference();
    read_rows();
    reader_.finish();
    return std::move(table_);
  }

 private:
  [[nodiscard]] auto names() const { return shape_names(table_.op); }

  void read_axes() {
    for (const std::string& name : reader_.strings_if("interpolated")) {
      const auto found = std::ranges::find(names(), name);
      const int axis = static_cast<int>(found - names().begin());
      if (found == names().end() || std::ranges::find(table_.axes, axis) != table_.axes.end()) {
        reader_.error_at(
            "interpolated", "unknown-value",
            fmt::format("\"{}\" is no number of the shape of {}, or is there twice", name, to_string(table_.op)),
            fmt::format("the shape is {}", fmt::join(names(), ", ")));
      } else {
        table_.axes.push_back(axis);
      }
    }
  }

  Inference read_inference(io::ObjectReader& item) {
    Inference inference;
    inference.gpu = item.string_or("gpu", "");
    inference.roofline.floor = item.number("floor_us", kFloor) * kMicrosecond;
    inference.roofline.compute = item.number("compute", kReached);
    inference.roofline.memory = item.number("memory", kReached);
    if (auto errors = item.object("errors")) {
      inference.roofline_error = errors->number("roofline", kRelative);
      inference.beyond_error = errors->number_or("beyond", 0, kRelative);
      for (const int axis : table_.axes) {
        inference.axis_errors.push_back(errors->number_or(at(names(), axis), 0, kRelative));
      }
      errors->finish();
    }
    item.finish();
    return inference;
  }

  void check_inference() {
    if (table_.inference.empty()) return;
    bool fits = table_.inference.size() == table_.gpus.size() + 1 && table_.inference.back().gpu.empty();
    for (std::size_t gpu = 0; fits && gpu < table_.gpus.size(); ++gpu) {
      fits = table_.inference[gpu].gpu == table_.gpus[gpu];
    }
    if (fits) return;
    reader_.error_at("inference", "inconsistent-value",
                     "expected one entry for each of \"gpus\", in their order, then one without a name",
                     "leave \"inference\" out, and let `tangram kernels accuracy -o` write it");
  }

  void read_rows() {
    const io::Node* rows = reader_.raw("rows");
    if (rows == nullptr || rows->kind != io::NodeKind::kArray || rows->items.empty()) {
      reader_.error_at("rows", "wrong-type", "expected \"rows\", an array of rows");
      return;
    }
    for (const io::Node& row : rows->items) {
      if (!read_row(row)) {
        reader_.error_at(row, fmt::format("/rows/{}", &row - rows->items.data()), "wrong-type",
                         fmt::format("expected an integer above 0 for each of {}, then for each of \"gpus\" the "
                                     "microseconds, at least 0.001, or null",
                                     fmt::join(names(), ", ")));
      }
      if (reader_.sink().size() >= kMaxDiagnostics) return;
    }
    if (reader_.sink().empty()) sort_rows(*rows);
  }

  bool read_row(const io::Node& row) {
    if (row.kind != io::NodeKind::kArray || row.items.size() != names().size() + table_.gpus.size()) return false;
    std::vector<std::int64_t> shape;
    std::vector<double> seconds;
    for (const io::Node& value : row.items) {
      const bool of_shape = shape.size() < names().size();
      const bool none = value.kind == io::NodeKind::kNull;
      if (of_shape) {
        if (value.kind != io::NodeKind::kInteger || value.integer < 1 || value.number > kLargest) return false;
        shape.push_back(value.integer);
      } else if (none || (value.number >= kShortest && value.number < kLargest)) {
        seconds.push_back(none ? 0 : value.number * kMicrosecond);
      } else {
        return false;
      }
    }
    table_.shapes.add_row(shape);
    table_.seconds.add_row(seconds);
    return true;
  }

  void sort_rows(const io::Node& rows) {
    const std::vector<int> columns = table_.sorted_columns();
    const auto key_less = [&](int a, int b) {
      for (const int column : columns) {
        if (table_.shapes(a, column) != table_.shapes(b, column)) {
          return table_.shapes(a, column) < table_.shapes(b, column);
        }
      }
      return false;
    };
    std::vector<int> order(static_cast<std::size_t>(table_.row_count()));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, key_less);
    OperatorTable sorted = table_;
    for (int row = 0; row < table_.row_count(); ++row) {
      if (row > 0 && !table_.axes.empty() && !key_less(at(order, row - 1), at(order, row))) {
        reader_.error_at(at(rows.items, at(order, row)), fmt::format("/rows/{}", at(order, row)), "duplicate-row",
                         "a second row for this shape", "keep one of them");
      }
      std::ranges::copy(table_.shapes.row(at(order, row)), sorted.shapes.row(row).begin());
      std::ranges::copy(table_.seconds.row(at(order, row)), sorted.seconds.row(row).begin());
    }
    table_ = std::move(sorted);
  }

  io::ObjectReader& reader_;
  OperatorTable table_;
};

}  // namespace

Expected<OperatorTable> read_operator_table(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  if (!reader.valid() || !io::has_schema(reader, "tangram.operator_times/1")) return fail(std::move(mistakes));
  OperatorTable table = TableReader(reader).read();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return table;
}

}  // namespace tangram::kernels
