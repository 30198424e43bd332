// What freezing does to a stage, on LLaVA-1.5-7B: which passes, gradients, state and activations are left.
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/stage.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

model::Model llava(std::vector<std::string> frozen) {
  model::JobOverrides overrides;
  overrides.freeze = std::move(frozen);
  return shipped_model("llava-1.5-7b.yaml", overrides);
}

/// Of blocks [first, last) on one node of four, tp 2.
StageCost cost_of(const model::Model& model, int first, int last, const MemoryPolicy& policy = {}) {
  const auto units = unit_costs(model, shape_of(a100(), 1, 4), {.tp = 2, .dp = 2}, 4);
  REQUIRE(units);
  return stage_cost(*units, model::signature(model, first, last), policy);
}

const std::vector<std::string> kProjectorAlone{"vision", "language"};

}  // namespace

TEST_CASE("freeze: a frozen encoder has no backward, no state and keeps nothing") {
  // Blocks 1 to 23 are without embedding and without the connector.
  const StageCost trained = cost_of(llava({}), 1, 23);
  const StageCost frozen = cost_of(llava({"vision"}), 1, 23);
  CHECK(frozen.forward == trained.forward);
  CHECK(frozen.backward == Nanoseconds(0));
  CHECK(frozen.parameters == trained.parameters);  // two bytes each
  CHECK(frozen.gradients == Bytes(0));
  CHECK(frozen.optimizer_state == Bytes(0));
  CHECK(frozen.gradient_sync == Nanoseconds(0));
  CHECK(frozen.optimizer_step == Nanoseconds(0));
  CHECK(frozen.gradient_volume == Bytes(0));
  CHECK(frozen.activation == Bytes(0));
  CHECK(max_in_flight(frozen, 60_GiB) == 1'000'000);
  // Recompute finds nothing to run again.
  CHECK(cost_of(llava({"vision"}), 1, 23, {0, RecomputeMode::kFull, 22}) == frozen);
}

TEST_CASE("freeze: behind a projector that is trained a frozen language model has one product of backward for each") {
  const model::Model model = llava(kProjectorAlone);
  const Degrees degrees{.tp = 1};
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 1);
  // Without gaps, waves or a host: products and their input gradients take as long; attention takes 5 / 2 of its
  // forward at 7 / 8 of the rate, streams 3 / 2 to 5 / 3 of theirs.
  const BlockTime time = block_time(model.block(30), model.job, degrees, 1, shape);
  const BlockTime trained = block_time(model::plain(model.block(30)), model.job, degrees, 1, shape);
  CHECK(time.compute.forward == trained.compute.forward);
  const double products = 2.0 * 2048 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) / 100e12;
  CHECK(trained.compute.backward - time.compute.backward == Approx(products).epsilon(1e-3));  // weight gradients
  const double ratio = time.compute.backward / time.compute.forward;
  CHECK(ratio > 1);
  CHECK(ratio < 1.12);

  const StageCost stage = cost_of(model, 25, 55);
  CHECK(stage.gradients == Bytes(0));
  CHECK(stage.optimizer_state == Bytes(0));
  CHECK(stage.gradient_sync == Nanoseconds(0));
  CHECK(stage.parameters == cost_of(llava({}), 25, 55).parameters);
  // What linear layers read is kept for their weight gradients: behind two norms, and behind the activation. Two
  // samples of 2048 tokens.
  const std::int64_t inputs = 2 * (2 * 2048) * (2 * 4096 + 11008 / 2);
  CHECK(cost_of(llava({}), 25, 55).activation - stage.activation == Bytes(30 * inputs));
}

TEST_CASE("freeze: only what is trained has gradients and state in a stage of both") {
  // The last encoder block with its connector, 1024 -> 4096 -> 4096 with biases; tp 2 shards the matrices, and biases
  // are on both.
  const StageCost stage = cost_of(llava(kProjectorAlone), 23, 24);
  const std::int64_t trained = (1024 * 4096 + 4096 * 4096) / 2 + 2 * 4096;
  CHECK(stage.gradients == Bytes(4 * trained));
  CHECK(stage.optimizer_state == Bytes(12 * trained));
  CHECK(stage.gradient_volume == Bytes(std::int64_t{4} * 20'979'712));
  CHECK(stage.backward > Nanoseconds(0));
  CHECK(stage.gradient_sync > Nanoseconds(0));
  // Two samples of 577 tokens in, whose class token goes no further: inputs and both sides of one activation.
  CHECK(stage.activation == Bytes(2 * 576 * 2 * (1024 + 2 * 4096 / 2)));
}

TEST_CASE("freeze: embedding and head follow the language model") {
  const auto units_of = [](const model::Model& model) {
    return *unit_costs(model, shape_of(a100(), 1, 1), {.tp = 1}, 1);
  };
  const UnitCosts all = units_of(llava({}));
  const UnitCosts frozen = units_of(llava(kProjectorAlone));
  CHECK(all.embedding.trained_shared == all.embedding.shared_parameters);
  CHECK(frozen.embedding.backward == 0);
  CHECK(frozen.embedding.trained_shared == 0);
  CHECK(frozen.head.trained_shared == 0);
  CHECK(frozen.head.forward == all.head.forward);
  CHECK(frozen.head.backward > 0);
  CHECK(frozen.head.backward < 0.6 * all.head.backward);
  // Patches are embedded where tokens are.
  CHECK(units_of(llava({"language"})).embedding.trained_shared == 1'196'032);
}

TEST_CASE("freeze: bounds on time and memory stay below") {
  for (const auto& frozen : {std::vector<std::string>{}, {"vision"}, kProjectorAlone}) {
    const model::Model model = llava(frozen);
    const auto units = unit_costs(model, shape_of(a100(), 1, 1), {.tp = 1}, 1);
    REQUIRE(units);
    for (std::size_t type = 0; type < model.types.size(); ++type) {
      const UnitCost& unit = units->blocks[type];
      CHECK(least_gpu_seconds(model, model.types[type], a100()) <= unit.forward + unit.backward);
    }
    CHECK(least_gpu_seconds_head(model, a100()) <= units->head.forward + units->head.backward);
  }
}
