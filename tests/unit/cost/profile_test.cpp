// Measured times: what counts for a unit, what lies between two measurements, what the units become.
#include "tangram/cost/profile.hpp"

#include <limits>

#include "samples.hpp"
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::cost {
namespace {

using namespace samples;

const model::BlockType kBlockType = gpt_block(1024, 16, 2048);

ProfileRow row(int tp, std::int64_t samples, Nanoseconds forward, Nanoseconds backward) {
  ProfileRow out;
  out.degrees.tp = tp;
  out.samples = samples;
  out.forward = forward;
  out.backward = backward;
  return out;
}

ProfileUnit block_rows(std::vector<ProfileRow> rows) {
  ProfileUnit unit;
  unit.block = kBlockType;
  unit.block.name = "";
  unit.sequence_length = 2048;
  unit.rows = std::move(rows);
  return unit;
}

Profile profile_of(const cluster::GpuType& device, std::vector<ProfileUnit> units) {
  Profile profile;
  profile.device = device;
  profile.units = std::move(units);
  return profile;
}

/// 1 sample 10 + 25 ms, 4 samples 34 + 82 ms; at tp 2 one sample 7 + 16 ms.
ProfileSet measured_blocks(const cluster::GpuType& device = round_gpu()) {
  ProfileSet set;
  set.add(profile_of(device, {block_rows({row(1, 1, 10_ms, 25_ms), row(1, 4, 34_ms, 82_ms), row(2, 1, 7_ms, 16_ms)})}));
  return set;
}

model::Model small() { return model_of(kBlockType, 4, 32'000); }

std::optional<Measured> look_up(const ProfileSet& set, const Degrees& degrees, std::int64_t samples) {
  return set.block(kBlockType, small().job, degrees, samples, round_gpu());
}

TEST_CASE("a measured point is given as it is") {
  const auto found = look_up(measured_blocks(), {}, 4);
  REQUIRE(found);
  CHECK(found->provenance == Provenance::kMeasured);
  CHECK(found->time.forward == Approx(0.034));
  CHECK(found->time.backward == Approx(0.082));
  CHECK(found->rows == std::vector<RowId>{{0, 0, 1}});
}

TEST_CASE("between two points the time is linear") {
  // 2 samples: a third of the way from 1 to 4. 10 + (34 - 10) / 3 = 18, 25 + (82 - 25) / 3 = 44.
  const auto two = look_up(measured_blocks(), {}, 2);
  REQUIRE(two);
  CHECK(two->provenance == Provenance::kInterpolated);
  CHECK(two->time.forward == Approx(0.018));
  CHECK(two->time.backward == Approx(0.044));
  CHECK(two->rows == std::vector<RowId>{{0, 0, 0}, {0, 0, 1}});
  // 3 samples: 10 + 16 = 26.
  CHECK(look_up(measured_blocks(), {}, 3)->time.forward == Approx(0.026));
}

ProfileUnit at_length(std::int64_t tokens, std::vector<ProfileRow> rows) {
  ProfileUnit unit = block_rows(std::move(rows));
  unit.sequence_length = tokens;
  unit.block.tokens = tokens;
  return unit;
}

ProfileSet set_of(std::vector<ProfileUnit> units) {
  ProfileSet set;
  set.add(profile_of(round_gpu(), std::move(units)));
  return set;
}

TEST_CASE("between two sequence lengths a share per token and a quadratic one") {
  // 1024 tokens in 4 ms, 4096 in 40: per token 3.90625 and 9.765625 us. At 2048, a third of the way: 5.859375 us, 12
  // ms. The same as a s + c s^2 with a = 1.953125 us, c = 1.9073486328125e-3 us: 4 ms + 8 ms.
  const ProfileSet set = set_of({at_length(1024, {row(1, 1, 4_ms, 8_ms)}), at_length(4096, {row(1, 1, 40_ms, 80_ms)})});
  const auto found = look_up(set, {}, 1);
  REQUIRE(found);
  CHECK(found->time.forward == Approx(0.012));
  CHECK(found->time.backward == Approx(0.024));
  CHECK(found->provenance == Provenance::kInterpolated);
  CHECK(found->rows == std::vector<RowId>{{0, 0, 0}, {0, 1, 0}});
  // Only between neighbours.
  CHECK_FALSE(look_up(set_of({at_length(1024, {row(1, 1, 4_ms, 8_ms)})}), {}, 1));
  CHECK_FALSE(
      look_up(set_of({at_length(1024, {row(1, 1, 4_ms, 8_ms)}), at_length(1536, {row(1, 1, 9_ms, 18_ms)})}), {}, 1));
}

TEST_CASE("the nearest lengths that know the point decide, and activations follow") {
  ProfileRow low = row(1, 1, 4_ms, 8_ms);
  low.activation = Bytes(1024 * 100);
  ProfileRow high = row(1, 1, 40_ms, 80_ms);
  high.activation = Bytes(4096 * 400);
  // 1536 is nearer but knows tp 8 alone.
  const ProfileSet set =
      set_of({at_length(1536, {row(8, 1, 1_ms, 2_ms)}), at_length(1024, {low}), at_length(4096, {high})});
  const auto found = look_up(set, {}, 1);
  REQUIRE(found);
  CHECK(found->time.forward == Approx(0.012));
  CHECK(found->rows == std::vector<RowId>{{0, 1, 0}, {0, 2, 0}});
  CHECK(found->activation == Approx(2048 * 200.0));  // per token 100 + (400 - 100) / 3
}

TEST_CASE("between two tensor degrees the logarithms are linear") {
  // tp 2 is halfway from 1 to 4 in log: sqrt(16 x 4) = 8 ms, sqrt(36 x 9) = 18 ms.
  const ProfileSet set = set_of({block_rows({row(1, 1, 16_ms, 36_ms), row(4, 1, 4_ms, 9_ms)})});
  const auto found = look_up(set, tensor(2, false), 1);
  REQUIRE(found);
  CHECK(found->time.forward == Approx(0.008));
  CHECK(found->time.backward == Approx(0.018));
  CHECK(found->provenance == Provenance::kInterpolated);
  CHECK_FALSE(look_up(set, tensor(8, false), 1));
  CHECK_FALSE(look_up(set, tensor(2, true), 1));  // tp 4 was measured without sequence parallelism
}

TEST_CASE("a row of one GPU is a neighbour with and without sequence parallelism") {
  ProfileRow split = row(4, 1, 4_ms, 9_ms);
  split.degrees.sequence_parallel = true;
  const ProfileSet set = set_of({block_rows({row(1, 1, 16_ms, 36_ms), split})});
  CHECK(look_up(set, tensor(2, true), 1)->time.forward == Approx(0.008));
  CHECK_FALSE(look_up(set, tensor(2, false), 1));
}

TEST_CASE("a measured point wins over neighbours, samples over tp, tp over lengths") {
  const ProfileSet set = set_of({at_length(1024, {row(2, 1, 1_ms, 2_ms)}), at_length(4096, {row(2, 1, 9_ms, 18_ms)}),
                                 block_rows({row(1, 1, 16_ms, 36_ms), row(4, 1, 4_ms, 9_ms)})});
  CHECK(look_up(set, tensor(2, false), 1)->rows == std::vector<RowId>{{0, 2, 0}, {0, 2, 1}});
  CHECK(look_up(set, tensor(4, false), 1)->provenance == Provenance::kMeasured);
}

TEST_CASE("the least GPU-seconds stay below what other lengths and degrees give") {
  const model::Model model = small();
  // Per token 4 ms / 1024 + 8 ms / 1024; times 2048: 24 ms. The other length costs 120 ms / 2.
  const ProfileSet set = set_of({at_length(1024, {row(1, 1, 4_ms, 8_ms)}), at_length(4096, {row(1, 1, 40_ms, 80_ms)})});
  CHECK(set.least_block_gpu_seconds(kBlockType, model.job, round_gpu()) == Approx(0.024));
  // A length that is no neighbour does not count.
  const ProfileSet alone = set_of({at_length(1024, {row(1, 1, 4_ms, 8_ms)})});
  CHECK(alone.least_block_gpu_seconds(kBlockType, model.job, round_gpu()) == std::numeric_limits<double>::infinity());
}

TEST_CASE("nothing is extrapolated") {
  CHECK_FALSE(look_up(measured_blocks(), {}, 5));
  CHECK(look_up(measured_blocks(), tensor(2, false), 1));
  CHECK_FALSE(look_up(measured_blocks(), tensor(2, false), 2));  // only one sample was measured at tp 2
  CHECK_FALSE(look_up(measured_blocks(), tensor(4, false), 1));
  CHECK_FALSE(look_up(ProfileSet{}, {}, 1));
}

TEST_CASE("what differs was not measured") {
  const ProfileSet set = measured_blocks();
  model::Model model = small();
  const auto known = [&](const cluster::GpuType& gpu) {
    return set.block(model.types.front(), model.job, {}, 1, gpu).has_value();
  };
  CHECK(known(round_gpu()));
  SECTION("the name of a block and what else memory holds do not") {
    model.types.front().name = "other";
    cluster::GpuType gpu = round_gpu();
    gpu.memory = 20_GiB;
    CHECK(known(gpu));
  }
  SECTION("a sequence length beyond those measured") {
    model.types.front().tokens = 4096;
    CHECK_FALSE(known(round_gpu()));
  }
  SECTION("dimensions") {
    model.types.front().feed_forward.gated = true;
    CHECK_FALSE(known(round_gpu()));
  }
  SECTION("attention") {
    model.job.flash_attention = false;
    CHECK_FALSE(known(round_gpu()));
  }
  SECTION("another GPU") {
    cluster::GpuType gpu = round_gpu();
    gpu.name = "square";
    CHECK_FALSE(known(gpu));
  }
  SECTION("a throttled GPU of the same name") {
    cluster::GpuType gpu = round_gpu();
    gpu.compute.gemm_efficiency = 0.5;
    CHECK_FALSE(known(gpu));
  }
  SECTION("sequence parallelism and context parallelism") {
    CHECK_FALSE(look_up(set, tensor(2, true), 1));
    Degrees degrees;
    degrees.cp = 2;
    CHECK_FALSE(look_up(set, degrees, 1));
  }
  SECTION("the format the device computes in, not the name of the precision, counts") {
    // The round GPU has bf16 and fp16 units of its own, so they differ; without bf16 units a bf16 job runs in fp16.
    model.job.precision = DType::kFp16;
    CHECK_FALSE(known(round_gpu()));
    cluster::GpuType old = round_gpu();
    old.peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(0);
    CHECK(measured_blocks(old).block(kBlockType, model.job, {}, 1, old).has_value());
  }
}

TEST_CASE("expert degrees matter to blocks with experts alone") {
  Degrees spread;
  spread.dp = 2;
  spread.ep = 2;
  CHECK(look_up(measured_blocks(), spread, 1));

  const model::BlockType moe = moe_block(1024, 16, 8, 2048, 2048);
  ProfileUnit unit = block_rows({row(1, 1, 10_ms, 25_ms)});
  unit.block = moe;
  ProfileSet set;
  set.add(profile_of(round_gpu(), {unit}));
  CHECK(set.block(moe, small().job, {}, 1, round_gpu()));
  CHECK_FALSE(set.block(moe, small().job, spread, 1, round_gpu()));
}

TEST_CASE("of two profiles the first that knows wins") {
  ProfileSet set;
  set.add(profile_of(round_gpu(), {block_rows({row(1, 2, 1_ms, 2_ms)})}));
  set.add(measured_blocks().profiles().front());
  CHECK(look_up(set, {}, 2)->time.forward == Approx(0.001));
  CHECK(look_up(set, {}, 4)->time.forward == Approx(0.034));
}

UnitCosts units_of(const ProfileSet& set, const Degrees& degrees, int samples) {
  const auto units = unit_costs(small(), shape_of(round_gpu(), 1, degrees.gpus()), degrees, samples, &set);
  REQUIRE(units);
  return *units;
}

TEST_CASE("units take measured times") {
  // 4 samples over dp 2: 2 a replica, interpolated, 18 + 44 ms.
  const UnitCosts units = units_of(measured_blocks(), data(2), 4);
  CHECK(units.blocks.front().forward == Approx(0.018));
  CHECK(units.blocks.front().backward == Approx(0.044));
  CHECK(units.blocks.front().recompute_full == Approx(0.018));
  CHECK(units.block_provenance.front() == Provenance::kInterpolated);
  CHECK(units.head_provenance == Provenance::kModelled);
  // Selective recompute keeps its share of a block's forward compute.
  const UnitCosts modelled = units_of({}, data(2), 4);
  CHECK(units.blocks.front().recompute_selective ==
        Approx(modelled.blocks.front().recompute_selective / modelled.blocks.front().forward * 0.018));
  CHECK(units.blocks.front().activation_none == modelled.blocks.front().activation_none);
}

TEST_CASE("the exchanges of tensor parallelism are added where the times lack them") {
  ProfileSet with;
  Profile profile = measured_blocks().profiles().front();
  profile.includes_tp_communication = true;
  with.add(profile);
  const Degrees degrees = tensor(2, false);
  CHECK(units_of(with, degrees, 1).blocks.front().forward == Approx(0.007));
  CHECK(units_of(with, degrees, 1).blocks.front().backward == Approx(0.016));
  const BlockTime model = block_time(kBlockType, small().job, degrees, 1, shape_of(round_gpu(), 1, 2));
  REQUIRE(model.communication.forward > 0);
  CHECK(units_of(measured_blocks(), degrees, 1).blocks.front().forward == Approx(0.007 + model.communication.forward));
  CHECK(units_of(measured_blocks(), degrees, 1).blocks.front().backward ==
        Approx(0.016 + model.communication.backward));
}

/// Half a second, whatever the size from 1 kB to 4 GB.
ProfileSet slow_exchanges(Exchange operation, const CurveGroup& group) {
  Profile profile = profile_of(round_gpu(), {});
  profile.collectives = {{operation, group, {{Bytes(1'000), 500_ms}, {Bytes(4'000'000'000), 500_ms}}}};
  ProfileSet set;
  set.add(profile);
  return set;
}

TEST_CASE("exchanges inside a unit take measured times") {
  // A block all-reduces twice in each direction, once for attention and once for the feed-forward.
  const Degrees degrees = tensor(2, false);
  const UnitCosts modelled = units_of({}, degrees, 1);
  const UnitCosts units = units_of(slow_exchanges(Exchange::kAllReduce, {2, 1, 1}), degrees, 1);
  const double all_reduce = collective_seconds(Collective::kAllReduce, 2.0 * 2048 * 1024, {2, 1, 1}, units.shape);
  CHECK(units.blocks.front().forward == Approx(modelled.blocks.front().forward + 2 * (0.5 - all_reduce)));
  CHECK(units.blocks.front().backward == Approx(modelled.blocks.front().backward + 2 * (0.5 - all_reduce)));
  // Where the times come from is said of layers alone.
  CHECK(units.block_provenance.front() == Provenance::kModelled);
  CHECK(units_of(slow_exchanges(Exchange::kAllReduce, {4, 1, 1}), degrees, 1).blocks.front().forward ==
        modelled.blocks.front().forward);
}

TEST_CASE("gradients are reduced in measured time") {
  const MemoryPolicy sharded{1, RecomputeMode::kNone, 0};
  const auto sync = [&](const ProfileSet& set, const MemoryPolicy& policy) {
    return stage_cost(units_of(set, data(2), 2), inner(2), policy).gradient_sync;
  };
  CHECK(sync(slow_exchanges(Exchange::kAllReduce, {2, 1, 1}), {}) == 500_ms);
  CHECK(sync(slow_exchanges(Exchange::kAllReduce, {2, 1, 1}), sharded) == sync({}, sharded));
  CHECK(sync(slow_exchanges(Exchange::kReduceScatter, {2, 1, 1}), sharded) == 500_ms);
}

TEST_CASE("measured activations take their place, and recompute keeps its share") {
  ProfileUnit unit = block_rows({row(1, 1, 10_ms, 25_ms), row(1, 3, 30_ms, 75_ms)});
  unit.rows[0].activation = Bytes(100'000'000);
  unit.rows[1].activation = Bytes(280'000'000);
  ProfileSet set;
  set.add(profile_of(round_gpu(), {unit}));
  const UnitCost got = units_of(set, {}, 2).blocks.front();
  const UnitCost modelled = units_of({}, {}, 2).blocks.front();
  CHECK(got.activation_none == Approx(190e6));  // halfway
  CHECK(got.activation_selective == Approx(190e6 * modelled.activation_selective / modelled.activation_none));
  CHECK(got.activation_full == modelled.activation_full);
}

TEST_CASE("a stage is as credible as its weakest unit of weight") {
  const ProfileSet set = measured_blocks();
  const UnitCosts units = units_of(set, {}, 4);
  CHECK(slice_provenance(units, inner(2)) == Provenance::kMeasured);
  // Embedding: two passes over 4 x 2048 x 1024 values of 2 bytes at 1000 GB/s, far below 1 % of 2 x 116 ms.
  model::SliceSignature first = inner(2);
  first.embedding = true;
  CHECK(slice_provenance(units, first) == Provenance::kMeasured);
  // Head: 3 x 2 x 8192 x 1024 x 32000 FLOPs at 100 TFLOP/s are 16 ms.
  model::SliceSignature last = inner(2);
  last.head = true;
  CHECK(slice_provenance(units, last) == Provenance::kModelled);
  CHECK(stage_cost(units, last, {}).provenance == Provenance::kModelled);
  CHECK(stage_cost(units, inner(2), {}).provenance == Provenance::kMeasured);
  // 2 blocks forward 2 x 34 ms, backward 2 x 82 ms.
  CHECK(stage_cost(units, inner(2), {}).forward <= 68_ms + Nanoseconds(1));
  CHECK(stage_cost(units, inner(2), {}).backward <= 164_ms + Nanoseconds(1));
}

TEST_CASE("the least GPU-seconds stay below what was measured") {
  const model::Model model = small();
  const double modelled = least_gpu_seconds(model, kBlockType, round_gpu());
  // Slower than the roofline: it stays. 4 samples in 116 ms are 29 ms each.
  const ProfileSet slow = measured_blocks();
  CHECK(slow.least_block_gpu_seconds(kBlockType, model.job, round_gpu()) == Approx(0.029));
  CHECK(least_gpu_seconds(model, kBlockType, round_gpu(), &slow) == modelled);
  // Faster: 2 GPUs, 1 sample in 0.2 + 0.5 ms are 1.4 ms.
  ProfileSet fast;
  fast.add(profile_of(round_gpu(), {block_rows({row(2, 1, 200_us, 500_us)})}));
  REQUIRE(modelled > 0.0014);
  CHECK(least_gpu_seconds(model, kBlockType, round_gpu(), &fast) == Approx(0.0014));
  CHECK(ProfileSet{}.least_head_gpu_seconds(model, round_gpu()) == std::numeric_limits<double>::infinity());
}

TEST_CASE("the rows a slice uses are enough to cost it again") {
  const ProfileSet set = measured_blocks();
  Selection used;
  collect_used(set, small(), inner(2), shape_of(round_gpu(), 1, 2), data(2), 8, used);  // 4 samples a replica
  CHECK(used.rows == std::set<RowId>{{0, 0, 1}});
  collect_used(set, small(), inner(2), shape_of(round_gpu(), 1, 1), {}, 3, used);
  CHECK(used.rows == std::set<RowId>{{0, 0, 0}, {0, 0, 1}});
  const ProfileSet kept = set.select(used);
  CHECK(kept.profiles().front().units.front().rows.size() == 2);
  CHECK(units_of(kept, {}, 3).blocks.front().forward == units_of(set, {}, 3).blocks.front().forward);
  CHECK(set.select({}).empty());
}

}  // namespace
}  // namespace tangram::cost
