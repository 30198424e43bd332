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

model::Model shipped_model(const std::string& name) {
  const std::string path = std::string(TANGRAM_SOURCE_DIR) + "/configs/models/" + name + ".yaml";
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

}  // namespace

TEST_CASE("every text model that ships has a sound graph with all of its weights") {
  for (const char* name : {"llama-3-8b", "llama-2-70b", "qwen2.5-7b", "qwen3-32b", "gemma-2-9b", "mistral-7b",
                           "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-120b", "gpt2-medium",
                           "gpt-neox-20b", "opt-350m", "opt-6.7b", "pythia-2.8b", "gpt-neo-2.7b", "llama-3.2-3b"}) {
    INFO(name);
    const model::Model model = shipped_model(name);
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

TEST_CASE("what no graph can be made of is refused with a reason") {
  const KernelCosts costs(shipped_tables());
  const auto gpus = gpus_named({"L40S"});
  const auto code = [&](const model::Model& model, std::vector<PhaseLoad> loads) {
    const auto graph = synthesize(model, loads, gpus, costs);
    return graph ? std::string() : graph.error().front().code;
  };
  const model::Model llama = shipped_model("llama-3-8b");
  CHECK(code(shipped_model("llava-1.5-7b"), {kDecode}) == "unsupported-model");
  model::Model hybrid = llama;
  hybrid.types.front().recurrence = model::Recurrence{};
  CHECK(code(hybrid, {kDecode}) == "unsupported-model");
  CHECK(code(llama, {kDecode, kDecode}) == "duplicate-phase");
  CHECK(code(llama, {{PhaseKind::kDecode, 0, 1}}) == "out-of-range");
  CHECK(code(llama, {{PhaseKind::kDecode, 1'000'000, 1'000'000}}) == "out-of-range");
  CHECK(code(llama, {kDecode}).empty());
}
