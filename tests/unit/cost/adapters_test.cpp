// What low-rank adapters cost on Llama 3 8B: parameters under tensor parallelism, time, and what is kept.
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/stage.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;
using enum model::AdapterTarget;

namespace {

model::Model llama(std::optional<model::Adapters> adapters) {
  model::JobOverrides overrides;
  overrides.sequence_length = 2048;
  overrides.adapters = std::move(adapters);
  return shipped_model("llama-3-8b.yaml", overrides);
}

model::Adapters beside(model::AdapterTargets targets, std::int64_t rank = 16) { return {rank, rank, targets}; }

/// The same without adapters: frozen, and gradients pass.
model::BlockType without(model::BlockType block) {
  block.adapters = {};
  return block;
}

BlockTime time_of(const model::BlockType& block, const model::Job& job, const Degrees& degrees = {}) {
  return block_time(block, job, degrees, 1, shape_of(round_gpu(), 1, degrees.gpus()));
}

}  // namespace

TEST_CASE("adapters: tp splits them where it splits what they stand beside") {
  const model::BlockType all = llama(beside({})).block(0);
  // 4096 wide; 32 heads and 8 of keys and values, 128 wide; 14336 inside.
  const double inputs = 5 * 4096, outputs = 4096 + 2 * 1024 + 2 * 14336;  // of queries, keys, values, gate and up
  const double back_inputs = 4096 + 14336, back_outputs = 2 * 4096;
  const auto trained = [&](int tp) { return local_trained_parameters(all, {.tp = tp}).shared; };
  CHECK(trained(1) == 16 * (inputs + outputs + back_inputs + back_outputs));
  CHECK(trained(4) == 16 * (inputs + back_outputs + (outputs + back_inputs) / 4));
  // A key-value head is on two ranks.
  CHECK(trained(16) == 16 * (inputs + back_outputs + (outputs + back_inputs) / 16 + 2 * 1024 * (1.0 / 8 - 1.0 / 16)));
  CHECK(local_parameters(all, {.tp = 4}).shared - local_parameters(without(all), {.tp = 4}).shared == trained(4));
}

TEST_CASE("adapters: time is that of frozen weights and of their own products") {
  const model::Model model = llama(beside({kQuery, kDown}));
  const BlockTime adapted = time_of(model.block(0), model.job);
  const BlockTime frozen = time_of(without(model.block(0)), model.job);
  const BlockTime trained = time_of(model::plain(model.block(0)), model.job);
  const double products = 2.0 * 2048 * 16 * (4096 + 4096 + 14336 + 4096) / 100e12;
  CHECK(adapted.compute.forward - frozen.compute.forward > products);
  CHECK(adapted.compute.backward - frozen.compute.backward > 2 * products);
  CHECK(adapted.compute.backward < 0.7 * trained.compute.backward);
  CHECK(adapted.tensor.forward == frozen.tensor.forward);
}

TEST_CASE("adapters: more of them, and wider ones, take longer; beside fused matrices there are fewer") {
  const auto time = [](const model::Adapters& adapters, bool fused = false) {
    model::Model model = llama(adapters);
    model.job.fused_kernels = fused;
    const BlockTime of_block = time_of(model.block(0), model.job, {.tp = 2});
    return of_block.compute.forward + of_block.compute.backward;
  };
  model::AdapterTargets targets;
  double before = 0;
  for (const auto& [name, target] : model::kAdapterTargets) {
    targets.add(target);
    const double now = time(beside(targets));
    CHECK(now > before);
    before = now;
  }
  CHECK(time(beside({}, 64)) > time(beside({}, 16)));
  CHECK(time(beside({}), true) < time(beside({})));
}

TEST_CASE("adapters: kept is what they read, what passes between their products, and what gradients pass through") {
  const auto kept = [](std::optional<model::Adapters> adapters, bool freeze = false) {
    const model::Model model = llama(std::move(adapters));
    const model::BlockType block = freeze ? without(model.block(0)) : model.block(0);
    return block_activation(block, model.job, {}, 1).none / (2.0 * 2048);  // values a token
  };
  const double frozen = kept(beside({}), true);
  CHECK(kept(std::nullopt) - frozen == 2 * 4096 + 14336);  // behind norms, and behind the activation
  CHECK(kept(beside({kQuery})) - frozen == 4096 + 16);
  CHECK(kept(beside({kQuery, kKey, kValue})) - frozen == 4096 + 3 * 16);
  CHECK(kept(beside({kOutput})) - frozen == 16);  // attention keeps what it gives
  CHECK(kept(beside({kDown})) - frozen == 14336 + 16);
  CHECK(kept(beside({})) == kept(std::nullopt) + 7 * 16);
}

// PEFT: 4 bytes of each value, instead of 2 of those that several read together.
TEST_CASE("adapters in a framework's operators are in fp32 and keep an input each") {
  const auto kept = [](const model::Adapters& adapters) {
    model::Model model = llama(adapters);
    model.job.eager_operators = model::kAllEager;
    return block_activation(model.block(0), model.job, {}, 1).none / 2048;  // bytes a token
  };
  const double none = kept(beside({kOutput})) - 4 * (4096 + 16);
  CHECK(kept(beside({kQuery})) - none == 4 * (4096 + 16));
  CHECK(kept(beside({kQuery, kKey, kValue})) - none == 3 * 4 * (4096 + 16));
  CHECK(kept(beside({kDown})) - none == 4 * (14336 + 16));
  const auto time = [](bool eager) {
    model::Model model = llama(beside({}));
    const BlockTime frozen = time_of(without(model.block(0)), model.job);
    model.job.eager_operators = eager ? model::kAllEager : model::EagerOperators{};
    const BlockTime adapted = time_of(model.block(0), model.job);
    return adapted.compute.forward + adapted.compute.backward - frozen.compute.forward - frozen.compute.backward;
  };
  CHECK(time(true) > 2 * time(false));
  // Each operator alone adds its own time.
  const auto seconds = [](const model::EagerOperators& eager) {
    model::Model model = llama(beside({}));
    model.job.eager_operators = eager;
    const BlockTime block = time_of(model.block(0), model.job);
    return block.compute.forward + block.compute.backward;
  };
  double added = 0;
  for (const auto& [_, each] : model::kEagerOperatorNames) {
    const double own = seconds({each}) - seconds({});
    CHECK(own > 0);
    added += own;
  }
  CHECK(seconds(model::kAllEager) - seconds({}) == Approx(added));
  cluster::GpuType without_fp32 = a100();
  for (const DType wide : {DType::kFp32, DType::kTf32})
    without_fp32.peak[static_cast<std::size_t>(wide)] = FlopsPerSecond(0);
  CHECK(device_rates(without_fp32, llama(beside({})).job).single > 0);
}

TEST_CASE("adapters: they alone have gradients, state and sums over copies") {
  const auto stage = [](std::optional<model::Adapters> adapters) {
    const model::Model model = llama(std::move(adapters));
    const auto units = unit_costs(model, shape_of(a100(), 1, 4), {.tp = 2, .dp = 2}, 2);
    REQUIRE(units);
    return stage_cost(*units, model::signature(model, 0, 32), {});
  };
  const StageCost all = stage(std::nullopt);
  const StageCost adapted = stage(beside({}));
  const auto trained =
      static_cast<std::int64_t>(32 * local_trained_parameters(llama(beside({})).block(0), {.tp = 2}).shared);
  CHECK(adapted.gradients == Bytes(4 * trained));
  CHECK(adapted.optimizer_state == Bytes(12 * trained));
  CHECK(adapted.gradient_volume == Bytes(std::int64_t{4} * 41'943'040));
  CHECK(adapted.parameters - all.parameters == Bytes(2 * trained));
  CHECK(20 * to_seconds(adapted.gradient_sync) < to_seconds(all.gradient_sync));
  CHECK(adapted.backward < all.backward);
}

TEST_CASE("adapters: bounds on time stay below") {
  const model::Model model = llama(beside({}));
  const auto units = unit_costs(model, shape_of(a100(), 1, 1), {.tp = 1}, 1);
  REQUIRE(units);
  CHECK(least_gpu_seconds(model, model.types[0], a100()) <= units->blocks[0].forward + units->blocks[0].backward);
}

namespace {

model::Adapters in_four_bits(model::BaseQuantization base) {
  model::Adapters adapters = beside({});
  adapters.base = base;
  return adapters;
}

}  // namespace

TEST_CASE("adapters: a base in 4 bits holds matrices of layers in 4.5 or 4.127 bits, and the rest as it is") {
  using enum model::BaseQuantization;
  // Of Llama 3 8B, arXiv 2305.14314, section 3: 0.373 bits a parameter less with double quantization.
  const double matrices = 32.0 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336);
  const auto held = [](model::BaseQuantization base) { return llama(in_four_bits(base)).held_parameters(); };
  CHECK(held(kNone) == static_cast<double>(llama(beside({})).total_parameters()));
  CHECK(held(kNone) - held(kNf4) == Approx(matrices * (1 - 4.5 / 16)));
  CHECK(8 * 2 * (held(kNf4) - held(kNf4Double)) / matrices == Approx(0.373).epsilon(0.01));
  const model::BlockType block = llama(in_four_bits(kNf4)).block(0);
  const auto local = [&](int tp) { return local_held_parameters(block, model::Job{}, {.tp = tp}).shared; };
  const auto whole = [&](int tp) { return local_parameters(block, {.tp = tp}).shared; };
  CHECK(whole(4) - local(4) == Approx(matrices / 32 / 4 * (1 - 4.5 / 16)));
  CHECK(whole(16) - local(16) > (whole(1) - local(1)) / 16);  // a key-value head is on two ranks
}

TEST_CASE("adapters: matrices in 4 bits are written in 16 before each product, forward and backward") {
  const model::Model model = llama(in_four_bits(model::BaseQuantization::kNf4));
  const BlockTime quantized = time_of(model.block(0), model.job);
  const model::Model wide_model = llama(beside({}));
  const BlockTime wide = time_of(wide_model.block(0), wide_model.job);
  const double matrices = 2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 4096 * 14336;
  const double seconds = matrices * (4.5 / 8 + 2) / 1000e9;
  CHECK(quantized.compute.forward - wide.compute.forward == Approx(seconds));
  CHECK(quantized.compute.backward - wide.compute.backward == Approx(seconds));
  const ActivationBytes with = block_activation(model.block(0), model.job, {}, 1);
  const ActivationBytes without = block_activation(wide_model.block(0), wide_model.job, {}, 1);
  CHECK(with.none == without.none);
  CHECK(with.working - without.working == 2.0 * 4096 * 14336);
}

TEST_CASE("adapters: ZeRO-3 holds and gathers a base in 4 bits as it is") {
  const auto stage = [](model::BaseQuantization base, int zero) {
    const model::Model model = llama(in_four_bits(base));
    cluster::DeviceShape shape = shape_of(round_gpu(), 1, 4);
    shape.intra = {1_GBps, 0_us};  // gathers hide under nothing
    const auto units = unit_costs(model, shape, {.dp = 4}, 4);
    REQUIRE(units);
    return stage_cost(*units, model::signature(model, 1, 31), {.zero = zero});
  };
  using enum model::BaseQuantization;
  const double share = stage(kNf4, 3).parameters.as_double() / stage(kNone, 3).parameters.as_double();
  CHECK(share > 4.5 / 16);
  CHECK(share < 4.9 / 16);  // norms and adapters beside it
  CHECK(stage(kNf4, 3).transient < stage(kNone, 3).transient);
  CHECK(to_seconds(stage(kNf4, 3).forward) < 0.4 * to_seconds(stage(kNone, 3).forward));
}
