// Measured collectives: between two sizes, a little beyond them, and what a curve must not claim.
#include "tangram/cost/collective_curves.hpp"

#include "samples.hpp"
#include "support/catch.hpp"
#include "tangram/cost/profile.hpp"

namespace tangram::cost {
namespace {

using namespace samples;

/// 1 MB in 100 us, 4 MB in 200 us, 16 MB in 500 us.
CollectiveCurve curve(Exchange operation, CurveGroup group) {
  return {operation, group, {{Bytes(1'000'000), 100_us}, {Bytes(4'000'000), 200_us}, {Bytes(16'000'000), 500_us}}};
}

const CurveGroup kEight{8, 1, 1};

std::optional<double> all_reduce(double bytes, const CurveGroup& group = kEight) {
  const std::vector<CollectiveCurve> curves = {curve(Exchange::kAllReduce, kEight)};
  return measured_seconds(curves, Exchange::kAllReduce, bytes, group);
}

TEST_CASE("a measured size takes the measured time") {
  CHECK(*all_reduce(1e6) == Approx(100e-6));
  CHECK(*all_reduce(4e6) == Approx(200e-6));
  CHECK(*all_reduce(16e6) == Approx(500e-6));
}

TEST_CASE("between two sizes the logarithms are linear") {
  // 2 MB is halfway from 1 to 4 in log: sqrt(100 x 200) = 141.42 us. 8 MB: sqrt(200 x 500) = 316.23 us.
  CHECK(*all_reduce(2e6) == Approx(141.4213562e-6));
  CHECK(*all_reduce(8e6) == Approx(316.2277660e-6));
}

TEST_CASE("beyond the sizes the last segment's bandwidth counts, up to a factor of four") {
  // 12 MB more took 300 us: 40 GB/s. 32 MB: 500 us + 16 MB / 40 GB/s = 900 us; 64 MB: 500 + 1200.
  CHECK(*all_reduce(32e6) == Approx(900e-6));
  CHECK(*all_reduce(64e6) == Approx(1700e-6));
  CHECK_FALSE(all_reduce(64.1e6));
  // Shorter ones take no longer than the shortest measured.
  CHECK(*all_reduce(0.5e6) == Approx(100e-6));
  CHECK(*all_reduce(0.25e6) == Approx(100e-6));
  CHECK_FALSE(all_reduce(0.24e6));
}

TEST_CASE("a single point, or noise at the end, continues with its own bandwidth") {
  const std::vector<CollectiveCurve> one = {{Exchange::kAllGather, kEight, {{Bytes(1'000'000), 100_us}}}};
  CHECK(*measured_seconds(one, Exchange::kAllGather, 3e6, kEight) == Approx(300e-6));
  const std::vector<CollectiveCurve> noisy = {
      {Exchange::kAllGather, kEight, {{Bytes(1'000'000), 100_us}, {Bytes(2'000'000), 100_us}}}};
  CHECK(*measured_seconds(noisy, Exchange::kAllGather, 4e6, kEight) == Approx(200e-6));
}

TEST_CASE("another operation or group was not measured") {
  const std::vector<CollectiveCurve> curves = {curve(Exchange::kAllReduce, kEight)};
  CHECK_FALSE(measured_seconds(curves, Exchange::kAllGather, 1e6, kEight));
  CHECK_FALSE(all_reduce(1e6, {4, 1, 1}));
  CHECK_FALSE(all_reduce(1e6, {4, 2, 1}));
  CHECK_FALSE(all_reduce(1e6, {8, 1, 2}));
  CHECK_FALSE(measured_seconds({}, Exchange::kAllReduce, 1e6, kEight));
  CHECK(*all_reduce(1e6, {1, 1, 1}) == 0);
  CHECK(*all_reduce(0) == 0);
}

TEST_CASE("a collective takes the measured time in reach of the curve, the model's elsewhere") {
  const std::vector<CollectiveCurve> curves = {curve(Exchange::kAllReduce, kEight)};
  const auto shape = shape_of(a100(), 1, 8);
  const Group eight{8, 1, 1};  // a member of a shape is a node of the curve
  CHECK(collective_seconds(Collective::kAllReduce, 4e6, eight, shape, curves) == Approx(200e-6));
  CHECK(collective_seconds(Collective::kAllReduce, 64e6, eight, shape, curves) == Approx(1700e-6));
  const auto modelled = [&](Collective kind, double bytes, const Group& group) {
    return collective_seconds(kind, bytes, group, shape, curves) == collective_seconds(kind, bytes, group, shape);
  };
  CHECK(modelled(Collective::kAllReduce, 64.1e6, eight));
  CHECK(modelled(Collective::kReduceScatter, 4e6, eight));
  CHECK(modelled(Collective::kAllReduce, 4e6, {4, 1, 1}));
  CHECK(modelled(Collective::kAllReduce, 0, eight));
}

TEST_CASE("a stage takes the curves of its groups on its GPU type") {
  Profile profile;
  profile.device = a100();
  profile.collectives = {curve(Exchange::kAllReduce, {4, 1, 1}), curve(Exchange::kAllReduce, {8, 1, 1}),
                         curve(Exchange::kReduceScatter, {1, 2, 4}), curve(Exchange::kAllReduce, {1, 1, 1})};
  ProfileSet set;
  set.add({});  // of another GPU type
  set.add(profile);
  // tp 4 in each of two members of 4, dp 2 across them: four groups share the cards.
  const auto shape = shape_of(a100(), 2, 4);
  Degrees degrees = tensor(4, true);
  degrees.dp = 2;
  const auto found = set.curves_of(process_groups(degrees, shape), a100());
  CHECK(found == std::set<CurveId>{{1, 0}, {1, 2}});
  CHECK(set.curve({1, 2}) == profile.collectives[2]);
  CHECK(set.curves_of(process_groups(degrees, shape), round_gpu()).empty());
  cluster::GpuType half_cabled = a100();
  half_cabled.peer_link = {150_GBps, 3_us};
  CHECK(set.curves_of(process_groups(degrees, shape), half_cabled).empty());

  const ProfileSet kept = set.select({{}, found});
  REQUIRE(kept.profiles().size() == 1);
  CHECK(kept.profiles().front().collectives == std::vector{profile.collectives[0], profile.collectives[2]});
  CHECK(set.select({}).empty());
}

TEST_CASE("bus bandwidth follows nccl-tests") {
  // 8 ranks: all-reduce 2 x 7/8, 16 MB in 500 us: 56 GB/s; all-gather half of it; send-recv 32 GB/s.
  const CurvePoint point{Bytes(16'000'000), 500_us};
  CHECK(bus_bandwidth(curve(Exchange::kAllReduce, kEight), point) == Approx(56e9));
  CHECK(bus_bandwidth(curve(Exchange::kAllGather, kEight), point) == Approx(28e9));
  CHECK(bus_bandwidth(curve(Exchange::kReduceScatter, kEight), point) == Approx(28e9));
  CHECK(bus_bandwidth(curve(Exchange::kAllToAll, kEight), point) == Approx(28e9));
  CHECK(bus_bandwidth(curve(Exchange::kSendRecv, {2, 1, 1}), point) == Approx(32e9));
}

TEST_CASE("what no link carries and what falls with size is a mistake") {
  cluster::GpuType gpu = a100();
  gpu.peer_link = {300_GBps, 3_us};
  CollectiveCurve good = curve(Exchange::kAllReduce, kEight);
  CHECK_FALSE(find_mistake(good, gpu));
  // 16 MB in 50 us: 560 GB/s on a link of 300.
  good.points[2].time = 50_us;
  REQUIRE(find_mistake(good, gpu));
  CHECK(find_mistake(good, gpu)->point == 2);
  CHECK(find_mistake(good, gpu)->code == "implausible-bandwidth");
  // Without a known link only the order counts: 200 us after 500.
  good.points = {{Bytes(1'000), 500_us}, {Bytes(2'000), 200_us}};
  CHECK(find_mistake(good, round_gpu())->code == "not-monotone");
  good.points[1].time = 360_us;  // within 30 %
  CHECK_FALSE(find_mistake(good, round_gpu()));
}

}  // namespace
}  // namespace tangram::cost
