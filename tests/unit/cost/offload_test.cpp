// Inputs of modules that wait in the host's memory: what leaves the GPU, and what the host's bus makes of it.
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/stage.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;
using enum model::OffloadModule;

namespace {

model::Model offloading(const char* file, model::OffloadModules offloaded) {
  model::JobOverrides overrides;
  overrides.sequence_length = 2'048;
  model::Model model = shipped_model(file, overrides);
  model.job.offload_modules = offloaded;
  return model;
}

model::Model offloading_llama(model::OffloadModules offloaded) { return offloading("llama-3-8b.yaml", offloaded); }
model::Model offloading_mixtral(model::OffloadModules offloaded) { return offloading("mixtral-8x7b.yaml", offloaded); }

ActivationBytes bytes_beside_offload(const model::Model& model) {
  return block_activation(model.block(0), model.job, {}, 1);
}

/// Values a token of what leaves the GPU.
double offloaded_values(const model::Model& model) { return bytes_beside_offload(model).offloaded / (2.0 * 2'048); }

cluster::DeviceShape shape_with_bus(double gigabytes) {
  cluster::GpuType gpu = round_gpu();
  gpu.pcie.bandwidth = BytesPerSecond(gigabytes * 1e9);
  return shape_of(gpu, 1, 1);
}

}  // namespace

TEST_CASE("offload: of each module its input leaves, and the rest stays") {
  CHECK(offloaded_values(offloading_llama({kAttentionNorm})) == 4'096);
  CHECK(offloaded_values(offloading_llama({kQueryKeyValue})) == 4'096);
  CHECK(offloaded_values(offloading_llama({kCoreAttention})) == 4'096 + 2 * 1'024);
  CHECK(offloaded_values(offloading_llama({kCoreAttention, kAttentionOutput})) == 2 * 4'096 + 2 * 1'024);
  CHECK(offloaded_values(offloading_llama({kFeedForwardNorm})) == 4'096);
  CHECK(offloaded_values(offloading_llama({kExpertInput, kExpertActivation})) == 0);
  CHECK(offloaded_values(offloading_mixtral({kExpertInput})) == 2 * 4'096);
  CHECK(offloaded_values(offloading_mixtral({kExpertActivation})) == 2 * 2 * 14'336);
  const model::OffloadModules all{kAttentionNorm,   kQueryKeyValue, kCoreAttention,   kAttentionOutput,
                                  kFeedForwardNorm, kExpertInput,   kExpertActivation};
  for (const auto& model : {offloading_llama(all), offloading_mixtral(all)}) {
    const ActivationBytes with = bytes_beside_offload(model);
    model::Model whole = model;
    whole.job.offload_modules = {};
    const ActivationBytes without = bytes_beside_offload(whole);
    CHECK(with.none == Approx(without.none - with.offloaded));
    CHECK(with.none > 0);
    CHECK(with.working == without.working + 2 * with.offloaded);
    CHECK(without.offloaded == 0);
    CHECK(with.full <= with.none);
  }
}

TEST_CASE("offload: what selective recompute works out again does not travel to be kept") {
  model::Model model = offloading_llama({kQueryKeyValue, kCoreAttention});
  const ActivationBytes with = bytes_beside_offload(model);
  model.job.offload_modules = {};
  // The norms' outputs are dropped anyway; queries, keys and values are what leaves.
  CHECK(bytes_beside_offload(model).selective - with.selective == Approx(2.0 * 2'048 * (4'096 + 2 * 1'024)));
}

TEST_CASE("offload: a fast bus costs nothing, a slow one what it takes longer than the pass") {
  const model::Model model = offloading_llama({kCoreAttention, kAttentionOutput});
  const auto time = [&](const model::Model& of, double bus) {
    const BlockTime t = block_time(of.block(0), of.job, {}, 1, shape_with_bus(bus));
    return Passes{t.compute.forward + t.communication.forward, t.compute.backward + t.communication.backward};
  };
  const Passes alone = time(offloading_llama({}), 1);
  CHECK(time(model, 1'000).forward == alone.forward);
  CHECK(time(model, 1'000).backward == alone.backward);
  const double bytes = bytes_beside_offload(model).offloaded;
  CHECK(time(model, 1).forward == Approx(bytes / 1e9));
  CHECK(time(model, 1).backward == Approx(bytes / 1e9));
}

TEST_CASE("offload: the host has moments of its share of the parameters, and steps them") {
  const auto stage = [](double fraction) {
    model::Model model = offloading_llama({});
    model::make_precision_aware(model.job);
    model.job.optimizer.offload_fraction = fraction;
    const auto units = unit_costs(model, shape_of(round_gpu(), 1, 4), {.dp = 4}, 4);
    REQUIRE(units);
    return stage_cost(*units, model::signature(model, 0, 32), {.zero = 1});
  };
  const double owned = 8'030'261'248.0 / 4;  // with ZeRO-1
  const StageCost none = stage(0);
  const StageCost half = stage(0.5);
  const StageCost all = stage(1);
  CHECK((none.optimizer_state - half.optimizer_state).as_double() == Approx(4 * owned).epsilon(0.001));
  CHECK((none.optimizer_state - all.optimizer_state).as_double() == Approx(8 * owned).epsilon(0.001));
  const auto longer = [&](const StageCost& than) { return to_seconds(than.optimizer_step - none.optimizer_step); };
  CHECK(longer(all) == Approx(owned / kHostStepped - 16 * owned / 1e12).epsilon(0.001));
  CHECK(longer(half) == Approx(longer(all) / 2).epsilon(0.001));
  CHECK(all.gradients == none.gradients);
  CHECK(all.parameters == none.parameters);
}

TEST_CASE("offload: a frozen block without a backward pass has nothing to offload") {
  model::Model model = offloading_llama({kCoreAttention, kAttentionOutput});
  model.types.front().gradients = {false, false};
  CHECK(bytes_beside_offload(model).offloaded == 0);
}

TEST_CASE("offload: a stage holds less, for as many layers as it has") {
  const auto stage = [](model::OffloadModules offloaded) {
    const model::Model model = offloading_llama(offloaded);
    const auto units = unit_costs(model, shape_with_bus(64), {}, 1);
    REQUIRE(units);
    return stage_cost(*units, model::signature(model, 0, 32), {});
  };
  const StageCost with = stage({kCoreAttention, kAttentionOutput});
  const StageCost without = stage({});
  const double layer = 2.0 * 2'048 * (2 * 4'096 + 2 * 1'024);
  CHECK((without.activation - with.activation).as_double() == Approx(32 * layer).epsilon(1e-6));
  CHECK(with.static_memory() == without.static_memory());
  CHECK(with.peak(1) < without.peak(1));
}
