// One stage: hand-derived times and bytes, the policies, and one published measurement.
#include "tangram/cost/stage.hpp"

#include <utility>

#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/validity.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr std::int64_t kOneBucket = 1'000'000'000;  // parameters: as many as no model here has

model::Model small_model(int layers) { return model_of(llama_block(1024, 8, 8, 4096, 1024), layers, 32'000); }

UnitCosts units_of(const model::Model& model, const cluster::DeviceShape& shape, const Degrees& degrees, int samples) {
  auto units = unit_costs(model, shape, degrees, samples);
  REQUIRE(units.has_value());
  return *std::move(units);
}

MemoryPolicy policy(int zero, RecomputeMode recompute = RecomputeMode::kNone, int layers = 0) {
  return {zero, recompute, layers};
}

/// Of any number of the stage's layers, as if each number were asked for alone.
void check_full_recompute(const StageCoster& coster, int blocks) {
  const FullRecompute full(coster);
  for (int layers = 0; layers <= blocks; ++layers) {
    const RecomputeCost tried = full.at(layers);
    const RecomputeCost asked = coster.recompute(RecomputeMode::kFull, layers);
    CHECK(tried.backward == asked.backward);
    CHECK(tried.transient == asked.transient);
    CHECK(tried.activation == asked.activation);
  }
}

}  // namespace

TEST_CASE("one small block on paper") {
  // 1024 tokens, h 1024, 8 heads of 128, f 4096, on 100 TFLOP/s and 1000 GB/s. U = 1024 * 1024 values; microseconds.
  const double stream = 2 * 1024.0 * 1024 / 1e12 * 1e6;       // one pass over U values of 2 bytes: 2.097152
  const double h3 = 2 * 1024.0 * 1024 * 1024 / 100e12 * 1e6;  // a product of three 1024s: 21.47483648
  const double pairs = 8 * 1024 * 512.5;
  const double core_forward = 4 * 128 * pairs / (0.8 * 100e12) * 1e6;
  const double core_backward = 10 * 128 * pairs / (0.7 * 100e12) * 1e6;
  // QKV 3, output 1, gate and up 8, down 4 products. Streams: two norms of 2 passes (backward 3), two residual
  // additions of 3, rotation of Q and K 2 * 2, activation 3 over 4 U (backward 5).
  const double forward = 16 * h3 + core_forward + stream * (2 * 2 + 2 * 3 + 4 + 3 * 4);
  const double backward = 2 * 16 * h3 + core_backward + stream * (2 * 3 + 2 * 3 + 4 + 5 * 4);
  const model::Model model = small_model(1);
  const BlockTime time = block_time(model.types.front(), model.job, {}, 1, shape_of(round_gpu(), 1, 1));
  CHECK(time.compute.forward * 1e6 == Approx(forward));
  CHECK(time.compute.backward * 1e6 == Approx(backward));
  CHECK(time.communication.forward == 0);
  CHECK(time.communication.backward == 0);
  // Selective recompute repeats the two norms.
  CHECK(time.selective_compute * 1e6 == Approx(2 * 2 * stream));
}

TEST_CASE("a stage takes as long as the fullest of its replicas") {
  // 32 samples on 6 ranks are 6 + 6 + 5 + 5 + 5 + 5: the time and memory of 6 samples on every rank.
  const Degrees degrees{.tp = 1, .cp = 1, .dp = 6};
  CHECK(degrees.most_samples(32) == 6);
  const model::Model model = small_model(2);
  const cluster::DeviceShape shape = shape_of(a100(), 1, 6);
  const model::SliceSignature slice = model::signature(model, 0, 2);
  const auto cost = [&](int samples) {
    return stage_cost(units_of(model, shape, degrees, samples), slice, policy(1, RecomputeMode::kFull, 1));
  };
  CHECK(cost(32) == cost(36));
  CHECK(cost(32) == cost(31));
  CHECK(cost(30).forward < cost(31).forward);
  const ActivationBytes block = block_activation(model.types.front(), model.job, degrees, 6);
  const double ends = embedding_activation(model, degrees, 6).none + head_activation(model, degrees, 6).none;
  CHECK(cost(32).activation.as_double() == Approx(block.full + block.none + ends));
  // What enters and leaves, twice: 6 samples of 1024 tokens of 1024 values in 2 bytes at each cut, none at the ends.
  const model::SliceSignature inner = model::signature(small_model(3), 1, 2);
  CHECK(boundary_buffers(units_of(small_model(3), shape, degrees, 32), inner) == 2 * 6 * (2 * 1024.0 * 1024 * 2));
}

TEST_CASE("tensor parallelism exchanges twice a block and direction") {
  // tp 4: two all-reduces of 2 * 1024 * 1024 bytes; with sequence parallelism an all-gather and a reduce-scatter each.
  const model::Model model = small_model(1);
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 4);
  const Group group{4, 1, 1};
  const double bytes = 2.0 * 1024 * 1024;
  const double all_reduce = collective_seconds(Collective::kAllReduce, bytes, group, shape);
  const double halves = collective_seconds(Collective::kAllGather, bytes, group, shape) +
                        collective_seconds(Collective::kReduceScatter, bytes, group, shape);
  const BlockTime plain = block_time(model.types.front(), model.job, tensor(4, false), 1, shape);
  CHECK(plain.communication.forward == Approx(2 * all_reduce));
  CHECK(plain.communication.backward == Approx(2 * all_reduce));
  const BlockTime sequence = block_time(model.types.front(), model.job, tensor(4, true), 1, shape);
  CHECK(sequence.communication.forward == Approx(2 * halves));
  CHECK(sequence.communication.backward == Approx(2 * halves));

  model::BlockType parallel = model.types.front();
  parallel.parallel_attention = true;
  CHECK(block_time(parallel, model.job, tensor(4, false), 1, shape).communication.forward == Approx(all_reduce));
}

TEST_CASE("the ring of context parallelism shows only what attention does not hide") {
  // cp 2: K and V of 512 tokens, 2 * 512 * 2048 bytes, travel once: the call and under 1 us at 3000 GB/s, hidden under
  // half of the attention core's 13 us.
  const model::Model model = small_model(1);
  Degrees degrees;
  degrees.cp = 2;
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 2);
  shape.intra = {3000_GBps, 100_ns};
  CHECK(block_time(model.types.front(), model.job, degrees, 1, shape).communication.forward == 0);

  // At 1 GB/s: all-gather of S = 2 * 2 MiB: call + alpha + S/2 / (1 GB/s * share); the attention core takes
  // 2 * 8 heads * 512 queries * 512.5 keys * 256 FLOPs, half of it hides.
  shape.intra = {1_GBps, 3_us};
  const double ring = kCollectiveCall + 3e-6 + 2.0 * 512 * 2048 / (1e9 * kInsideShare);
  const double core = 4 * 128 * 8 * 512 * 512.5 / (0.8 * 100e12);
  CHECK(block_time(model.types.front(), model.job, degrees, 1, shape).communication.forward == Approx(ring - core / 2));
}

TEST_CASE("expert parallelism dispatches and combines") {
  // ep 4 on one member, top 2 of 1024 tokens: 2048 rows of 2048 bytes, times the imbalance, there and back.
  const model::Model model = model_of(moe_block(1024, 8, 8, 2048, 1024), 1, 32'000);
  Degrees degrees = data(4);
  degrees.ep = 4;
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 4);
  const double bytes = 2048.0 * 2048 * model::Job{}.routing_imbalance;
  const BlockTime time = block_time(model.types.front(), model.job, degrees, 1, shape);
  CHECK(time.communication.forward == Approx(2 * collective_seconds(Collective::kAllToAll, bytes, {4, 1, 1}, shape)));
}

TEST_CASE("state of a whole model is 18 bytes a parameter") {
  // 128-aligned vocabulary, untied, so nothing is padded: parameters + gradients + optimizer = 18 P exactly.
  const model::Model model = small_model(4);
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1);
  const StageCost cost = stage_cost(units, whole(model), policy(0));
  CHECK(cost.static_memory().value() == 18 * model.total_parameters());
  CHECK(cost.gradient_volume.value() == 4 * model.total_parameters());
}

TEST_CASE("ZeRO shards state, not replicas of work") {
  const model::Model model = small_model(4);
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 8), data(8), 8);
  const std::int64_t parameters = model.total_parameters();
  const auto bytes = [&](int zero) { return stage_cost(units, whole(model), policy(zero)).static_memory().value(); };
  CHECK(bytes(0) == 18 * parameters);
  CHECK(bytes(1) == 6 * parameters + 12 * parameters / 8);
  CHECK(bytes(2) == 2 * parameters + 16 * parameters / 8);
  CHECK(bytes(3) == 18 * parameters / 8);
}

TEST_CASE("gradient synchronisation by ZeRO stage") {
  // 8 ranks in one member: ring all-reduce is two halves; ZeRO-1 pays one half as sync and the parameter half in its
  // step; ZeRO-2 and 3 reduce inside backward. The embedding's gradient is reduced behind backward: with the step.
  model::Model model = small_model(4);
  model.job.gradient_bucket = kOneBucket;
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 8);
  const UnitCosts units = units_of(model, shape, data(8), 8);
  const double parameters = static_cast<double>(model.total_parameters());
  const double embedding = units.embedding.trained_shared;
  REQUIRE(embedding > 0);
  const auto exchange = [&](Collective kind, double bytes) {
    return collective_seconds(kind, bytes, {8, 1, 1}, shape);
  };
  const auto stage = [&](int zero) { return stage_cost(units, whole(model), policy(zero)); };
  CHECK(to_seconds(stage(0).gradient_sync) ==
        Approx(exchange(Collective::kAllReduce, 4 * (parameters - embedding))).epsilon(1e-6));
  CHECK(to_seconds(stage(1).gradient_sync) ==
        Approx(exchange(Collective::kReduceScatter, 4 * (parameters - embedding))).epsilon(1e-6));
  CHECK(stage(2).gradient_sync == 0_ns);
  CHECK(stage(3).gradient_sync == 0_ns);
  // Step: 2 * 4 + 2 * 12 + 2 = 34 bytes a parameter at 1000 GB/s, an eighth of them from ZeRO-1 on.
  const double reduced = exchange(Collective::kAllReduce, 4 * embedding);
  const double scattered = exchange(Collective::kReduceScatter, 4 * embedding);
  const double gather = exchange(Collective::kAllGather, 2 * parameters);
  CHECK(to_seconds(stage(0).optimizer_step) == Approx(34 * parameters / 1e12 + reduced).epsilon(1e-6));
  CHECK(to_seconds(stage(1).optimizer_step) == Approx(34 * parameters / 8 / 1e12 + scattered + gather).epsilon(1e-6));
  CHECK(to_seconds(stage(3).optimizer_step) == Approx(34 * parameters / 8 / 1e12).epsilon(1e-6));
  CHECK(stage(1).forward == stage(0).forward);
  // Beside the next forward pass four fifths of that hide of it, which are slower for it; not the embedding's.
  model::Model beside = model;
  beside.job.overlap_gather = true;
  const StageCost hidden = stage_cost(units_of(beside, shape, data(8), 8), whole(model), policy(1));
  const double exposed = exchange(Collective::kAllGather, 2 * embedding) +
                         seconds_beside(exchange(Collective::kAllGather, 2 * (parameters - embedding)),
                                        kSyncOverlap * to_seconds(stage(1).forward));
  // The forward pass is rounded up to a nanosecond.
  CHECK(to_seconds(hidden.optimizer_step) ==
        Approx(34 * parameters / 8 / 1e12 + scattered + exposed).epsilon(1e-6).margin(1e-9));
  CHECK(hidden.forward == stage(1).forward);
}

TEST_CASE("where each of two optimizers gathers all parameters, those come twice, unless beside the next pass") {
  model::Model model = model_of(moe_block(256, 8, 4, 512, 256), 4, 1000);
  const Degrees spread{.dp = 8, .ep = 4};
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 8);
  const auto step = [&](int zero) {
    return to_seconds(stage_cost(units_of(model, shape, spread, 8), whole(model), policy(zero)).optimizer_step);
  };
  const auto added = [&](int zero) {
    shape.methods.gathered_by_each_optimizer = false;
    const double once = step(zero);
    shape.methods.gathered_by_each_optimizer = true;
    return step(zero) - once;
  };
  const UnitCosts units = units_of(model, shape, spread, 8);
  const double ends = units.embedding.trained_shared + units.head.trained_shared;
  const double shared = ends + 4 * units.blocks[0].trained_shared;
  const double experts = 4 * units.blocks[0].trained_expert;
  const double gather = collective_seconds(Collective::kAllGather, 2 * shared, units.groups.shards, shape) +
                        collective_seconds(Collective::kAllGather, 2 * experts, units.groups.expert_shards, shape);
  CHECK(added(0) == 0);
  CHECK(added(1) == Approx(gather).epsilon(1e-3));
  model.job.overlap_gather = true;
  CHECK(added(1) == 0);
}

TEST_CASE("a first stage exchanges gradients and parameters bucket by bucket, others as a whole") {
  model::Model model = small_model(4);
  model.job.overlap_gather = true;
  const cluster::DeviceShape shape = shape_of(round_gpu(), 1, 8);
  const UnitCosts whole_units = units_of(model, shape, data(8), 8);
  CHECK(whole_units.gradient_bucket == 40e6);
  CHECK(units_of(model, shape_of(round_gpu(), 8, 8), data(64), 64).gradient_bucket == 64e6);
  model.job.gradient_bucket = 1'000'000;
  const UnitCosts units = units_of(model, shape, data(8), 8);
  const double inner_parameters = static_cast<double>(model.total_parameters()) - units.embedding.trained_shared;
  const double buckets = inner_parameters / 1e6;
  REQUIRE(buckets > 10);
  const auto exchange = [&](Collective kind, double bytes) {
    return collective_seconds(kind, bytes, {8, 1, 1}, shape);
  };
  const StageCost cost = stage_cost(units, whole(model), policy(1));
  CHECK(to_seconds(cost.gradient_sync) == Approx(buckets * exchange(Collective::kReduceScatter, 4e6)).epsilon(1e-6));
  const double gather =
      exchange(Collective::kAllGather, 2 * units.embedding.trained_shared) +
      seconds_beside(buckets * exchange(Collective::kAllGather, 2e6), kSyncOverlap * to_seconds(cost.forward));
  const double scatter = exchange(Collective::kReduceScatter, 4 * units.embedding.trained_shared);
  const double step = 34 * static_cast<double>(model.total_parameters()) / 8 / 1e12;
  CHECK(to_seconds(cost.optimizer_step) == Approx(step + scatter + gather).epsilon(1e-6).margin(1e-9));
  CHECK(stage_cost(units, inner(4), policy(1)).gradient_sync ==
        stage_cost(whole_units, inner(4), policy(1)).gradient_sync);
}

TEST_CASE("ZeRO inside groups holds a copy a group, and the groups reduce what they share") {
  // 2 members x 4, groups of 4: the four shards of the gradients are all-reduced between the members, all at once.
  model::Model model = small_model(4);
  model.job.gradient_bucket = kOneBucket;
  const cluster::DeviceShape shape = shape_of(round_gpu(), 2, 4);
  const UnitCosts units = units_of(model, shape, {.dp = 8, .dp_replicate = 2}, 8);
  CHECK(units.groups.shards == Group{4, 1, 1});
  CHECK(units.groups.copies == Group{1, 2, 4});
  const std::int64_t parameters = model.total_parameters();
  const auto stage = [&](int zero) { return stage_cost(units, whole(model), policy(zero)); };
  CHECK(stage(1).static_memory().value() == 6 * parameters + 12 * parameters / 4);
  CHECK(stage(2).static_memory().value() == 2 * parameters + 16 * parameters / 4);
  CHECK(stage(3).static_memory().value() == 18 * parameters / 4);
  // The embedding's gradient is reduced behind backward, in both ways.
  const double last = 4 * units.embedding.trained_shared;
  const double bytes = 4 * static_cast<double>(parameters) - last;
  const auto inside_of = [&](double part) {
    return collective_seconds(Collective::kReduceScatter, part, {4, 1, 1}, shape);
  };
  const auto among_of = [&](double part) {
    return collective_seconds(Collective::kAllReduce, part / 4, {1, 2, 4}, shape);
  };
  const double inside = inside_of(bytes);
  const double among = among_of(bytes);
  const double step = 34 * static_cast<double>(parameters) / 4 / 1e12;
  CHECK(to_seconds(stage(1).optimizer_step - stage(3).optimizer_step) ==
        Approx(inside_of(last) +
               collective_seconds(Collective::kAllGather, 2 * static_cast<double>(parameters), {4, 1, 1}, shape))
            .epsilon(1e-6));
  CHECK(to_seconds(stage(3).optimizer_step) == Approx(step + among_of(last)).epsilon(1e-6));
  CHECK(to_seconds(stage(1).gradient_sync) == Approx(inside + among).epsilon(1e-6));
  CHECK(to_seconds(stage(2).gradient_sync) == Approx(among).epsilon(1e-6));
  CHECK(to_seconds(stage(3).gradient_sync) == Approx(among).epsilon(1e-6));
  // Gathers as in one member of four.
  const UnitCosts four = units_of(model, shape_of(round_gpu(), 1, 4), data(4), 4);
  CHECK(units.blocks[0].zero3_gather == four.blocks[0].zero3_gather);
  CHECK(stage(3).forward == stage_cost(four, whole(model), policy(3)).forward);
  // Groups of two members share the network with the all-reduce, which hides under nothing that gathers.
  const UnitCosts wide = units_of(model, shape_of(round_gpu(), 4, 2), {.dp = 8, .dp_replicate = 2}, 8);
  const StageCost crossing = stage_cost(wide, whole(model), policy(3));
  const double busy = 4 * wide.blocks[0].zero3_busy + wide.embedding.zero3_busy + wide.head.zero3_busy;
  CHECK(
      to_seconds(crossing.gradient_sync) ==
      Approx(collective_seconds(Collective::kAllReduce, bytes / 4, wide.groups.copies, wide.shape) + kSyncHidden * busy)
          .epsilon(1e-5));
}

TEST_CASE("experts shard over what of a group holds them") {
  // 2 members x 4. A set of two experts a rank spans two ranks: a group of four holds two sets, which share shards.
  // Over all eight ranks there is one set, which both groups hold together: nothing of experts is left to shard.
  const model::Model model = model_of(moe_block(1024, 8, 8, 2048, 1024), 1, 32'000);
  const cluster::DeviceShape shape = shape_of(round_gpu(), 2, 4);
  const ProcessGroups pairs = process_groups({.dp = 8, .ep = 2, .dp_replicate = 2}, shape);
  CHECK(pairs.expert_shards == Group{2, 1, 1});
  CHECK(pairs.expert_copies.size() == 2);
  const ProcessGroups whole = process_groups({.dp = 8, .ep = 4, .dp_replicate = 2}, shape);
  CHECK(whole.expert_shards.size() == 1);
  CHECK(whole.expert_copies.size() == 2);
  const ProcessGroups spread = process_groups({.dp = 8, .ep = 8, .dp_replicate = 2}, shape);
  CHECK(spread.expert_shards.size() == 1);
  CHECK(spread.expert_copies.size() == 1);
  CHECK(why_unsupported(model, {.dp = 8, .ep = 8, .dp_replicate = 2}, 8).empty());
  CHECK(why_unsupported(model, {.dp = 8, .dp_replicate = 3}, 8) ==
        "8 data-parallel ranks cannot be divided by dp_replicate 3");
  CHECK(why_unsupported(model, {.dp = 12, .ep = 2, .dp_replicate = 4}, 12) ==
        "6 replicas of an expert cannot be divided by dp_replicate 4");
}

namespace {

/// Two GPUs that exchange at 1 GB/s: a block's parameters take far longer than its compute.
cluster::DeviceShape slow_pair() {
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 2);
  shape.intra = {1_GBps, 3_us};
  return shape;
}

/// Seconds in which they gather or reduce so many bytes.
double pair_seconds(Collective kind, double bytes) { return collective_seconds(kind, bytes, {2, 1, 1}, slow_pair()); }

}  // namespace

TEST_CASE("ZeRO-3 exposes what compute cannot hide") {
  const model::Model model = small_model(1);
  cluster::DeviceShape shape = slow_pair();
  const UnitCosts units = units_of(model, shape, data(2), 2);
  const BlockTime time = block_time(model.types.front(), model.job, data(2), 1, shape);
  const UnitCost& block = units.blocks.front();
  const double gather = pair_seconds(Collective::kAllGather, 2 * block.shared_parameters);
  const double scatter = pair_seconds(Collective::kReduceScatter, 4 * block.shared_parameters);
  // The exchange sticks out by what compute does not reach, and a share of the time that both run is lost.
  CHECK(block.zero3_gather == Approx(gather - (1 - kOverlapLoss) * time.compute.forward));
  CHECK(block.zero3_backward == Approx(gather + scatter - (1 - kOverlapLoss) * time.compute.backward));
  const StageCost plain = stage_cost(units, inner(1), policy(0));
  const StageCost sharded = stage_cost(units, inner(1), policy(3));
  CHECK(to_seconds(sharded.forward - plain.forward) == Approx(block.zero3_gather).epsilon(1e-5));
  CHECK(to_seconds(sharded.backward - plain.backward) == Approx(block.zero3_backward).epsilon(1e-5));
}

TEST_CASE("what ZeRO-3 gathers between two backward passes, these wait for") {
  const model::Model model = small_model(1);
  cluster::DeviceShape shape = slow_pair();
  const UnitCost beside = units_of(model, shape, data(2), 2).blocks.front();
  shape.methods.gathers_between = true;
  const UnitCost between = units_of(model, shape, data(2), 2).blocks.front();
  const double gather = pair_seconds(Collective::kAllGather, 2 * beside.shared_parameters);
  const double scatter = pair_seconds(Collective::kReduceScatter, 4 * beside.shared_parameters);
  CHECK(between.zero3_gather == beside.zero3_gather);
  CHECK(between.zero3_backward == Approx(gather + scatter));
}

TEST_CASE("ZeRO-3 that reduces once keeps whole gradients, and reduces them as ZeRO-1 does") {
  const model::Model model = small_model(1);
  cluster::DeviceShape shape = slow_pair();
  const BlockTime time = block_time(model.types.front(), model.job, data(2), 1, shape);
  const UnitCosts each = units_of(model, shape, data(2), 2);
  shape.methods.reduced_once = true;
  const UnitCosts once = units_of(model, shape, data(2), 2);
  const UnitCost& block = once.blocks.front();
  const double gather = pair_seconds(Collective::kAllGather, 2 * block.shared_parameters);
  CHECK(block.zero3_backward == Approx(gather - (1 - kOverlapLoss) * time.compute.backward));
  const StageCost per_microbatch = stage_cost(each, inner(1), policy(3));
  const StageCost at_the_end = stage_cost(once, inner(1), policy(3));
  CHECK(per_microbatch.gradient_sync == Nanoseconds(0));
  const Nanoseconds scattered = stage_cost(once, inner(1), policy(1)).gradient_sync;
  CHECK(to_seconds(at_the_end.gradient_sync - scattered) == Approx(kSyncHidden * block.zero3_busy).epsilon(1e-5));
  CHECK(at_the_end.gradients.value() == 2 * per_microbatch.gradients.value());
  CHECK(at_the_end.optimizer_state == per_microbatch.optimizer_state);
}

TEST_CASE("what a loop gathers first, its pass waits for, and nothing is gathered ahead") {
  const model::Model model = small_model(1);
  cluster::DeviceShape shape = slow_pair();
  const BlockTime time = block_time(model.types.front(), model.job, data(2), 1, shape);
  shape.methods.scheduled = true;
  const UnitCosts ahead = units_of(model, shape, data(2), 2);
  const double bytes = 2 * ahead.blocks.front().shared_parameters;
  const double gather = pair_seconds(Collective::kAllGather, bytes);
  const double scatter = pair_seconds(Collective::kReduceScatter, 2 * bytes);
  shape.methods.gather_barrier = bytes / 4;
  const UnitCosts units = units_of(model, shape, data(2), 2);
  const UnitCost& block = units.blocks.front();
  // A quarter waits; of the rest kOverlapLoss of what runs beside it, which is all of the pass.
  CHECK(block.zero3_gather == Approx(gather - (1 - kOverlapLoss) * time.compute.forward));
  CHECK(block.zero3_backward == Approx(gather + scatter - (1 - kOverlapLoss) * time.compute.backward));
  shape.methods.gather_barrier = 2 * bytes;
  CHECK(units_of(model, shape, data(2), 2).blocks.front().zero3_gather == Approx(gather));
  // One unit's parameters are there, not the next one's as well.
  const auto transient = [](const UnitCosts& of) { return stage_cost(of, inner(1), policy(3)).transient.as_double(); };
  CHECK(transient(ahead) - transient(units) == Approx(bytes).epsilon(1e-6));
}

TEST_CASE("a compiler has gradients of one tensor at a time") {
  const model::Model model = small_model(1);
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 2);
  const auto stage = [&] { return stage_cost(units_of(model, shape, data(2), 2), inner(1), policy(3)).transient; };
  const UnitCost whole = units_of(model, shape, data(2), 2).blocks.front();
  CHECK(whole.tensor_share == 1);
  const Bytes before = stage();
  shape.methods.scheduled = true;
  const UnitCost block = units_of(model, shape, data(2), 2).blocks.front();
  const auto& feed_forward = model.types.front().feed_forward;
  const auto matrix = static_cast<double>(model.hidden * feed_forward.hidden);
  CHECK(block.tensor_share == Approx(matrix / block.shared_parameters));
  CHECK((before - stage()).as_double() == Approx(4 * (block.shared_parameters - matrix)).epsilon(1e-6));
}

TEST_CASE("a compiler keeps nothing that it recomputes, and runs the output projection again where it is told to") {
  model::Model model = small_model(1);
  model.job.flash_attention = true;
  model.job.recompute_modules = {model::RecomputeModule::kNorms, model::RecomputeModule::kCoreAttention};
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 1);
  const auto unit = [&] { return units_of(model, shape, {}, 2).blocks.front(); };
  const model::BlockType& block = model.types.front();
  const LocalBlock local = local_block(block, model.job, {}, 2);
  const double output = local.tokens * local.core.heads * local.core.v_dim;
  const UnitCost kept = unit();
  shape.methods.scheduled = true;
  const UnitCost dropped = unit();
  CHECK(kept.activation_selective - dropped.activation_selective == Approx(local.element * output));
  CHECK(kept.activation_none == dropped.activation_none);
  CHECK(kept.recompute_selective == dropped.recompute_selective);
  shape.methods.output_again = true;
  const UnitCost again = unit();
  CHECK(dropped.activation_selective - again.activation_selective == Approx(local.element * local.rows * local.hidden));
  const DeviceRates rates = device_rates(shape.device, model.job);
  const double product =
      linear_seconds(local.tokens, local.core.heads * local.core.v_dim, local.hidden, 1, local.element,
                     static_cast<double>(model.job.gradient_bytes), rates.matrix, rates, {})
          .forward;
  CHECK(again.recompute_selective - dropped.recompute_selective == Approx(product));
}

TEST_CASE("recompute that stops early leaves out the last product of a block") {
  model::Model model = small_model(1);
  model.job.recompute_modules = {model::RecomputeModule::kFeedForward};
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 2);
  const Degrees tensor{.tp = 2};
  const UnitCost whole = units_of(model, shape, tensor, 2).blocks.front();
  CHECK(whole.recompute_full == whole.forward);
  shape.methods.early_stop = true;
  const UnitCost early = units_of(model, shape, tensor, 2).blocks.front();
  const model::BlockType& block = model.types.front();
  const LocalBlock local = local_block(block, model.job, tensor, 2);
  const DeviceRates rates = device_rates(shape.device, model.job);
  const double product = linear_seconds(local.tokens, local.dense, local.hidden, 1, local.element,
                                        static_cast<double>(model.job.gradient_bytes), rates.matrix, rates, {})
                             .forward;
  const double exchange =
      collective_seconds(Collective::kAllReduce, local.element * local.tokens * local.hidden, {2, 1, 1}, shape);
  CHECK(early.recompute_full == Approx(whole.recompute_full - product - exchange));
  CHECK(early.recompute_selective == Approx(whole.recompute_selective - product - exchange));
  CHECK(early.forward == whole.forward);
  CHECK(early.backward == whole.backward);
}

TEST_CASE("recompute that stops early leaves out the experts' second products and the way back") {
  model::Model model = small_model(1);
  model::FeedForward& feed_forward = model.types.front().feed_forward;
  feed_forward.experts = 4;
  feed_forward.experts_per_token = 2;
  feed_forward.expert_hidden = feed_forward.hidden;
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 2);
  const Degrees degrees{.dp = 2, .ep = 2};
  const UnitCost whole = units_of(model, shape, degrees, 2).blocks.front();
  CHECK(whole.recompute_full == whole.forward);
  shape.methods.early_stop = true;
  const UnitCost early = units_of(model, shape, degrees, 2).blocks.front();
  const LocalBlock local = local_block(model.types.front(), model.job, degrees, 1);
  const DeviceRates rates = device_rates(shape.device, model.job);
  const double products =
      linear_seconds(local.expert_rows / local.experts, local.expert_width, local.expert_input, local.experts,
                     local.element, static_cast<double>(model.job.gradient_bytes), rates.matrix, rates, {})
          .forward;
  const double left_out = whole.recompute_full - early.recompute_full;
  const double both_ways = block_time(model.types.front(), model.job, degrees, 1, shape).communication.forward;
  CHECK(left_out == Approx(products + both_ways / 2));
}

TEST_CASE("recompute that stops early leaves out the output projection of a block that mixes alone") {
  model::Model model = small_model(1);
  model.types.front().feed_forward = {};
  model.types.front().norms = 1;
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 1);
  const UnitCost whole = units_of(model, shape, {}, 2).blocks.front();
  shape.methods.early_stop = true;
  const UnitCost early = units_of(model, shape, {}, 2).blocks.front();
  const LocalBlock local = local_block(model.types.front(), model.job, {}, 2);
  const DeviceRates rates = device_rates(shape.device, model.job);
  const double product =
      linear_seconds(local.tokens, local.core.heads * local.core.v_dim, local.hidden, 1, local.element,
                     static_cast<double>(model.job.gradient_bytes), rates.matrix, rates, {})
          .forward;
  CHECK(early.recompute_full == Approx(whole.recompute_full - product));
}

TEST_CASE("ZeRO-3 without overlap exposes its whole exchange") {
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 4);
  const model::Model model = small_model(1);
  Degrees degrees;
  degrees.dp = 4;
  shape.methods.overlapped = false;
  const UnitCosts units = units_of(model, shape, degrees, 4);
  const double gathered =
      collective_seconds(Collective::kAllGather, 2 * units.blocks[0].shared_parameters, units.groups.data, shape);
  CHECK(units.blocks[0].zero3_gather == Approx(gathered));
}

TEST_CASE("gradients that kernels of their own accumulate cost a pass over them") {
  // bf16 gradients to fp32, 2 + 4 bytes, and added to the main ones, 4 + 4 + 4: 18 a parameter at 1000 GB/s.
  model::Model model = small_model(1);
  const UnitCosts fused = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1);
  model.job.fused_accumulation = false;
  const UnitCosts apart = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1);
  CHECK(apart.blocks[0].backward - fused.blocks[0].backward ==
        Approx(18 * fused.blocks[0].shared_parameters / 1e12).epsilon(1e-6));
  CHECK(apart.blocks[0].forward == fused.blocks[0].forward);
  model.job.gradient_bytes = 2;  // nothing to convert, but added all the same: 2 + 2 + 2
  const UnitCosts narrow = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1);
  model.job.fused_accumulation = true;
  const double none = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1).blocks[0].backward;
  CHECK(narrow.blocks[0].backward - none == Approx(6 * fused.blocks[0].shared_parameters / 1e12).epsilon(1e-6));
}

TEST_CASE("a sharded optimizer widens its share of 16-bit gradients when no activations are held") {
  // ZeRO-1 over two: 2 + 2 of parameters and gradients, 12 / 2 of state, 4 / 2 beside them in the step; all in one
  // block of even size.
  model::Model model = small_model(1);
  model.job.gradient_bytes = 2;
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 2), data(2), 2);
  const double parameters = units.blocks[0].shared_parameters;
  const StageCost small = stage_cost(units, inner(1), policy(1));
  CHECK(small.static_memory().as_double() == Approx(10 * parameters));
  CHECK(unit_terms(units, units.blocks[0], {1, RecomputeMode::kNone}).held == Approx(10 * parameters));
  // Activations take more than the copy: it shows nowhere. Of little else it is the peak, with one microbatch in
  // flight.
  model.job.gradient_bytes = 4;
  CHECK(small.transient ==
        stage_cost(units_of(model, shape_of(round_gpu(), 1, 2), data(2), 2), inner(1), policy(1)).transient);
  CHECK(units.update_bytes == 4);
  model.job.gradient_bytes = 2;
  model.job.optimizer.precision_aware = true;
  CHECK(units_of(model, shape_of(round_gpu(), 1, 2), data(2), 2).update_bytes == 0);
  UnitCosts large = units;
  large.update_bytes = 4'000'000;
  const StageCost step = stage_cost(large, inner(1), policy(1));
  CHECK(step.peak(1).as_double() == Approx((10 + 2'000'000) * parameters));
  CHECK(stage_cost(large, inner(1), policy(0)).transient == stage_cost(units, inner(1), policy(0)).transient);
  const ChunkedCost chunks = chunked_cost(large, {inner(1), inner(1)}, policy(1));
  CHECK((chunks.all.static_memory() + chunks.all.transient + chunks.chunks[0].activation).as_double() ==
        Approx(2 * (10 + 2'000'000) * parameters));
}

TEST_CASE("ZeRO-3 that lets parameters go after each pass gathers them for recompute as well") {
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, 4);
  const model::Model model = small_model(1);
  const auto recompute = [&](int zero) {
    const UnitCosts units = units_of(model, shape, data(4), 4);
    return stage_cost(units, inner(1), policy(zero, RecomputeMode::kFull, 1)).backward -
           stage_cost(units, inner(1), policy(zero)).backward;
  };
  const Nanoseconds kept = recompute(3);
  const Nanoseconds plain = recompute(1);
  CHECK(to_seconds(kept) == Approx(to_seconds(plain)).margin(2e-9));
  shape.methods.gathered_once = false;
  const double gather = units_of(model, shape, data(4), 4).blocks[0].zero3_gather;
  REQUIRE(gather > 0);
  CHECK(to_seconds(recompute(3) - kept) == Approx(gather).margin(2e-9));
  CHECK(recompute(1) == plain);
}

TEST_CASE("a mixture adds up what each block costs under its own policy") {
  // Four blocks of a middle stage on two replicas: the first under ZeRO-3 and recomputed in full, the second recomputed
  // selectively, all but the first under ZeRO-1.
  const model::Model model = small_model(6);
  const Degrees replicated{1, 1, 2, 1, 1, false};
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 2), replicated, 2);
  const model::SliceSignature slice = model::signature(model, 1, 5);
  MemoryPolicy mixed = policy(1);
  mixed.runs = {{1, {3, RecomputeMode::kFull}}, {1, {1, RecomputeMode::kSelective}}, {2, {1, RecomputeMode::kNone}}};
  const StageCost cost = stage_cost(units, slice, mixed);
  const StageCost plain = stage_cost(units, slice, policy(1));
  const UnitCost& u = units.blocks[0];
  CHECK(to_seconds(cost.forward) == Approx(4 * u.forward + u.zero3_gather).epsilon(1e-6));
  CHECK(to_seconds(cost.backward) ==
        Approx(4 * u.backward + u.zero3_backward + u.recompute_full + u.recompute_selective).epsilon(1e-6));
  CHECK(cost.activation.as_double() ==
        Approx(u.activation_full + u.activation_selective + 2 * u.activation_none).epsilon(1e-6));
  // Of n parameters a block ZeRO-1 holds n and n, and half of the state; ZeRO-3 half of everything.
  const double n = u.shared_parameters;
  CHECK(cost.parameters.as_double() == Approx(3.5 * n * static_cast<double>(units.parameter_bytes)).epsilon(1e-6));
  CHECK(cost.gradients.as_double() == Approx(3.5 * n * static_cast<double>(units.gradient_bytes)).epsilon(1e-6));
  CHECK(cost.optimizer_state == plain.optimizer_state);
  // The largest working set is the recomputed block's; beside it the sharded block's gradient and twice its parameters.
  const double buffers = n * static_cast<double>(units.gradient_bytes + 2 * units.parameter_bytes);
  const double cuts = boundary_buffers(units, slice);
  CHECK(cost.transient.as_double() ==
        Approx(u.working + u.activation_none - u.activation_full + buffers + cuts).epsilon(1e-6));
  // Three blocks' gradients are left for the end, and what the first exposes in backward hides nothing of them.
  const double scatter = collective_seconds(
      Collective::kReduceScatter, 3 * n * static_cast<double>(units.gradient_bytes), units.groups.data, units.shape);
  CHECK(to_seconds(cost.gradient_sync) == Approx(scatter + kSyncHidden * u.zero3_busy).epsilon(1e-5));
  CHECK(cost.gradient_volume == plain.gradient_volume);
}

TEST_CASE("blocks that are alike cost the same in runs") {
  const model::Model model = small_model(6);
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 2), {1, 1, 2, 1, 1, false}, 2);
  const model::SliceSignature slice = model::signature(model, 0, 6);
  for (const int zero : {0, 1, 2, 3}) {
    MemoryPolicy runs = policy(zero);
    runs.runs = {{2, {zero, RecomputeMode::kFull}}, {4, {zero, RecomputeMode::kNone}}};
    const StageCost a = stage_cost(units, slice, runs);
    const StageCost b = stage_cost(units, slice, policy(zero, RecomputeMode::kFull, 2));
    CHECK(a.forward == b.forward);
    CHECK(to_seconds(a.backward) == Approx(to_seconds(b.backward)));
    CHECK(a.gradient_sync == b.gradient_sync);
    CHECK(a.optimizer_step == b.optimizer_step);
    CHECK(a.static_memory() == b.static_memory());
    CHECK(a.transient == b.transient);
    CHECK(a.activation.as_double() == Approx(b.activation.as_double()));
  }
}

TEST_CASE("full recompute counts layers from the stage's first block") {
  // Two types: the first two blocks are of type 0, then three of type 1. Recomputing 3 layers: both of type 0, one
  // of 1.
  model::Model model = small_model(2);
  model.types.push_back(llama_block(1024, 8, 8, 8192, 1024));
  model.types.back().name = "wide";
  model.blocks = {0, 0, 1, 1, 1};
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1);
  model::SliceSignature slice;
  slice.runs = {{0, 2}, {1, 3}};
  const StageCost none = stage_cost(units, slice, policy(0));
  const StageCost three = stage_cost(units, slice, policy(0, RecomputeMode::kFull, 3));
  const UnitCost& a = units.blocks[0];
  const UnitCost& b = units.blocks[1];
  CHECK(three.activation.as_double() ==
        Approx(2 * a.activation_full + b.activation_full + 2 * b.activation_none).epsilon(1e-6));
  CHECK(to_seconds(three.backward - none.backward) == Approx(2 * a.forward + b.forward).epsilon(1e-5));
  CHECK(three.forward == none.forward);
  // The recomputed block is whole again while its backward runs.
  CHECK(three.transient.as_double() == Approx(b.working + b.activation_none - b.activation_full).epsilon(1e-6));
  // More layers than the stage has: all of them.
  CHECK(stage_cost(units, slice, policy(0, RecomputeMode::kFull, 9)) ==
        stage_cost(units, slice, policy(0, RecomputeMode::kFull, 5)));
}

TEST_CASE("a tied head holds a copy of the matrix only away from the embedding") {
  model::Model model = small_model(2);
  model.tied_embeddings = true;
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1);
  model::SliceSignature last = inner(1);
  last.head = true;
  last.tied_elsewhere = true;
  const std::int64_t matrix = 32'000 * 1024;
  const std::int64_t block = model::parameters(model.types.front()).total();
  CHECK(stage_cost(units, last, policy(0)).static_memory().value() == 18 * (block + 1024 + matrix));
  CHECK(stage_cost(units, whole(model), policy(0)).static_memory().value() == 18 * model.total_parameters());
}

TEST_CASE("cuts need send and receive buffers") {
  const model::Model model = small_model(4);
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 4), data(4), 8);
  model::SliceSignature slice = inner(2);
  const StageCost bare = stage_cost(units, slice, policy(0));
  slice.entry_bytes = 2 * 1024 * 1024;
  slice.exit_bytes = 2 * 1024 * 1024;
  // 2 samples a replica, activation and gradient, two cuts of 2 MiB: 2 * 2 * 4 MiB.
  CHECK(stage_cost(units, slice, policy(0)).transient - bare.transient == 16_MiB);
}

TEST_CASE("microbatches that fit") {
  StageCost cost;
  cost.parameters = Bytes(400);
  cost.transient = Bytes(100);
  cost.activation = Bytes(120);
  CHECK(max_in_flight(cost, Bytes(1000)) == 4);  // 500 left / 120
  CHECK(max_in_flight(cost, Bytes(980)) == 4);
  CHECK(max_in_flight(cost, Bytes(979)) == 3);
  CHECK(max_in_flight(cost, Bytes(619)) == 0);
  CHECK(max_in_flight(cost, Bytes(100)) == 0);
  cost.activation = Bytes(0);
  CHECK(max_in_flight(cost, Bytes(500)) == 1'000'000);
  CHECK(max_in_flight(cost, Bytes(499)) == 0);
}

TEST_CASE("synchronisation hides under 80 % of the last backward, and slows it down meanwhile") {
  CHECK(exposed_sync(1000_ns, 1000_ns) == 301_ns);  // 200 and 12.6 % of 800
  CHECK(exposed_sync(2000_ns, 10000_ns) == 252_ns);
  CHECK(exposed_sync(1000_ns, 0_ns) == 1000_ns);
}

TEST_CASE("replicas exchange their gradients in a ring over all members") {
  // 4 replicas, 9 GB, 2 members of 10 GB/s at the network's share: 2 * 3/4 * 9 GB / 18 GB/s = 0.75 s, 6 steps of 5 us.
  CHECK(replica_sync(Bytes(9'000'000'000), 4, {10_GBps, 5_us}, 2) ==
        ceil_to_nanoseconds(2 * 3 / 4.0 * 9e9 / (20e9 * kNetworkShare)) + 30_us);
  CHECK(replica_sync(Bytes(9'000'000'000), 1, {10_GBps, 5_us}, 2) == 0_ns);
}

TEST_CASE("the narrower side decides a boundary") {
  // 90 MB over 10 GB/s a member, 2 members against 4: 90 MB / (20 GB/s * share); 8 GPUs against 32: four messages.
  const BoundaryCost cost = boundary_cost(Bytes(90'000'000), {10_GBps, 5_us}, 2, 8, 4, 32);
  CHECK(to_seconds(cost.occupancy) == Approx(90e6 / (20e9 * kNetworkShare)).epsilon(1e-6));
  CHECK(cost.latency == cost.occupancy + 20_us);
  CHECK(boundary_cost(Bytes(90'000'000), {10_GBps, 5_us}, 4, 32, 2, 8) == cost);
}

TEST_CASE("degrees that a model cannot run are named") {
  const auto why = [](const model::Model& model, const Degrees& degrees, int samples) {
    return why_unsupported(model, degrees, samples);
  };
  const model::Model dense = model_of(llama_block(1024, 8, 2, 4096, 1024), 4, 32'001);
  CHECK(why(dense, tensor(4, true), 1).empty());  // kv heads replicated, vocabulary padded
  CHECK(why(dense, tensor(16, true), 1) == "8 attention heads cannot be divided by tp 16");
  CHECK(why(dense, tensor(1, true), 1) == "sequence parallelism needs tp > 1");
  CHECK(why(dense, data(4), 6).empty());
  CHECK(why(dense, data(4), 3) == "3 samples are too few for dp 4");
  Degrees degrees;
  degrees.cp = 3;
  CHECK(why(dense, degrees, 1) == "1024 tokens cannot be divided by 2 cp = 6");
  degrees = data(4);
  degrees.ep = 2;
  CHECK(why(dense, degrees, 4) == "expert parallelism needs experts");

  model::Model uneven = dense;
  uneven.types.front().attention.kv_heads = 3;
  uneven.types.front().attention.heads = 12;
  CHECK(why(uneven, tensor(2, false), 1) == "3 key-value heads cannot be divided by tp 2");

  model::Model brief = dense;
  brief.types.front().tokens = 3;
  CHECK(why(brief, tensor(2, false), 1).empty());  // every rank of a boundary has a piece, if not as long as the others
  CHECK(why(brief, tensor(2, true), 1) == "3 tokens of a sample cannot be divided by sequence-parallel tp 2");
  CHECK(why(brief, tensor(4, false), 1) ==
        "3 positions of a sample are too few for tp x cp = 4: every rank hands over some");

  const model::Model moe = model_of(moe_block(1024, 8, 8, 2048, 1024), 4, 32'000);
  degrees = data(6);
  degrees.ep = 3;
  CHECK(why(moe, degrees, 6) == "8 experts cannot be divided by ep 3");
  degrees.ep = 4;
  CHECK(why(moe, degrees, 6) == "6 GPUs cannot be divided by ep * expert-tp = 4");
  CHECK(why(moe, tensor(2, false), 1) == "experts with tp > 1 need sequence parallelism");

  model::Model unfused = dense;
  unfused.job.flash_attention = false;
  degrees = {};
  degrees.cp = 2;
  CHECK(why(unfused, degrees, 1) == "context parallelism needs fused attention");
}

TEST_CASE("degrees have to suit the layers of a slice alone") {
  model::Model both = model_of(llama_block(1024, 8, 2, 4096, 1024), 6, 32'000);
  model::BlockType encoder = llama_block(800, 25, 25, 3200, 1025);
  encoder.attention.causal = false;
  both.types.push_back(encoder);
  both.blocks = {1, 1, 0, 0, 0, 0};
  const model::SliceSignature encoders = model::signature(both, 0, 2);
  const model::SliceSignature decoders = model::signature(both, 2, 6);
  const model::SliceSignature across = model::signature(both, 1, 3);
  const char* const heads = "25 attention heads cannot be divided by tp 4";
  CHECK(why_unsupported(both, encoders, tensor(4, false), 1) == heads);
  CHECK(why_unsupported(both, across, tensor(4, false), 1) == heads);
  CHECK(why_unsupported(both, tensor(4, false), 1) == heads);
  CHECK(why_indivisible(both, encoders, tensor(4, false), 1) == heads);
  CHECK(why_unsupported(both, decoders, tensor(4, true), 1).empty());
  CHECK(why_indivisible(both, decoders, tensor(4, true), 1).empty());
  CHECK(why_unsupported(both, encoders, {.cp = 2}, 1) == "1025 tokens cannot be divided by 2 cp = 4");
  CHECK(why_unsupported(both, decoders, {.cp = 2}, 1).empty());
  // Embedding and head have the job's tokens, in whatever stage they are.
  both.job.sequence_length = 1023;
  CHECK(why_unsupported(both, model::signature(both, 2, 5), tensor(4, true), 1).empty());
  CHECK(why_unsupported(both, decoders, tensor(4, true), 1) ==
        "1023 tokens of a sample cannot be divided by sequence-parallel tp 4");
  // A stage takes in what any layer hands over: there has to be some for each rank.
  CHECK(why_unsupported(both, decoders, {.tp = 2, .cp = 1024}, 1) ==
        "1024 positions of a sample are too few for tp x cp = 2048: every rank hands over some");

  const auto units = unit_costs(both, shape_of(round_gpu(), 1, 4), tensor(4, false), 1);
  REQUIRE(units.has_value());
  CHECK(units->unsupported.of(encoders) == heads);
  CHECK(units->unsupported.of(decoders).empty());
  CHECK(units->blocks[1].forward == 0);
  CHECK(units->blocks[0].forward > 0);
  const auto refused = unit_costs_of(both, across, shape_of(round_gpu(), 1, 4), tensor(4, false), 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().front().code == "unsupported-degrees");
}

TEST_CASE("unit costs refuse with a diagnostic") {
  const model::Model model = small_model(2);
  const auto wrong = unit_costs(model, shape_of(round_gpu(), 1, 4), tensor(2, false), 1);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().front().code == "unsupported-degrees");
  CHECK(wrong.error().front().kind == ErrorKind::kInfeasible);
  cluster::GpuType none;
  none.name = "none";
  CHECK_FALSE(unit_costs(model, shape_of(none, 1, 1), {}, 1).has_value());
}

TEST_CASE("Megatron 22B on eight A100: close to the published iteration") {
  // Korthikanti et al., table 5: 22B, tp 8, batch 4, one microbatch: 1.42 s with full recompute, 1.10 s with sequence
  // parallelism and selective recompute. Nothing is fitted to it: datasheet rates and single-kernel calibration.
  const model::Model model = megatron_22b();
  const cluster::DeviceShape shape = shape_of(a100(), 1, 8);
  const auto seconds = [&](bool sequence_parallel, const MemoryPolicy& chosen) {
    const UnitCosts units = units_of(model, shape, tensor(8, sequence_parallel), 4);
    const StageCost cost = stage_cost(units, whole(model), chosen);
    return to_seconds(cost.forward + cost.backward + cost.gradient_sync + cost.optimizer_step);
  };
  CHECK(seconds(false, policy(0, RecomputeMode::kFull, 48)) == Approx(1.42).epsilon(0.15));
  CHECK(seconds(true, policy(0, RecomputeMode::kSelective)) == Approx(1.10).epsilon(0.15));
  // Figure 1 of the paper: activations of 59.25 GiB without recompute (tensor parallelism only); ours adds the head and
  // the embedding.
  const UnitCosts units = units_of(model, shape, tensor(8, false), 4);
  CHECK(stage_cost(units, inner(48), policy(0)).activation.as_double() == Approx(59.25 * kGiB).epsilon(0.001));
}

TEST_CASE("full recompute tried number by number costs the same to the last bit") {
  model::Model model = small_model(5);
  model.types.push_back(llama_block(1024, 8, 8, 8192, 1024));
  model.blocks[1] = model.blocks[2] = 1;
  const cluster::DeviceShape gpus = shape_of(round_gpu(), 1, 8);
  for (const int zero : {0, 1, 2, 3}) {
    const UnitCosts units = units_of(model, gpus, {.tp = 2, .dp = 4, .sequence_parallel = true}, 8);
    for (int first = 0; first < model.block_count(); ++first) {
      for (int last = first + 1; last <= model.block_count(); ++last) {
        const model::SliceSignature slice = model::signature(model, first, last);
        check_full_recompute(StageCoster(units, slice, zero), slice.block_count());
      }
    }
  }
}

TEST_CASE("full recompute of many short runs costs the same to the last bit") {
  // Blocks of two types by turns, so that nearly all runs are summed up before: activations of 24 samples are whole
  // numbers of bytes, those of 7 among 4 replicas, cut by tp 2, need not be.
  model::Model model = small_model(60);
  model.types.push_back(llama_block(1000, 8, 8, 3000, 1000));
  for (std::size_t i = 1; i < model.blocks.size(); i += 2) model.blocks[i] = 1;
  const cluster::DeviceShape gpus = shape_of(a100(), 1, 8);
  for (const int samples : {24, 7}) {
    for (const int zero : {0, 3}) {
      const UnitCosts units = units_of(model, gpus, {.tp = 2, .dp = 4, .sequence_parallel = true}, samples);
      for (const auto& [first, last] : {std::pair(0, 60), {1, 59}, {5, 60}, {0, 12}}) {
        const model::SliceSignature slice = model::signature(model, first, last);
        check_full_recompute(StageCoster(units, slice, zero), slice.block_count());
      }
    }
  }
}

TEST_CASE("of many short runs none decides where times come from, all of them do") {
  // 300 runs of one block: none takes the 1 % of the time below which a unit is not asked.
  model::Model model = small_model(300);
  model.types.push_back(llama_block(512, 8, 8, 2048, 1024));
  for (std::size_t i = 1; i < model.blocks.size(); i += 2) model.blocks[i] = 1;
  const UnitCosts units = units_of(model, shape_of(round_gpu(), 1, 1), {}, 1);
  CHECK(slice_provenance(units, model::signature(model, 1, 299)) == Provenance::kModelled);
}
