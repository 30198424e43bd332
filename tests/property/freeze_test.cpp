// Freezing more of a model never makes a stage slower or larger, whatever the modules, degrees, ZeRO stage and
// recompute.
#include <fmt/format.h>

#include <random>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/cost/validity.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {}

  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  bool coin() { return pick(0, 1) == 1; }

  /// One or two encoders of other widths in front of a language model of 256.
  std::string model() {
    std::string encoders = encoder("vision");
    if (coin()) encoders += ", " + encoder("audio");
    return fmt::format(
        "{{schema: tangram.model/1, architecture: {{vocabulary: 1000, hidden: 256, layers: {}, heads: 8, kv_heads: {},"
        " ffn_hidden: 512, tied_embeddings: {}, encoders: [{}]}}, training: {{sequence_length: 512,"
        " global_batch_samples: 8, fused_gradient_accumulation: {}, precision: {}}}}}",
        pick(1, 4), coin() ? 8 : 2, coin(), encoders, coin(), coin() ? "bf16" : "fp16");
  }

  std::vector<std::string> some_of(const std::vector<std::string>& names) {
    std::vector<std::string> out;
    for (const std::string& name : names) {
      if (coin()) out.push_back(name);
    }
    return out;
  }

  Degrees degrees() {
    return {.tp = 1 << pick(0, 2), .cp = 1 << pick(0, 1), .dp = 1 << pick(0, 2), .sequence_parallel = false};
  }

  MemoryPolicy policy(int blocks) {
    constexpr RecomputeMode kModes[] = {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull};
    const RecomputeMode mode = kModes[pick(0, 2)];
    return {pick(0, 3), mode, mode == RecomputeMode::kFull ? pick(1, blocks) : 0};
  }

 private:
  std::string encoder(const std::string& name) {
    constexpr int kHidden = 128;
    const char* const connectors[] = {
        "{widths: [128, 256]}", "{kind: merger, widths: [512, 300, 256], norm: layernorm}",
        "{kind: pool, widths: [128, 256], bias: false}", "{kind: resampler, widths: [128, 64, 256], queries: 16}"};
    return fmt::format(
        "{{name: {}, hidden: {}, layers: {}, heads: 8, ffn_hidden: 256, gated: {}, tokens_in: 64,"
        " tokens_out: 16, patch_parameters: 1000, connector: {}}}",
        name, kHidden, pick(1, 3), coin(), connectors[pick(0, 3)]);
  }

  std::mt19937 random_;
};

/// None: it cannot be read, as when nothing is left to train.
std::optional<model::Model> read(const std::string& text, const std::vector<std::string>& frozen) {
  model::JobOverrides overrides;
  overrides.freeze = frozen;
  auto model = model::read_model(text, "drawn.yaml", overrides);
  if (!model) return std::nullopt;
  return *std::move(model);
}

std::vector<std::string> parts_of(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Module& module : model.graph.modules) {
    names.push_back(module.name);
    if (module.connector) names.push_back(module.name + ".connector");
  }
  return names;
}

bool no_worse(const StageCost& a, const StageCost& b) {
  return a.forward <= b.forward && a.backward <= b.backward && a.gradient_sync <= b.gradient_sync &&
         a.optimizer_step <= b.optimizer_step && a.parameters <= b.parameters && a.gradients <= b.gradients &&
         a.optimizer_state <= b.optimizer_state && a.transient <= b.transient && a.activation <= b.activation &&
         a.gradient_volume <= b.gradient_volume;
}

}  // namespace

TEST_CASE("property: freezing more is never slower and never larger") {
  int compared = 0;
  int faster = 0;
  for (int seed = 0; seed < testing::cases(3000); ++seed) {
    Drawn drawn(static_cast<unsigned>(seed));
    const std::string text = drawn.model();
    const auto all = read(text, {});
    REQUIRE(all);
    const std::vector<std::string> more = drawn.some_of(parts_of(*all));
    const auto frozen = read(text, more);
    const auto less = read(text, drawn.some_of(more));
    if (!frozen || !less) continue;
    const Degrees degrees = drawn.degrees();
    const int samples = 4 * drawn.pick(1, 3);
    if (!why_unsupported(*all, degrees, samples).empty()) continue;
    const cluster::DeviceShape shape = shape_of(drawn.coin() ? a100() : round_gpu(), 1, degrees.gpus());
    const auto units_more = unit_costs(*frozen, shape, degrees, samples);
    const auto units_less = unit_costs(*less, shape, degrees, samples);
    REQUIRE(units_more);
    REQUIRE(units_less);
    const int first = drawn.pick(0, all->block_count() - 1);
    const int last = drawn.pick(first + 1, all->block_count());
    const MemoryPolicy policy = drawn.policy(last - first);
    const StageCost a = stage_cost(*units_more, model::signature(*frozen, first, last), policy);
    const StageCost b = stage_cost(*units_less, model::signature(*less, first, last), policy);
    INFO(text << " freeze " << fmt::format("{}", fmt::join(more, ",")) << " blocks " << first << "-" << last - 1);
    CHECK(no_worse(a, b));
    CHECK(a.parameters == b.parameters);
    CHECK(model::cut_bytes(*frozen, 1) == model::cut_bytes(*less, 1));
    CHECK(frozen->trained_parameters() <= less->trained_parameters());
    ++compared;
    if (a.backward < b.backward) ++faster;
  }
  CHECK(compared >= testing::enough(1500));
  CHECK(faster >= testing::enough(300));
}
