// Graphs of models: all weights are there once, products have the model's FLOPs, and every layer waits for the one
// before.
#include "tangram/kernels/synth.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "tangram/base/at.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/kernels/check.hpp"
#include "tangram/kernels/document.hpp"
#include "tangram/kernels/hazards.hpp"
#include "tangram/kernels/unroll.hpp"

using namespace tangram;
using namespace tangram::kernels;

namespace {

model::Model shipped_model(const std::string& name, const std::string& extension = ".yaml") {
  const std::string path = std::string(TANGRAM_SOURCE_DIR) + "/configs/models/" + name + extension;
  std::ifstream in(path);
  REQUIRE(in);
  std::ostringstream text;
  text << in.rdbuf();
  auto model = model::read_any_model(text.str(), path);
  REQUIRE(model);
  return *model;
}

std::vector<cluster::GpuType> gpus_named(const std::vector<std::string>& names) {
  std::vector<cluster::GpuType> gpus;
  for (const std::string& name : names) {
    gpus.push_back(*std::ranges::find(cluster::catalogue(), name, &cluster::GpuType::name));
  }
  return gpus;
}

KernelGraph graph_of(const model::Model& model, const std::vector<PhaseLoad>& loads) {
  static const KernelCosts costs(shipped_tables());
  const auto graph = synthesize(model, loads, gpus_named({"H100-80GB-SXM", "L40S"}), costs);
  REQUIRE(graph);
  return *graph;
}

/// Five layers of a mixer alone.
model::Model small_mamba() {
  auto model = model::read_any_model(R"({"schema": "tangram.model/1", "name": "small-mamba",
    "architecture": {"vocabulary": 64, "hidden": 16,
      "types": [{"name": "mamba2", "only": "mixer",
                 "mamba2": {"heads": 2, "head_dim": 4, "groups": 1, "state": 8, "chunk": 16}}],
      "blocks": [{"type": "mamba2", "count": 5}]},
    "training": {"sequence_length": 64, "global_batch_samples": 8}})",
                                     "small-mamba.json");
  if (!model) FAIL(render(model.error()));
  return *model;
}

constexpr PhaseLoad kDecode{PhaseKind::kDecode, 32, 2048};
constexpr PhaseLoad kPrefill{PhaseKind::kPrefill, 2, 1024};

std::int64_t bytes_of_kind(const KernelGraph& graph, BufferKind kind) {
  std::int64_t sum = 0;
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.kind == kind) sum += buffer.bytes.value() * buffer.copies;
  }
  return sum;
}

/// FLOPs of products with weights, of all passes.
double gemm_flops(const KernelGraph& graph, const Phase& phase) {
  double sum = 0;
  for (int k = phase.first; k < phase.first + phase.count; ++k) {
    const Kernel& kernel = at(graph.kernels, k);
    double passes = 1;
    for (const Repeat& repeat : phase.repeats) {
      if (repeat.first <= k && k < repeat.first + repeat.kernels) passes = static_cast<double>(repeat.times);
    }
    const auto name = std::ranges::find(operator_names(), kernel.op);
    REQUIRE(name != operator_names().end());
    const auto op = static_cast<Operator>(name - operator_names().begin());
    const bool product = op == Operator::kGemm || op == Operator::kExperts;
    if (product) sum += passes * work_of(op, kernel.shape, DType::kBf16).flops;
  }
  return sum;
}

const Kernel& kernel_named(const KernelGraph& graph, std::string_view id) {
  const auto found = std::ranges::find(graph.kernels, id, &Kernel::id);
  REQUIRE(found != graph.kernels.end());
  return *found;
}

/// It is sound, has all weights of the model, and is read as it was written.
void check_graph_of(const model::Model& model) {
  const KernelGraph graph = graph_of(model, {kPrefill, kDecode});
  for (const Finding& finding : check(graph)) {
    INFO(finding.code << " " << finding.about << " " << finding.message);
    CHECK(finding.severity == Severity::kWarning);
  }
  const std::int64_t width = bytes_of(model.job.precision);
  CHECK(bytes_of_kind(graph, BufferKind::kWeight) ==
        Approx(static_cast<double>(model.total_parameters() * width)).epsilon(1e-4));
  const auto read = read_kernel_graph(io::write_canonical(kernel_graph_json(graph)), "graph.json");
  REQUIRE(read);
  CHECK(*read == graph);
}

}  // namespace

TEST_CASE("every text model that ships has a sound graph with all of its weights") {
  for (const char* name : {"llama-3-8b", "llama-2-70b", "qwen2.5-7b", "qwen3-32b", "gemma-2-9b", "mistral-7b",
                           "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-120b", "gpt2-medium",
                           "gpt-neox-20b", "opt-350m", "opt-6.7b", "pythia-2.8b", "gpt-neo-2.7b", "llama-3.2-3b"}) {
    INFO(name);
    check_graph_of(shipped_model(name));
  }
}

TEST_CASE("the cache holds keys and values of what is seen") {
  // Llama 3 8B: 32 layers, 8 heads of 128, keys and values, 2 bytes: 128 KiB a token.
  const KernelGraph graph = graph_of(shipped_model("llama-3-8b"), {kDecode});
  CHECK(bytes_of_kind(graph, BufferKind::kKv) == 32 * 2048 * 131'072LL);
  const Kernel& rope = kernel_named(graph, "decode.layer0.rope");
  REQUIRE(rope.writes.size() == 1);
  CHECK(rope.writes[0].bytes == 32 * 4096);  // one token of each request
  CHECK(rope.writes[0].end() == at(graph.buffers, rope.writes[0].buffer).bytes.value());
  // Mistral's window of 4096 tokens bounds it.
  const KernelGraph windows = graph_of(shipped_model("mistral-7b"), {{PhaseKind::kDecode, 1, 32'768}});
  CHECK(bytes_of_kind(windows, BufferKind::kKv) == 4096 * 131'072LL);
  CHECK(kernel_named(windows, "decode.layer0.attention").shape[1] == 4096);
}

TEST_CASE("products of a prefill have the FLOPs that the model counts") {
  for (const char* name : {"llama-3-8b", "qwen3-32b", "mixtral-8x7b", "deepseek-v2-lite", "gpt-neox-20b"}) {
    INFO(name);
    model::Model model = shipped_model(name);
    for (model::BlockType& type : model.types) type.tokens = 1024;
    const KernelGraph graph = graph_of(model, {kPrefill});
    // 2 FLOPs per multiply-add of each token with each weight that it meets, the head for the last token alone.
    double expected = 0;
    for (int block = 0; block < model.block_count(); ++block) {
      const model::BlockType& type = model.block(block);
      const model::Attention& a = type.attention;
      const int dims = a.kind == model::AttentionKind::kLatent ? a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim
                                                               : 2 * a.head_dim;
      const double pairs = 1024.0 * 1024.0 / 2;
      expected += 2 * (model::forward_flops(type).value() - 2.0 * pairs * a.heads * dims);
    }
    expected += 2.0 * 2 * static_cast<double>(model.vocabulary * model.hidden);
    CHECK(gemm_flops(graph, graph.phases.front()) == Approx(expected).epsilon(2e-3));
  }
}

TEST_CASE("kernels of a layer in their order, and each waits for what it reads") {
  const KernelGraph graph = graph_of(shipped_model("llama-3-8b"), {kDecode});
  std::vector<std::string> names;
  for (const Kernel& kernel : graph.kernels) names.push_back(kernel.id.substr(kernel.id.rfind('.') + 1));
  CHECK(names == std::vector<std::string>{"embedding", "attention_norm", "qkv", "rope", "attention", "o_proj",
                                          "ffn_norm", "gate_up", "activation", "down", "final_norm", "head", "sample"});
  CHECK(graph.phases.front().repeats == std::vector<Repeat>{{1, 9, 32}});
  const KernelGraph two = unrolled(graph, 2);
  std::set<std::pair<std::string, std::string>> flows;
  for (const Hazard& hazard : hazards(two, two.phases.front())) {
    if (hazard.kind != HazardKind::kReadAfterWrite) continue;
    flows.emplace(at(two.kernels, hazard.from).id, at(two.kernels, hazard.to).id);
  }
  const std::set<std::pair<std::string, std::string>> wanted{
      {"decode.embedding", "decode.layer0.attention_norm[0]"},
      {"decode.embedding", "decode.layer0.o_proj[0]"},  // the residual stream passes by
      {"decode.layer0.o_proj[0]", "decode.layer0.ffn_norm[0]"},
      {"decode.layer0.o_proj[0]", "decode.layer0.down[0]"},
      {"decode.layer0.rope[0]", "decode.layer0.attention[0]"},
      {"decode.layer0.down[0]", "decode.layer0.attention_norm[1]"},
      {"decode.layer0.down[0]", "decode.layer0.o_proj[1]"},
      {"decode.layer0.down[1]", "decode.final_norm"},
      {"decode.head", "decode.sample"}};
  CHECK(std::ranges::includes(flows, wanted));
  CHECK_FALSE(flows.contains({"decode.layer0.rope[0]", "decode.layer0.attention[1]"}));  // caches of their own
}

TEST_CASE("layers that take turns are one repeat of both, and phases share weights and cache") {
  const KernelGraph gemma = graph_of(shipped_model("gemma-2-9b"), {kDecode});
  REQUIRE(gemma.phases.front().repeats.size() == 1);
  CHECK(gemma.phases.front().repeats.front().times == 21);
  const KernelGraph experts = graph_of(shipped_model("deepseek-v2-lite"), {kDecode});
  REQUIRE(experts.phases.front().repeats.size() == 1);  // one dense layer, then 26 of experts
  CHECK(experts.phases.front().repeats.front().times == 26);
  const model::Model llama = shipped_model("llama-3-8b");
  const KernelGraph both = graph_of(llama, {kPrefill, kDecode});
  CHECK(bytes_of_kind(both, BufferKind::kWeight) == bytes_of_kind(graph_of(llama, {kDecode}), BufferKind::kWeight));
  CHECK(both.phases.size() == 2);
}

TEST_CASE("hybrid models that ship have sound graphs with all of their weights") {
  for (const char* name : {"nemotron-h-8b", "nemotron-3-nano", "granite-4.0-h-small"}) {
    INFO(name);
    check_graph_of(shipped_model("hf/" + std::string(name), ".json"));
  }
}

TEST_CASE("a Mamba-2 layer keeps a state for each request, whatever its length") {
  // 2 heads of 4, one group, keys of 8: inner 8, convolved 8 + 2 * 8 = 24, projected 8 + 24 + 2 = 34. Hidden 16.
  const KernelGraph decode = graph_of(small_mamba(), {{PhaseKind::kDecode, 3, 100}});
  std::vector<std::string> names;
  for (const Kernel& kernel : decode.kernels) names.push_back(kernel.id.substr(kernel.id.rfind('.') + 1));
  CHECK(names == std::vector<std::string>{"embedding", "mixer_norm", "in_proj", "convolution", "state_update",
                                          "gated_norm", "out_proj", "final_norm", "head", "sample"});
  CHECK(kernel_named(decode, "decode.layer0.in_proj").shape == std::vector<std::int64_t>{3, 34, 16});
  CHECK(kernel_named(decode, "decode.layer0.out_proj").shape == std::vector<std::int64_t>{3, 16, 8});
  // States: 3 requests x 2 x 4 x 8 x 4 bytes; inputs of the convolution: 3 x 24 channels x 3 tokens x 2 bytes. 5
  // layers.
  CHECK(bytes_of_kind(decode, BufferKind::kKv) == 5 * (768 + 432));
  const Kernel& update = kernel_named(decode, "decode.layer0.state_update");
  REQUIRE(update.updates.size() == 1);
  CHECK(update.updates.front().bytes == 768);
  // State read and written, 3 x 24 convolved, 3 x 2 step sizes, 3 x 2 weights and 3 x 8 outputs of 2 bytes.
  CHECK(update.shape == std::vector<std::int64_t>{2 * 768 + 2 * (72 + 6 + 6 + 24)});
  const KernelGraph longer = graph_of(small_mamba(), {{PhaseKind::kDecode, 3, 4000}});
  CHECK(bytes_of_kind(longer, BufferKind::kKv) == bytes_of_kind(decode, BufferKind::kKv));
  CHECK(decode.phases.front().repeats.front().times == 5);
}

TEST_CASE("prefill of a Mamba-2 layer multiplies chunks, and leaves the state that decode updates") {
  // Two requests of 40 tokens in chunks of 16: 2 x 3 chunks.
  const KernelGraph both = graph_of(small_mamba(), {{PhaseKind::kPrefill, 2, 40}, {PhaseKind::kDecode, 2, 40}});
  const Phase& prefill = both.phases.front();
  std::vector<std::string> names;
  for (int k = 1; k < prefill.count - 3; ++k) {
    names.push_back(at(both.kernels, k).id.substr(std::string("prefill.layer0.").size()));
  }
  CHECK(names == std::vector<std::string>{"mixer_norm", "in_proj", "convolution", "decays", "chunk_states",
                                          "state_passing", "chunk_scores", "chunk_scan", "gated_norm", "out_proj"});
  // [products, m, n, k]: 6 chunks x 2 heads of 8 x 4 over 16 tokens; 6 x 1 group of 16 x 16 over 8; outputs of 16 x 4
  // over 16 + 8.
  const auto shape_of = [&](const std::string& name) {
    auto shape = kernel_named(both, "prefill.layer0." + name).shape;
    shape.pop_back();
    return shape;
  };
  CHECK(shape_of("chunk_states") == std::vector<std::int64_t>{12, 8, 4, 16});
  CHECK(shape_of("chunk_scores") == std::vector<std::int64_t>{6, 16, 16, 8});
  CHECK(shape_of("chunk_scan") == std::vector<std::int64_t>{12, 16, 4, 24});
  // Scores: keys and queries of 80 tokens x 8 x 2 bytes read, 6 x 16 x 16 x 4 bytes written.
  CHECK(kernel_named(both, "prefill.layer0.chunk_scores").shape.back() == 2 * 80 * 8 * 2 + 6 * 256 * 4);
  const Kernel& passing = kernel_named(both, "prefill.layer0.state_passing");
  const Kernel& update = kernel_named(both, "decode.layer0.state_update");
  REQUIRE(passing.writes.size() == 1);
  CHECK(passing.writes == update.updates);
  const auto name_of = [&](int kernel) {
    const std::string& id = at(both.kernels, kernel).id;
    return id.substr(id.rfind('.') + 1);
  };
  std::set<std::pair<std::string, std::string>> flows;
  for (const Hazard& hazard : hazards(both, prefill)) {
    if (hazard.kind != HazardKind::kReadAfterWrite) continue;
    flows.emplace(name_of(hazard.from), name_of(hazard.to));
  }
  const std::set<std::pair<std::string, std::string>> wanted{
      {"in_proj", "convolution"},      {"in_proj", "decays"},           {"in_proj", "gated_norm"},
      {"convolution", "chunk_states"}, {"decays", "chunk_states"},      {"chunk_states", "state_passing"},
      {"convolution", "chunk_scores"}, {"state_passing", "chunk_scan"}, {"chunk_scores", "chunk_scan"},
      {"chunk_scan", "gated_norm"},    {"gated_norm", "out_proj"}};
  CHECK(std::ranges::includes(flows, wanted));
}

TEST_CASE("times of a recurrence say where they come from") {
  const KernelGraph graph = graph_of(shipped_model("hf/nemotron-h-8b", ".json"), {kPrefill, kDecode});
  // 32 x 18560 x 4096 lies between rows of the table.
  CHECK(kernel_named(graph, "decode.layer0.in_proj").times.front()->from == TimeSource::kInterpolated);
  const Kernel& scan = kernel_named(graph, "prefill.layer0.chunk_scan");
  REQUIRE(scan.times.front());
  CHECK(scan.times.front()->from == TimeSource::kRoofline);
  // 2 requests x 8 chunks x 128 heads of products of 128 x 64 over 128 + 128, at attention's share of the peak; what is
  // moved, at streams' share of the bandwidth.
  const OperatorTable& attention =
      *std::ranges::find(shipped_tables(), Operator::kAttentionPrefill, &OperatorTable::op);
  const OperatorTable& stream = *std::ranges::find(shipped_tables(), Operator::kStream, &OperatorTable::op);
  CHECK(scan.times.front()->error == attention.inference_of("").roofline_error);
  const cluster::GpuType device = gpus_named({"H100-80GB-SXM"}).front();
  const double multiplied =
      2.0 * 2048 * 128 * 64 * 256 /
      (attention.inference_of(device.name).roofline.compute * device.peak_of(DType::kBf16).value());
  const double moved = static_cast<double>(scan.shape.back()) /
                       (stream.inference_of(device.name).roofline.memory * device.memory_bandwidth.value());
  const double seconds = stream.inference_of(device.name).roofline.floor + std::max(multiplied, moved);
  CHECK(to_seconds(scan.times.front()->time) == Approx(seconds).epsilon(1e-4));
}

TEST_CASE("what no graph can be made of is refused with a reason") {
  const KernelCosts costs(shipped_tables());
  const auto gpus = gpus_named({"L40S"});
  const auto code = [&](const model::Model& model, std::vector<PhaseLoad> loads) {
    const auto graph = synthesize(model, loads, gpus, costs);
    return graph ? std::string() : graph.error().front().code;
  };
  const model::Model llama = shipped_model("llama-3-8b");
  CHECK(code(shipped_model("llava-1.5-7b"), {kDecode}) == "unsupported-model");
  CHECK(code(shipped_model("hf/qwen3-next-80b-a3b", ".json"), {kDecode}) == "unsupported-model");
  CHECK(code(shipped_model("hf/nemotron-3-super", ".json"), {kDecode}) == "unsupported-model");
  CHECK(code(llama, {kDecode, kDecode}) == "duplicate-phase");
  CHECK(code(llama, {{PhaseKind::kDecode, 0, 1}}) == "out-of-range");
  CHECK(code(llama, {{PhaseKind::kDecode, 1'000'000, 1'000'000}}) == "out-of-range");
  CHECK(code(llama, {kDecode}).empty());
}
