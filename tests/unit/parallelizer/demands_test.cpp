// What runtimes demand of a stage: each demand with slices or degrees that keep it and others that break it.
#include "support/catch.hpp"
#include "unit/parallelizer/fixtures.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using namespace tangram::parallelizer::fixtures;
using cost::RecomputeMode;

namespace {

Outcome solve(const model::Model& model, const Demands& demands, int samples = 8, int in_flight = 16) {
  Query asked = query(model, shape(1, 8), samples, in_flight);
  asked.demands = demands;
  return make_enumerator(model)->solve(std::span(&asked, 1)).front();
}

}  // namespace

TEST_CASE("demands: one set of degrees, of which expert degrees count where there are experts") {
  const auto model = model_of({dense_block(), moe_block()}, {0, 0, 1, 1});
  const cost::Degrees wanted{2, 1, 4, 8, 1, true};
  const Demands demands{.degrees = wanted};
  const auto dense = model::signature(model, 0, 2);
  const auto experts = model::signature(model, 2, 4);
  CHECK(admits(demands, model, experts, wanted));
  CHECK_FALSE(admits(demands, model, experts, {2, 1, 4, 4, 1, true}));
  CHECK(admits(demands, model, dense, {2, 1, 4, 1, 1, true}));
  CHECK_FALSE(admits(demands, model, dense, {4, 1, 2, 1, 1, true}));
  for (const PartialPlan& plan : solve(model, demands).plans) CHECK(plan.strategy.degrees == wanted);
}

TEST_CASE("demands: sequence parallelism wherever tp > 1, one tp at the ends, experts over whole stages") {
  const auto model = moe_model(8);
  const auto first = model::signature(model, 0, 4);
  const auto middle = model::signature(model, 2, 4);
  CHECK(admits({.sequence_parallel = true}, model, middle, {2, 1, 4, 1, 1, true}));
  CHECK(admits({.sequence_parallel = true}, model, middle, {1, 1, 8, 1, 1, false}));
  CHECK_FALSE(admits({.sequence_parallel = true}, model, middle, {2, 1, 4, 1, 1, false}));
  CHECK(admits({.tp_at_ends = 2}, model, first, {2, 1, 4, 1, 1, true}));
  CHECK(admits({.tp_at_ends = 2}, model, middle, {4, 1, 2, 1, 1, true}));
  CHECK_FALSE(admits({.tp_at_ends = 2}, model, first, {4, 1, 2, 1, 1, true}));
  CHECK(admits({.whole_stage_experts = true}, model, middle, {2, 1, 4, 8, 1, true}));
  CHECK(admits({.whole_stage_experts = true}, model, middle, {2, 1, 4, 4, 2, true}));
  CHECK(admits({.whole_stage_experts = true}, model, first, {2, 1, 4, 4, 1, true}));
  CHECK_FALSE(admits({.whole_stage_experts = true}, model, middle, {2, 1, 4, 4, 1, true}));
}

TEST_CASE("demands: one tp at the ends is inherited by parts, and tells slices of the same blocks apart") {
  const auto model = model_of({dense_block()}, {0, 0, 0, 0});
  const Demands demands{.tp_at_ends = 2};
  CHECK(are_inherited(demands));
  CHECK(depend_on_ends(demands));
  CHECK_FALSE(depend_on_ends({.sequence_parallel = true, .zero1 = true, .power_of_two_tp = true}));
  const std::vector<cost::Degrees> all{{1, 1, 8}, {2, 1, 4, 1, 1, true}, {4, 1, 2, 1, 1, true}, {8, 1, 1}};
  for (int first = 0; first < 4; ++first) {
    for (int last = first + 1; last <= 4; ++last) {
      for (int from = first; from < last; ++from) {
        for (const cost::Degrees& degrees : all) {
          const auto whole = model::signature(model, first, last);
          const auto part = model::signature(model, from, last);
          CHECK((!admits(demands, model, whole, degrees) || admits(demands, model, part, degrees)));
        }
      }
    }
  }
}

TEST_CASE("demands: an encoder is one stage of its own") {
  auto encoder = dense_block();
  encoder.name = "vision";
  encoder.attention.causal = false;
  const auto model = model_of({encoder, dense_block()}, {0, 0, 1, 1});
  const auto admitted = [&](int from, int to) {
    return admits({.whole_modules = true}, model, model::signature(model, from, to));
  };
  CHECK(admitted(0, 2));
  CHECK(admitted(2, 4));
  CHECK(admitted(3, 4));
  CHECK_FALSE(admitted(0, 1));
  CHECK_FALSE(admitted(1, 3));
  CHECK_FALSE(admitted(0, 4));
}

namespace {

model::BlockType encoder_block(const char* name) {
  auto block = dense_block();
  block.name = name;
  block.attention.causal = false;
  return block;
}

// Vision, audio and the language model, of two blocks each.
model::Model model_of_two_encoders() {
  auto model = model_of({encoder_block("vision"), encoder_block("audio"), dense_block()}, {0, 0, 1, 1, 2, 2});
  model.graph.modules.resize(3);
  for (int m = 0; m < 3; ++m) {
    auto& module = model.graph.modules[static_cast<std::size_t>(m)];
    module.kind = m == 2 ? model::ModuleKind::kLanguage : model::ModuleKind::kEncoder;
    module.blocks = {2 * m, 2 * m + 2};
  }
  model.graph.edges = {{.from = 0, .to = 2, .from_layers = {}, .into_layers = {}},
                       {.from = 1, .to = 2, .from_layers = {}, .into_layers = {}}};
  return model;
}

}  // namespace

TEST_CASE("demands: each of two encoders is one stage of its own, or both are in one stage with whatever follows") {
  const auto model = model_of_two_encoders();
  const auto admitted = [&](const Demands& demands, int from, int to) {
    return admits(demands, model, model::signature(model, from, to));
  };
  const Demands apart{.whole_modules = true};
  for (const auto& [from, to] : {std::pair(0, 2), std::pair(2, 4), std::pair(4, 5), std::pair(4, 6)}) {
    CHECK(admitted(apart, from, to));
  }
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(0, 4), std::pair(1, 3), std::pair(2, 6)}) {
    CHECK_FALSE(admitted(apart, from, to));
  }
  const Demands together{.encoders_together = true};
  for (const auto& [from, to] : {std::pair(0, 4), std::pair(0, 5), std::pair(4, 6)})
    CHECK(admitted(together, from, to));
  for (const auto& [from, to] : {std::pair(0, 2), std::pair(1, 6), std::pair(2, 5)}) {
    CHECK_FALSE(admitted(together, from, to));
  }
  CHECK_FALSE(are_inherited(apart));
  CHECK_FALSE(are_inherited(together));
  CHECK(depend_on_ends(apart));
}

TEST_CASE("demands: beside one set of degrees an encoder of its own has those whose dp divides or is divided") {
  const auto model = model_of_two_encoders();
  const Demands demands{.degrees = cost::Degrees{2, 1, 4, 1, 1, true}, .whole_modules = true, .power_of_two_tp = true};
  const auto vision = model::signature(model, 0, 2);
  const auto language = model::signature(model, 4, 6);
  CHECK(admits(demands, model, vision, {1, 1, 8, 1, 1, false}));
  CHECK(admits(demands, model, vision, {4, 1, 2, 1, 1, true}));
  CHECK_FALSE(admits(demands, model, vision, {1, 1, 6, 1, 1, false}));
  CHECK_FALSE(admits(demands, model, vision, {3, 1, 4, 1, 1, true}));
  CHECK(admits(demands, model, language, {2, 1, 4, 1, 1, true}));
  CHECK_FALSE(admits(demands, model, language, {1, 1, 8, 1, 1, false}));
}

TEST_CASE("demands: where blocks are alike, the layer-wise parallelizer answers as the enumerator does") {
  const auto model = fixtures::dense_model(6);
  for (const Demands& demands : {Demands{.alike = true}, Demands{.zero1 = true}}) {
    auto asked = fixtures::query(model, fixtures::shape(1, 4, 24_GiB), 4, 8);
    asked.demands = demands;
    const auto mixed = make_layerwise(model)->solve(std::span(&asked, 1));
    const auto alike = make_enumerator(model)->solve(std::span(&asked, 1));
    REQUIRE(mixed.front().plans.size() == alike.front().plans.size());
    for (std::size_t i = 0; i < mixed.front().plans.size(); ++i) {
      CHECK(mixed.front().plans[i].strategy == alike.front().plans[i].strategy);
      CHECK(mixed.front().plans[i].parallelizer == "layerwise");
    }
  }
}

TEST_CASE("demands: one recompute mode and ZeRO-1 wherever there is something to shard") {
  const auto model = dense_model(8);
  for (const auto mode : {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
    const auto outcome = solve(model, {.recompute = mode, .zero1 = true});
    REQUIRE_FALSE(outcome.plans.empty());
    for (const PartialPlan& plan : outcome.plans) {
      const auto& [degrees, policy] = plan.strategy;
      CHECK(policy.recompute == mode);
      CHECK(policy.recompute_layers == (mode == RecomputeMode::kFull ? 8 : 0));
      CHECK(policy.zero == (degrees.dp * degrees.cp > 1 ? 1 : 0));
    }
  }
}

TEST_CASE("demands: full recompute of all blocks or of none, whichever is best") {
  const auto model = dense_model(8);
  constexpr int kInFlight = 100;
  const auto outcome = solve(model, {.alike = true, .whole_recompute = true}, 64, kInFlight);
  const auto useful = [](const PartialPlan& plan) { return std::min<std::int64_t>(plan.n_max, kInFlight); };
  const auto time = [](const PartialPlan& plan) { return plan.cost.forward + plan.cost.backward; };
  int in_full = 0;
  for (const PartialPlan& plan : outcome.plans) {
    const bool full = plan.strategy.policy.recompute == RecomputeMode::kFull;
    in_full += full;
    CHECK(plan.strategy.policy.recompute_layers == (full ? 8 : 0));
  }
  CHECK(in_full > 0);
  for (const auto mode : {RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull}) {
    for (const PartialPlan& other : solve(model, {.recompute = mode, .alike = true}, 64, kInFlight).plans) {
      CHECK(std::ranges::any_of(outcome.plans, [&](const PartialPlan& plan) {
        return useful(plan) >= useful(other) && time(plan) <= time(other);
      }));
    }
  }
}
