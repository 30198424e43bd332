#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "infer.hpp"
#include "number_scanner.hpp"
#include "tangram/accuracy/measurement.hpp"
#include "tangram/base/enum_names.hpp"
#include "tangram/io/document.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/model/adapters.hpp"

namespace tangram::accuracy {
namespace {

using io::Node;
using io::NodeKind;

constexpr double kGiga = 1e9;
constexpr double kGibi = 1024.0 * 1024.0 * 1024.0;
constexpr double kMebi = 1024.0 * 1024.0;

bool is_number(const Node& node) { return node.kind == NodeKind::kInteger || node.kind == NodeKind::kNumber; }

constexpr std::int64_t kLargestInteger = 1'000'000'000;  // products of two stay far inside 64 bits
constexpr std::int64_t kLargestCount = 1'000'000;

/// One object of a dataset: typed access that passes over what nobody asks for. A getter that reports a mistake returns
/// nothing, so that all mistakes of a file are found at once.
class Row {
 public:
  Row(const io::Document& document, const Node& node, Diagnostics& sink)
      : document_(document), node_(node), sink_(sink) {}

  /// Absent and null are the same.
  const Node* find(std::string_view key) const {
    const Node* value = node_.find(key);
    return value == nullptr || value->kind == NodeKind::kNull ? nullptr : value;
  }

  std::optional<double> number(std::string_view key) const {
    const Node* value = find(key);
    if (value == nullptr) return std::nullopt;
    constexpr io::NumberRange kRange = io::number_limit("measured");
    if (is_number(*value) && !kRange.is_low(value->number) && value->number <= kRange.max) return value->number;
    wrong(key, *value, fmt::format("0, or a number from {:g} to {:g}", kRange.min, kRange.max));
    return std::nullopt;
  }

  std::optional<std::int64_t> integer(std::string_view key) const {
    const Node* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (is_whole(*value, kLargestInteger)) return static_cast<std::int64_t>(value->number);
    wrong(key, *value, "a whole number up to 1,000,000,000");
    return std::nullopt;
  }

  std::optional<int> count(std::string_view key) const {
    const Node* value = find(key);
    return value == nullptr ? std::nullopt : count_of(key, *value);
  }

  std::optional<bool> boolean(std::string_view key) const {
    const Node* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->kind != NodeKind::kBoolean) {
      wrong(key, *value, "true or false");
      return std::nullopt;
    }
    return value->boolean;
  }

  std::string text(std::string_view key) const {
    const Node* value = find(key);
    if (value == nullptr) return {};
    if (value->kind != NodeKind::kString) {
      wrong(key, *value, "a string");
      return {};
    }
    return value->text;
  }

  /// An array; empty when absent.
  std::vector<const Node*> items(std::string_view key) const {
    const Node* value = find(key);
    return value == nullptr ? std::vector<const Node*>() : items_of(key, *value);
  }

  std::vector<const Node*> items_of(std::string_view key, const Node& list) const {
    std::vector<const Node*> result;
    result.reserve(list.items.size());
    if (list.kind != NodeKind::kArray) wrong(key, list, "an array");
    for (const Node& item : list.items) result.push_back(&item);
    return result;
  }

  /// The objects of an array.
  std::vector<Row> rows_of(std::string_view key, const Node& list) const {
    std::vector<Row> result;
    for (const Node* item : items_of(key, list)) {
      if (item->kind == NodeKind::kObject) {
        result.push_back(row(*item));
      } else {
        wrong(key, *item, "an array of objects");
      }
    }
    return result;
  }

  std::vector<int> counts(std::string_view key) const {
    const Node* value = find(key);
    return value == nullptr ? std::vector<int>() : counts_of(key, *value);
  }

  /// A string, or an array of strings; empty when absent.
  std::vector<std::string> words(std::string_view key) const {
    const Node* value = find(key);
    if (value == nullptr) return {};
    if (value->kind == NodeKind::kString) return {value->text};
    std::vector<std::string> result;
    for (const Node* item : items_of(key, *value)) {
      if (item->kind == NodeKind::kString) {
        result.push_back(item->text);
      } else {
        wrong(key, *item, "a string, or an array of strings");
      }
    }
    return result;
  }

  /// The object under a key, where there is one.
  std::optional<Row> object(std::string_view key) const {
    const Node* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->kind == NodeKind::kObject) return row(*value);
    wrong(key, *value, "an object");
    return std::nullopt;
  }

  std::vector<std::vector<int>> nested_counts(std::string_view key) const {
    std::vector<std::vector<int>> all;
    for (const Node* item : items(key)) all.push_back(counts_of(key, *item));
    return all;
  }

  Row row(const Node& node) const { return {document_, node, sink_}; }
  const Node& node() const { return node_; }

  void wrong(std::string_view key, const Node& at, std::string_view wanted) const {
    Diagnostic diagnostic;
    diagnostic.code = "wrong-type";
    diagnostic.where = {document_.file, at.line, at.column};
    diagnostic.message = fmt::format("\"{}\" must be {}", key, wanted);
    diagnostic.source_line = document_.line_text(at.line);
    diagnostic.length = at.length;
    sink_.push_back(std::move(diagnostic));
  }

 private:
  static bool is_whole(const Node& value, std::int64_t largest) {
    return is_number(value) && value.number >= 0 && value.number <= static_cast<double>(largest) &&
           value.number == std::floor(value.number);
  }

  std::optional<int> count_of(std::string_view key, const Node& value) const {
    if (is_whole(value, kLargestCount)) return static_cast<int>(value.number);
    wrong(key, value, "a whole number up to 1,000,000");
    return std::nullopt;
  }

  std::vector<int> counts_of(std::string_view key, const Node& list) const {
    std::vector<int> result;
    for (const Node* item : items_of(key, list)) result.push_back(count_of(key, *item).value_or(0));
    return result;
  }

  const io::Document& document_;
  const Node& node_;
  Diagnostics& sink_;
};

/// Groups, or a flat row's number of GPUs, all in one node, with their type under "gpu".
std::vector<GpuGroup> read_gpus(const Row& row) {
  std::vector<GpuGroup> groups;
  const Node* value = row.find("gpus");
  if (value == nullptr) return groups;
  if (is_number(*value)) {
    const int count = row.count("gpus").value_or(0);
    groups.push_back({row.text("gpu"), count, count});
    return groups;
  }
  if (value->kind != NodeKind::kArray) {
    row.wrong("gpus", *value, "a number, or an array of objects");
    return groups;
  }
  for (const Row& group : row.rows_of("gpus", *value)) {
    groups.push_back({group.text("type"), group.count("count").value_or(0), group.count("per_node").value_or(0)});
  }
  return groups;
}

/// "314" is printed to a billion, "31.6" to a tenth of one.
double last_digit(double billions) { return billions == std::floor(billions) ? kGiga : kGiga / 10; }

PrintedDims read_dims(const Row& row) {
  PrintedDims dims;
  dims.hidden = row.integer("hidden").value_or(0);
  dims.layers = row.count("layers").value_or(0);
  dims.experts = row.count("experts").value_or(0);
  dims.experts_per_token = row.count("top_k").value_or(0);
  dims.expert_ffn = row.integer("expert_ffn").value_or(0);
  dims.shared_experts = row.count("shared_experts").value_or(0);
  dims.shared_expert_ffn = row.integer("shared_expert_ffn").value_or(0);
  dims.dense_layers = row.count("dense_layers").value_or(0);
  dims.dense_ffn = row.integer("dense_ffn").value_or(0);
  dims.heads = row.count("heads").value_or(0);
  dims.kv_heads = row.count("kv_heads").value_or(0);
  dims.head_dim = row.count("head_dim").value_or(0);
  dims.vocabulary = row.integer("vocab").value_or(0);
  dims.prediction_layers = row.count("mtp_layers").value_or(0);
  const double billions = row.number("params_b").value_or(0);
  dims.parameters = billions * kGiga;
  dims.parameters_unit = last_digit(billions);
  dims.gated = row.boolean("gated");
  dims.biased = row.boolean("bias");
  dims.attention = row.text("attention");
  dims.pattern = row.text("pattern");
  return dims;
}

ModelFacts read_model_facts(const Row& row) {
  ModelFacts facts;
  facts.name = row.text("name");
  facts.hidden = row.integer("hidden").value_or(0);
  facts.ffn = row.integer("ffn").value_or(0);
  facts.vocabulary = row.integer("vocab").value_or(0);
  facts.layers = row.count("layers").value_or(0);
  facts.heads = row.count("heads").value_or(0);
  facts.kv_heads = row.count("kv_heads").value_or(0);
  facts.parameters = row.number("params_b").value_or(0) * kGiga;
  facts.gated = row.boolean("gated");
  if (const auto dims = row.object("dims")) facts.dims = read_dims(*dims);
  return facts;
}

/// A number; plans that are not uniform print one for each stage, which their replicas say as well.
std::optional<int> read_data_parallelism(const Row& row) {
  const Node* value = row.find("dp");
  if (value == nullptr || value->kind == NodeKind::kArray) return std::nullopt;
  return row.count("dp");
}

std::optional<int> read_zero_stage(const Row& row) {
  const auto stage = row.count("zero");
  if (!stage || *stage <= 3) return stage;
  row.wrong("zero", *row.find("zero"), "a ZeRO stage, 0 to 3");
  return std::nullopt;
}

void read_batch(const Row& row, Measurement& out) {
  out.sequence = row.integer("seq");
  out.global_batch = row.integer("gbs");
  out.microbatch = row.count("mbs");
  // The batch of one rank: the schedule of a pipeline cuts it into single samples.
  out.local_batch = row.integer("mbs_local");
  if (!out.microbatch && out.local_batch) out.microbatch = out.pp.value_or(1) > 1 ? 1 : *out.local_batch;
  out.accumulation = row.count("grad_accum");
}

/// One of these words; "": it is not there, or another.
std::string read_word(const Row& row, const char* key, std::initializer_list<std::string_view> known,
                      const char* expected) {
  std::string word = row.text(key);
  if (word.empty() || std::ranges::find(known, word) != known.end()) return word;
  row.wrong(key, *row.find(key), expected);
  return {};
}

constexpr std::string_view kHeadsAroundRing = "a2a+p2p";

/// Ulysses' ranks are those of context parallelism that exchange positions for heads.
void read_context_exchange(const Row& row, Measurement& out) {
  out.context_exchange = read_word(row, "cp_comm_type", {"p2p", "all_gather", "a2a", kHeadsAroundRing},
                                   "\"p2p\", \"all_gather\", \"a2a\" or \"a2a+p2p\"");
  const int ranks = row.count("ulysses").value_or(1);
  if (ranks <= 1) return;
  const int around = std::max(1, out.cp.value_or(1));
  out.context_exchange = around > 1 ? kHeadsAroundRing : "a2a";
  out.cp = ranks * around;
}

void read_degrees(const Row& row, Measurement& out) {
  out.tp = row.count("tp");
  out.pp = row.count("pp");
  out.cp = row.count("cp");
  out.ep = row.count("ep");
  out.expert_tp = row.count("etp");
  read_context_exchange(row, out);
  out.dp = read_data_parallelism(row);
  out.model_parallel = row.count("model_parallel");
  out.microbatch_group = row.count("microbatch_group").value_or(0);
  out.virtual_stages = std::max(1, row.count("vpp").value_or(1));
  out.zero = read_zero_stage(row);
  if (const int ranks = row.count("fsdp").value_or(0); ranks > 0) out.sharding_group = ranks;
  out.gather_barrier = row.number("gather_barrier_bytes").value_or(0);
  out.no_sync = row.boolean("no_sync").value_or(false);
}

/// The name of one of two sets, or a list of operators.
std::optional<model::EagerOperators> read_eager_operators(const Row& row) {
  constexpr std::string_view kKey = "eager_operators";
  const Node* written = row.find(kKey);
  if (written == nullptr) return std::nullopt;
  const std::vector<std::string> words = row.words(kKey);
  for (const auto& [name, operators] : model::kNamedEagerOperators) {
    if (words.size() == 1 && words.front() == name) return operators;
  }
  const model::EagerOperators operators = members_called(model::kEagerOperatorNames, words);
  if (names_in(model::kEagerOperatorNames, operators).size() != words.size()) {
    row.wrong(kKey, *written, "none, all, or a list of norms, rotary, gates and adapters");
  }
  return operators;
}

KernelFacts read_kernels(const Row& row) {
  return {row.boolean("dropout"), row.boolean("fused_kernels"), row.boolean("fused_loss"),
          row.boolean("fused_gradient_accumulation"), read_eager_operators(row)};
}

Placement read_placement(const Row& row) {
  const std::string name = row.text("placement");
  for (const Placement placement : {Placement::kHomogeneous, Placement::kColocated, Placement::kDisjoint}) {
    if (name == to_string(placement)) return placement;
  }
  const Node* written = row.find("placement");
  row.wrong("placement", written != nullptr ? *written : row.node(), "homogeneous, colocated or disjoint");
  return Placement::kHomogeneous;
}

EncoderFacts read_encoder(const Row& row) {
  EncoderFacts facts;
  facts.placement = read_placement(row);
  facts.hidden = row.integer("hidden").value_or(0);
  facts.ffn = row.integer("ffn").value_or(0);
  facts.layers = row.count("layers").value_or(0);
  facts.heads = row.count("heads").value_or(0);
  facts.tokens_in = row.integer("tokens_in").value_or(0);
  facts.tokens_out = row.integer("tokens_out").value_or(0);
  facts.items = row.count("items_per_sample").value_or(1);
  facts.tp = row.count("tp");
  facts.dp = row.count("dp");
  facts.sequence_parallel = row.boolean("sp");
  facts.recompute = row.text("recompute");
  facts.recompute_layers = std::max(1, row.count("recompute_num_layers").value_or(1));
  facts.offloaded = row.boolean("offload").value_or(false);
  facts.kernels = read_kernels(row);
  return facts;
}

void read_wide_layers(const Row& row, Measurement& out) {
  const auto layers = row.object("wide_layers");
  if (!layers) return;
  out.wide_first = static_cast<int>(layers->integer("first").value_or(0));
  out.wide_last = static_cast<int>(layers->integer("last").value_or(0));
}

AdapterFacts read_adapters(const Row& row) {
  AdapterFacts facts;
  const auto lora = row.object("lora");
  if (!lora) return facts;
  facts.rank = lora->integer("r").value_or(0);
  facts.targets = lora->words("target_modules");
  for (const std::string& target : facts.targets) {
    if (model::target_called(target)) continue;
    lora->wrong("target_modules", *lora->find("target_modules"), "names of matrices that PEFT has, like \"q_proj\"");
  }
  return facts;
}

model::Packing read_packing(const Row& row) {
  model::Packing packing;
  const auto printed = row.object("packing");
  if (!printed) return packing;
  const Node* written = printed->find("mean_length");
  const std::optional<double> mean = printed->number("mean_length");
  packing.mean = mean.value_or(0);
  packing.p95 = printed->number("p95_length").value_or(0);
  if (written == nullptr || mean.value_or(1) < 1) {
    printed->wrong("mean_length", written != nullptr ? *written : printed->node(), "1 token or more");
  } else if (packing.p95 > 0 && packing.p95 < packing.mean) {
    printed->wrong("p95_length", *printed->find("p95_length"), "no less than \"mean_length\"");
  }
  return packing;
}

GraphFacts read_graphs(const Row& row) {
  const auto graphs = row.object("cuda_graph");
  return graphs ? GraphFacts{graphs->text("impl"), graphs->words("scope")} : GraphFacts{};
}

ExpertFacts read_routing(const Row& row) {
  ExpertFacts facts;
  facts.dispatcher = row.text("dispatcher");
  if (const auto experts = row.object("moe")) facts.balance = experts->text("balance");
  return facts;
}

void read_options(const Row& row, Measurement& out) {
  out.sequence_parallel = row.boolean("sp");
  out.flash_attention = row.boolean("flash_attention");
  out.narrow_gates = row.boolean("activation_func_fp8_input_store").value_or(false);
  out.attention_kernel = read_word(row, "attention_kernel", {"flash-2", "native"}, "\"flash-2\" or \"native\"");
  out.offloads_activations = row.boolean("act_offload").value_or(false);
  out.offload_modules = row.words("offload_modules");
  out.offloaded_layers = row.count("act_offload_layers").value_or(0);
  out.recompute = row.text("recompute");
  out.recompute_modules = row.words("recompute_modules");
  out.precision = row.text("precision");
  out.gradient_dtype = row.text("gradient_dtype");
  if (out.gradient_dtype.empty()) out.gradient_dtype = row.text("grad_reduce");
  out.moment_dtype = read_word(row, "optimizer_moments", {"fp32", "bf16", "fp8"}, "\"fp32\", \"bf16\" or \"fp8\"");
  out.state_bytes = row.count("optimizer_state_bytes").value_or(0);
  read_wide_layers(row, out);
  if (row.find("overlap") != nullptr) out.overlap = row.words("overlap");
  out.variant = row.text("variant");
  out.framework = row.text("framework");
  out.source = fmt::format("{} {} {}", row.text("source"), row.text("seen"), row.text("recipe"));
  out.task = row.text("task");
  out.adapters = read_adapters(row);
  out.packing = read_packing(row);
  out.graphs = read_graphs(row);
  out.routing = read_routing(row);
  out.launch_blocking = row.boolean("launch_blocking").value_or(false);
  out.kernels = read_kernels(row);
  if (const auto encoder = row.object("encoder")) out.encoder = read_encoder(*encoder);
}

void read_uneven_plan(const Row& row, Measurement& out) {
  out.layers_per_stage = row.counts("layers_per_stage");
  out.recomputed_layers = row.counts("recompute_layer_ids");
  out.partition = row.counts("partition_30_units");
  for (const Node* stage : row.items("stage_replicas")) {
    auto& replicas = out.stage_replicas.emplace_back();
    for (const Row& replica : row.rows_of("stage_replicas", *stage)) {
      replicas.push_back({replica.text("gpu"), replica.count("tp").value_or(1)});
    }
  }
  out.stage_gpus = row.counts("stage_gpus");
  out.stage_tp = row.nested_counts("stage_tp");
  out.stage_operators = row.counts("stage_num_ops");
  out.stage_recomputed_operators = row.counts("stage_recomputed_ops");
}

/// Samples of an iteration, where only those of a rank are printed.
void infer_global_batch(Measurement& out) {
  if (out.global_batch || !out.microbatch || !out.dp) return;
  const std::int64_t local = out.local_batch.value_or(*out.microbatch * out.accumulation.value_or(1));
  const std::int64_t all = local * *out.dp;
  if (all <= kLargestInteger) out.global_batch = all;
}

/// FLOPs of an iteration as papers of Megatron-LM count them (Narayanan et al., arXiv 2104.04473, equation 3), a full
/// recompute included; 0 where a dimension is not printed, and with an encoder, which that count knows nothing of.
double published_flops(const Measurement& m) {
  if (m.encoder || !m.global_batch || !m.sequence || m.model.layers == 0 || m.model.hidden == 0) return 0;
  const double s = static_cast<double>(*m.sequence);
  const double h = static_cast<double>(m.model.hidden);
  const double l = m.model.layers;
  const double vocabulary = static_cast<double>(m.model.vocabulary);
  const double passes = m.recompute == "full" ? 4 : 3;
  return 24 * passes * static_cast<double>(*m.global_batch) * s * l * h * h *
         (1 + s / (6 * h) + vocabulary / (16 * l * h));
}

/// Published seconds; else tokens of an iteration over a published rate. Else derived from FLOP/s, whose conventions
/// differ: what the dataset worked out, or the source's own count of an iteration, or that of published_flops.
void read_iteration(const Row& row, Measurement& out) {
  out.iteration_s = row.number("iter_time_s").value_or(row.number("iter_time_ms").value_or(0) / 1e3);
  if (out.iteration_s > 0) return;
  double gpus = 0;
  for (const GpuGroup& group : out.gpus) gpus += group.count;
  const double rate = row.number("tokens_per_s").value_or(row.number("tokens_per_s_per_gpu").value_or(0) * gpus);
  if (rate > 0 && out.global_batch && out.sequence) {
    out.iteration_s = static_cast<double>(*out.global_batch) * static_cast<double>(*out.sequence) / rate;
    return;
  }
  out.derived = true;
  out.iteration_s = row.number("derived_iter_time_s").value_or(0);
  const double flops_per_s = row.number("tflops_per_gpu").value_or(0) * 1e12 * gpus;
  const double flops = row.number("flops_per_iteration").value_or(published_flops(out));
  if (out.iteration_s == 0 && flops_per_s > 0) out.iteration_s = flops / flops_per_s;
}

/// "[18506 MB, 13406 MB]": the largest.
double largest_of_list(const std::string& text) {
  double largest = 0;
  for (const TextNumber& number : numbers_in(text)) {
    if (number.in("MB")) largest = std::max(largest, number.value * kMebi);
  }
  return largest;
}

/// Bytes of what is printed as "GB": 2^30 in PyTorch's own words, 10^9 in Megatron-Bridge's log (report_memory in
/// src/megatron/bridge/training/utils/train_utils.py).
double bytes_of_gigabyte(const Row& row, const Measurement& m) {
  const std::string unit = row.text("memory_unit");
  if (unit == "GB" || unit == "GiB") return unit == "GB" ? kGiga : kGibi;
  if (!unit.empty()) row.wrong("memory_unit", *row.find("memory_unit"), "\"GB\" (10^9 bytes) or \"GiB\"");
  return names_megatron_bridge(m.source) ? kGiga : kGibi;
}

double device_peak(const Row& row, const Measurement& m) {
  if (const auto bytes = row.number("max_mem_bytes")) return *bytes;
  if (const auto gib = row.number("max_mem_gib")) return *gib * kGibi;
  return row.number("max_mem_gb").value_or(0) * bytes_of_gigabyte(row, m);
}

/// What the allocator handed out at most.
double allocated_peak(const Row& row) {
  if (const auto bytes = row.number("max_allocated_bytes")) return *bytes;
  return row.number("max_mem_mb").value_or(0) * kMebi;
}

/// What the device holds, or where only that is printed what the allocator handed out.
void read_peak_memory(const Row& row, Measurement& out) {
  out.peak_memory = device_peak(row, out);
  out.of_driver = row.text("memory_from") == "nvidia-smi";
  out.of_allocator = row.text("memory_from") == "allocator";
  out.out_of_memory = row.boolean("oom").value_or(false);
  if (out.peak_memory > 0) return;
  out.peak_memory = allocated_peak(row);
  if (out.peak_memory == 0) out.peak_memory = largest_of_list(row.text("stage_peak_allocated"));
  out.of_allocator = out.peak_memory > 0;
}

/// The model's own object, or the keys of a flat row.
ModelFacts read_model(const Row& row) {
  if (row.find("model") == nullptr) return read_model_facts(row);
  const auto model = row.object("model");
  if (!model) return {};
  ModelFacts facts = read_model_facts(*model);
  if (facts.vocabulary == 0) facts.vocabulary = row.integer("vocab").value_or(0);
  return facts;
}

Measurement read_measurement(const Row& row) {
  Measurement out;
  out.id = row.text("id");
  out.dataset = row.text("dataset");
  out.family = row.text("family");
  if (out.family.empty()) out.family = out.dataset;
  out.plan = row.text("plan");
  out.quality = row.text("quality");
  if (out.quality.empty() && row.find("model") == nullptr) out.quality = "A";  // flat datasets hold nothing else
  out.notes = row.text("notes");
  out.interconnect = row.text("interconnect");
  out.gpus = read_gpus(row);
  out.model = read_model(row);
  read_degrees(row, out);
  read_batch(row, out);
  infer_global_batch(out);
  read_options(row, out);
  read_uneven_plan(row, out);
  read_iteration(row, out);
  read_peak_memory(row, out);
  return out;
}

Diagnostic not_a_dataset(const io::Document& document, const Node& at, std::string code, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where = {document.file, at.line, at.column};
  diagnostic.message = std::move(message);
  diagnostic.hint = "each measurement is an object with id, gpus, model, degrees and iter_time_s or tokens_per_s";
  diagnostic.source_line = document.line_text(at.line);
  return diagnostic;
}

}  // namespace

Expected<std::vector<Measurement>> read_measurements(std::string text, std::string file) {
  auto document = io::parse_json(std::move(text), std::move(file));
  if (!document) return tl::unexpected(document.error());
  const Node* rows = &document->root;
  if (rows->kind == NodeKind::kObject) rows = rows->find("rows");
  if (rows == nullptr || rows->kind != NodeKind::kArray) {
    return fail(not_a_dataset(*document, document->root, "wrong-type",
                              "expected an array of measurements, or an object with one under \"rows\""));
  }
  if (rows->items.empty()) {
    return fail(not_a_dataset(*document, *rows, "out-of-range", "there is no measurement in the array"));
  }
  Diagnostics sink;
  std::vector<Measurement> measurements;
  measurements.reserve(rows->items.size());
  for (const Node& item : rows->items) {
    const Row row(*document, item, sink);
    if (item.kind == NodeKind::kObject) {
      measurements.push_back(read_measurement(row));
    } else {
      row.wrong("rows", item, "an object for each measurement");
    }
  }
  if (!sink.empty()) return fail(std::move(sink));
  return measurements;
}

}  // namespace tangram::accuracy
