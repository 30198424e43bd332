// Reads tangram.kernel_times/1, JSON.
//
//   {
//     "schema": "tangram.kernel_times/1",
//     "source": "...", "about": "...",                   optional
//     "tables": [
//       { "kernel": "product", "gpu": "H100-80GB-SXM", "precision": "fp8",    bf16 where it is left out
//         "rows": [[1024, 4096, 4096, 52.1]] },          m, n, k, microseconds
//       { "kernel": "experts", "gpu": "...", "precision": "fp8", "fp8_recipe": "blockwise",    delayed: left out
//         "rows": [[16384, 2048, 768, 3, 128, 8, 32, 150.7]] },   tokens, values, inner values, matrices, experts,
//                                                               experts a token, ranks, microseconds
//       { "kernel": "stream", "gpu": "...", "rows": [[268435456, 126.2]] },   bytes, microseconds
//       { "kernel": "collective", "gpu": "...",
//         "gpus_per_node": 8, "network_gbit_s": 3200,    of a node; left out: all GPUs are in one node
//         "rows": [["all_gather", 8, 67108864, 208.1]] },     operation, GPUs, bytes, microseconds
//       { "kernel": "dispatch", "gpu": "...", "gpus_per_node": 72,
//         "expert_groups": 8, "groups_per_token": 4,     left out: a token's experts may be anywhere
//         "rows": [[64, 4096, 7168, 8, 675]] } ]         GPUs, tokens of each, values, experts a token, microseconds
//   }
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "tangram/calibrate/kernel_times.hpp"
#include "tangram/cluster/gpu_names.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/io/named_choice.hpp"
#include "tangram/io/schema.hpp"

namespace tangram::calibrate {
namespace {

constexpr double kMicroseconds = 1e-6;
constexpr double kGigabits = 1e9 / 8;
constexpr double kLargest = 1e15;
constexpr double kMostKernelGpus = 1 << 20;
constexpr Nanoseconds kNetworkLatency{5'000};  // a step between nodes of an InfiniBand network, as fleets have it

/// Of a kernel's rows, in the order of Kernel.
struct RowForm {
  std::string_view kernel;
  std::string_view columns;
  std::size_t count;
};
constexpr std::array kForms{RowForm{"product", "m, n, k, microseconds", 4}, RowForm{"stream", "bytes, microseconds", 2},
                            RowForm{"collective", "operation, GPUs, bytes, microseconds", 4},
                            RowForm{"dispatch", "GPUs, tokens, values, experts a token, microseconds", 5},
                            RowForm{"experts",
                                    "tokens, values, inner values, matrices, experts, experts a token, ranks, "
                                    "microseconds",
                                    8}};

const RowForm& form_of(Kernel kernel) { return kForms[static_cast<std::size_t>(kernel)]; }

constexpr std::array<std::pair<std::string_view, cost::Collective>, 4> kOperations{
    {{"all_reduce", cost::Collective::kAllReduce},
     {"all_gather", cost::Collective::kAllGather},
     {"reduce_scatter", cost::Collective::kReduceScatter},
     {"all_to_all", cost::Collective::kAllToAll}}};

std::optional<cost::Collective> operation_of(const io::Node& node) {
  if (node.kind != io::NodeKind::kString) return std::nullopt;
  const auto found = std::ranges::find(kOperations, node.text, [](const auto& entry) { return entry.first; });
  return found == kOperations.end() ? std::nullopt : std::optional(found->second);
}

bool is_count_of_gpus(double value) { return value >= 2 && value <= kMostKernelGpus; }

class KernelTableReader {
 public:
  KernelTableReader(io::ObjectReader& reader, std::span<const cluster::GpuType> gpus) : reader_(reader), gpus_(gpus) {}

  KernelTable read() {
    std::vector<std::string> names;
    for (const RowForm& form : kForms) names.emplace_back(form.kernel);
    const auto kernel = reader_.choice_of("kernel", names);
    table_.kernel = static_cast<Kernel>(kernel.value_or(0));
    read_gpu();
    if (has_products(table_)) read_precision();
    if (talks()) read_network();
    if (is(Kernel::kDispatch)) read_choice();
    if (kernel) read_rows();
    reader_.finish();
    return std::move(table_);
  }

 private:
  [[nodiscard]] bool is(Kernel kernel) const { return table_.kernel == kernel; }
  [[nodiscard]] bool talks() const { return is(Kernel::kCollective) || is(Kernel::kDispatch); }
  [[nodiscard]] const RowForm& form() const { return form_of(table_.kernel); }
  /// Of a row's columns that of the GPUs.
  [[nodiscard]] double gpus(const std::vector<double>& numbers) const {
    return numbers[is(Kernel::kCollective) ? 1 : 0];
  }

  void read_gpu() {
    const std::string name = reader_.string("gpu");
    if (name.empty()) return;
    if (const cluster::GpuType* gpu = cluster::device_of(name, gpus_)) {
      table_.gpu = *gpu;
      return;
    }
    reader_.error_at("gpu", "unknown-name", fmt::format("there is no GPU type \"{}\"", name),
                     cluster::suggested_gpu(name, gpus_, "`tangram gpus` lists those of the catalogue"));
  }

  void read_precision() {
    using model::Fp8Recipe;
    table_.precision = io::read_named(reader_, "precision", DType::kBf16, DType::kFp16, DType::kFp32, DType::kTf32,
                                      DType::kFp8, DType::kFp4);
    if (table_.precision == DType::kFp8) {
      table_.recipe = io::read_named(reader_, "fp8_recipe", Fp8Recipe::kDelayed, Fp8Recipe::kTensorwise,
                                     Fp8Recipe::kBlockwise, Fp8Recipe::kMxfp8);
    }
    if (!reader_.sink().empty() || table_.gpu.peak_of(table_.precision).value() > 0) return;
    reader_.error_at("precision", "impossible", fmt::format("{} has no such products", table_.gpu.name));
  }

  void read_network() {
    table_.gpus_per_node = static_cast<int>(reader_.integer_or("gpus_per_node", 0, {1, 1024}));
    const double rate = reader_.number_or("network_gbit_s", 0, io::number_limit("bandwidth_gbit_s"));
    table_.network = {BytesPerSecond(rate * kGigabits), kNetworkLatency};
  }

  void read_choice() {
    choice_.groups = static_cast<int>(reader_.integer_or("expert_groups", 1, io::integer_limit("expert_groups")));
    choice_.chosen_groups =
        static_cast<int>(reader_.integer_or("groups_per_token", choice_.groups, io::integer_limit("groups_per_token")));
    if (choice_.chosen_groups <= choice_.groups) return;
    reader_.error_at("groups_per_token", "inconsistent-value",
                     fmt::format("a token's experts are in {} groups, but there are only {}", choice_.chosen_groups,
                                 choice_.groups));
  }

  void read_rows() {
    const io::Node* rows = reader_.raw("rows");
    if (rows == nullptr || rows->kind != io::NodeKind::kArray || rows->items.empty()) {
      reader_.error_at("rows", "wrong-type", "expected \"rows\", an array of rows");
      return;
    }
    for (const io::Node& row : rows->items) {
      read_row(row, fmt::format("{}/rows/{}", reader_.pointer(), &row - rows->items.data()));
      if (reader_.sink().size() >= kMaxDiagnostics) return;
    }
  }

  void read_row(const io::Node& row, std::string pointer) {
    const auto numbers = numbers_of(row);
    const auto operation = is(Kernel::kCollective) && numbers ? operation_of(row.items.front()) : std::nullopt;
    const bool counts = !talks() || (numbers && is_count_of_gpus(gpus(*numbers)));
    if (!numbers || !counts || (is(Kernel::kCollective) && !operation)) {
      reader_.error_at(
          row, std::move(pointer), "wrong-type",
          fmt::format("expected {}: [{}], numbers above 0", form().kernel, form().columns),
          talks() ? "two GPUs at least; operations are all_reduce, all_gather, reduce_scatter, all_to_all" : "");
      return;
    }
    if (const std::string reason = is(Kernel::kExperts) ? uneven(*numbers) : ""; !reason.empty()) {
      reader_.error_at(row, std::move(pointer), "impossible", reason, fmt::format("columns: {}", form().columns));
      return;
    }
    if (const std::string reason = unreachable(*numbers); !reason.empty()) {
      reader_.error_at(row, std::move(pointer), "impossible", reason,
                       "give \"gpus_per_node\" and \"network_gbit_s\" of a node");
      return;
    }
    table_.rows.push_back({call_of(*numbers, operation), numbers->back() * kMicroseconds});
  }

  /// All columns, the operation as 1; nothing where one is no number above 0.
  [[nodiscard]] std::optional<std::vector<double>> numbers_of(const io::Node& row) const {
    if (row.kind != io::NodeKind::kArray || row.items.size() != form().count) return std::nullopt;
    std::vector<double> numbers;
    for (const io::Node& item : row.items) {
      const bool is_word = numbers.empty() && is(Kernel::kCollective);
      const double value = is_word ? 1 : item.number;
      const bool is_number = item.kind == io::NodeKind::kInteger || item.kind == io::NodeKind::kNumber;
      if (!is_word && (!is_number || !(value > 0) || value > kLargest)) return std::nullopt;
      numbers.push_back(value);
    }
    return numbers;
  }

  /// Why no layer has such experts; empty: one may.
  [[nodiscard]] static std::string uneven(const std::vector<double>& n) {
    const auto [matrices, experts, chosen, ranks] = std::tuple(n[3], n[4], n[5], n[6]);
    if (matrices != 2 && matrices != 3) return fmt::format("an expert has 2 matrices or 3, not {}", matrices);
    if (chosen > experts) return fmt::format("a token cannot choose {} of {} experts", chosen, experts);
    if (std::fmod(experts, ranks) != 0) return fmt::format("{} experts do not divide among {} ranks", experts, ranks);
    return "";
  }

  /// Why so many GPUs do not reach each other; empty: they do.
  [[nodiscard]] std::string unreachable(const std::vector<double>& numbers) const {
    if (!talks()) return "";
    const auto count = static_cast<std::int64_t>(gpus(numbers));
    const int each = table_.gpus_per_node;
    if (each == 0 || count <= each) return "";
    if (count % each != 0) return fmt::format("{} GPUs do not divide into nodes of {}", count, each);
    return table_.network.bandwidth.value() > 0 ? "" : fmt::format("{} GPUs need a network between nodes", count);
  }

  [[nodiscard]] KernelCall call_of(const std::vector<double>& n, std::optional<cost::Collective> operation) const {
    if (operation) return CollectiveCall{*operation, static_cast<int>(n[1]), n[2]};
    if (is(Kernel::kProduct)) return ProductCall{n[0], n[1], n[2]};
    if (is(Kernel::kStream)) return StreamCall{n[0]};
    if (is(Kernel::kExperts)) return ExpertsCall{n[0], n[1], n[2], static_cast<int>(n[3]), n[4], n[5], n[6]};
    return DispatchCall{static_cast<int>(n[0]), n[1], n[2], {n[3], choice_.groups, choice_.chosen_groups}};
  }

  io::ObjectReader& reader_;
  std::span<const cluster::GpuType> gpus_;
  cost::TokenChoice choice_;  ///< of all rows, but for how many experts
  KernelTable table_;
};

}  // namespace

std::string_view to_string(Kernel kernel) { return form_of(kernel).kernel; }

Expected<std::vector<KernelTable>> read_kernel_times(std::string text, std::string file,
                                                     std::span<const cluster::GpuType> gpus) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return fail(std::move(document.error()));
  Diagnostics mistakes;
  io::ObjectReader reader(*document, document->root, "", mistakes);
  if (!reader.valid() || !io::has_schema(reader, "tangram.kernel_times/1")) return fail(std::move(mistakes));
  reader.ignore("source");
  reader.ignore("about");
  std::vector<KernelTable> tables;
  for (io::ObjectReader& item : reader.objects("tables")) tables.push_back(KernelTableReader(item, gpus).read());
  reader.finish();
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return tables;
}

}  // namespace tangram::calibrate
