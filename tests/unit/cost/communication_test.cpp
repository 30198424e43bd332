// Collectives on tiers whose sustained rates are round: 100 GB/s inside, 10 GB/s between members.
#include "tangram/cost/communication.hpp"
#include "support/catch.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

cluster::DeviceShape tiers(int nodes, int per_node) {
  cluster::DeviceShape shape = shape_of(round_gpu(), nodes, per_node);
  shape.intra = {BytesPerSecond(100e9 / kInsideShare), 1_us};
  shape.inter = {BytesPerSecond(10e9 / kNetworkShare), 10_us};
  return shape;
}

Approx after_call(double seconds) { return Approx(kCollectiveCall + seconds); }

bool same(const Group& a, const Group& b) {
  return a.inside == b.inside && a.members == b.members && a.sharing == b.sharing;
}

}  // namespace

TEST_CASE("ring formulas inside one member") {
  // 8 ranks, 800 MB at 100 GB/s: one pass (7/8) 8 ms = 7 ms and 7 steps of 1 us.
  const cluster::DeviceShape shape = tiers(1, 8);
  const Group group{8, 1, 1};
  CHECK(collective_seconds(Collective::kAllGather, 800e6, group, shape) == after_call(7.007e-3));
  CHECK(collective_seconds(Collective::kReduceScatter, 800e6, group, shape) == after_call(7.007e-3));
  // All-reduce: ring 14.014 ms; tree 2 * 3 us + 16 ms is slower.
  CHECK(collective_seconds(Collective::kAllReduce, 800e6, group, shape) == after_call(14.014e-3));
  CHECK(collective_seconds(Collective::kAllToAll, 800e6, group, shape) == after_call(7.007e-3));
}

TEST_CASE("small all-reduces take the tree") {
  // 8 KB: ring 14 us + 0.14 us, tree 6 us + 0.16 us.
  CHECK(collective_seconds(Collective::kAllReduce, 8e3, {8, 1, 1}, tiers(1, 8)) == after_call(6.16e-6));
}

TEST_CASE("a link with a ramp gives short messages less of its bandwidth") {
  cluster::DeviceShape shape = tiers(1, 8);
  shape.intra.latency = 0_us;
  shape.intra.ramp = 40_us;
  const auto seconds = [&](Collective kind, double bytes) {
    return collective_seconds(kind, bytes, {8, 1, 1}, shape) - kCollectiveCall;
  };
  // Half of the bandwidth where all others' bytes take as long as the ramp: 4 MB at 100 GB/s.
  CHECK(seconds(Collective::kAllGather, 4e6 * 8 / 7) == Approx(80e-6));
  // 160 us and sqrt(160 us x 40 us).
  CHECK(seconds(Collective::kReduceScatter, 16e6 * 8 / 7) == Approx(240e-6));
  CHECK(seconds(Collective::kAllToAll, 16e6 * 8 / 7) == Approx(240e-6));
  // There and back, chunk by chunk: the ramp counts once.
  CHECK(seconds(Collective::kAllReduce, 16e6 * 8 / 7) == Approx(400e-6));
  // Between nodes the network decides, which has none.
  shape = tiers(2, 1);
  shape.intra.ramp = 40_us;
  CHECK(collective_seconds(Collective::kAllGather, 100e6, {1, 2, 1}, shape) == after_call(5.01e-3));
}

TEST_CASE("A100: all-reduce bus bandwidth of a large message") {
  // Published for 8 x A100 with NVSwitch at 1 GiB: 229 GB/s; by the formula 300 * 0.77 = 231.
  const double bytes = 1073741824;
  const double seconds = collective_seconds(Collective::kAllReduce, bytes, {8, 1, 1}, shape_of(a100(), 1, 8));
  CHECK(2.0 * 7 / 8 * bytes / seconds == Approx(231e9).epsilon(0.01));
}

TEST_CASE("in a mesh a group has its own links alone") {
  // 100 GB/s to all seven others, 100/7 to one: two ranks move half of 800 MB at 100/7, 1 us + 28 ms; eight as above.
  cluster::DeviceShape shape = tiers(1, 8);
  shape.device.peer_pair = shape.intra.bandwidth / 7;
  CHECK(collective_seconds(Collective::kAllGather, 800e6, {2, 1, 1}, shape) == after_call(28.001e-3));
  CHECK(collective_seconds(Collective::kAllGather, 800e6, {8, 1, 1}, shape) == after_call(7.007e-3));
}

TEST_CASE("between members the hierarchy pays the network once") {
  // 2 members x 8 ranks, 800 MB. Inside twice 7.007 ms; between: ring of 2 over 10 GB/s, all lanes together 800 MB:
  // 2 (10 us + 40 ms) = 80.02 ms. Sum 94.034 ms. The flat ring: 30 steps of 10 us, 2 * 15/16 * 80 ms = 150 ms.
  CHECK(collective_seconds(Collective::kAllReduce, 800e6, {8, 2, 1}, tiers(2, 8)) == after_call(94.034e-3));
}

TEST_CASE("without a hierarchy the slowest hop decides for all ranks") {
  // The flat ring of the case above: 30 steps of 10 us, 2 * 15/16 * 80 ms; the tree, 2 * 4 * 10 us + 160 ms, is slower.
  cluster::DeviceShape shape = tiers(2, 8);
  shape.methods.hierarchical = false;
  CHECK(collective_seconds(Collective::kAllReduce, 800e6, {8, 2, 1}, shape) == after_call(150.3e-3));
  CHECK(collective_seconds(Collective::kAllReduce, 800e6, {8, 1, 1}, shape) == after_call(14.014e-3));
}

TEST_CASE("groups that share a card divide it") {
  // One rank in each of 2 members, 8 such groups: 10/8 GB/s each. 100 MB: 10 us + 50 MB / 1.25 GB/s = 40.01 ms.
  CHECK(collective_seconds(Collective::kAllGather, 100e6, {1, 2, 8}, tiers(2, 8)) == after_call(40.01e-3));
  // The law: sharing * algbw * (n-1)/n is the card's bandwidth, whatever the sharing.
  for (const int sharing : {1, 2, 4, 8}) {
    const double bytes = 4e9;
    const double seconds = collective_seconds(Collective::kAllGather, bytes, {1, 4, sharing}, tiers(4, 8));
    CHECK(sharing * bytes / seconds * 3 / 4 == Approx(10e9).epsilon(1e-3));
  }
}

TEST_CASE("all-to-all loads the network with what leaves the member") {
  // 2 members x 4 ranks, 80 MB a rank: half of each rank's data leaves, 4 * 40 MB over 10 GB/s = 16 ms, 3 steps of 1 us
  // and 4 of 10 us. In two phases: 3 us + 0.6 ms inside, 10 us + 16 ms between, which is 0.6 ms - 30 us more. The
  // network gives such exchanges a larger share than it gives other collectives.
  CHECK(collective_seconds(Collective::kAllToAll, 80e6, {4, 2, 1}, tiers(2, 4)) ==
        after_call(16e-3 * kNetworkShare / kDispatchShare + 0.043e-3));
}

TEST_CASE("nothing to do takes no time") {
  CHECK(collective_seconds(Collective::kAllReduce, 1e9, {1, 1, 1}, tiers(1, 8)) == 0);
  CHECK(collective_seconds(Collective::kAllReduce, 0, {8, 1, 1}, tiers(1, 8)) == 0);
}

TEST_CASE("a link that no group crosses may be absent") {
  // One member has no network, members of one GPU no link inside.
  cluster::DeviceShape alone = tiers(1, 8);
  alone.inter = {};
  cluster::DeviceShape single = tiers(8, 1);
  single.intra = {};
  for (const Collective kind :
       {Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter, Collective::kAllToAll}) {
    CHECK(collective_seconds(kind, 800e6, place_group(8, 1, alone), alone) < 1);
    CHECK(collective_seconds(kind, 800e6, place_group(8, 1, single), single) < 1);
  }
}

TEST_CASE("groups are placed member by member") {
  const cluster::DeviceShape shape = tiers(4, 8);
  CHECK(same(place_group(8, 1, shape), {8, 1, 1}));   // tp 8 fills a member
  CHECK(same(place_group(2, 2, shape), {2, 1, 1}));   // cp 2 behind tp 2
  CHECK(same(place_group(4, 8, shape), {1, 4, 8}));   // dp 4 behind tp 8: 8 groups share each card
  CHECK(same(place_group(8, 4, shape), {2, 4, 4}));   // dp 8 behind tp 4: two ranks a member
  CHECK(same(place_group(32, 1, shape), {8, 4, 1}));  // the whole shape
  CHECK(same(place_group(16, 1, shape), {8, 2, 1}));  // tp across two members
  CHECK(same(place_group(1, 8, shape), {1, 1, 1}));
  CHECK(same(place_group(4, 1, tiers(4, 1)), {1, 4, 1}));
  CHECK(same(place_group(6, 1, tiers(1, 8)), {6, 1, 1}));
}

TEST_CASE("groups that do not align are described by the one that crosses most") {
  // 2 members of 6, tp 4: ranks 4..7 lie half in each.
  CHECK(same(place_group(4, 1, tiers(2, 6)), {2, 2, 3}));
}

TEST_CASE("aggregate bandwidth is that of all members") {
  CHECK(aggregate_bandwidth({10_GBps, 1_us}, 4).value() == Approx(40e9));
}

TEST_CASE("over links from GPU to GPU a step of a ring is a rank's own") {
  // 800 MB, 100 GB/s: 8 ranks move 7 ms and copy 1 ms of it in 0.3, pairs move 4 ms and copy 4 in 1.2.
  cluster::DeviceShape shape = tiers(1, 8);
  shape.intra.bandwidth = BytesPerSecond(100e9 / kPeerShare);
  shape.device.peer_link = shape.intra;
  const auto seconds = [&](Collective kind, int ranks) {
    return collective_seconds(kind, 800e6, {ranks, 1, 1}, shape);
  };
  CHECK(seconds(Collective::kAllGather, 8) == after_call(7.007e-3 + 0.3e-3));
  CHECK(seconds(Collective::kReduceScatter, 2) == after_call(4.001e-3 + 1.2e-3));
  CHECK(seconds(Collective::kAllReduce, 8) == after_call(14.014e-3 + 0.3e-3));
  CHECK(seconds(Collective::kAllToAll, 2) == after_call(4.001e-3 + 1.2e-3));
  // Over the bus of the host there is no such step.
  shape.device.pcie.bandwidth = shape.intra.bandwidth;
  const double slower = kPeerShare / kInsideShare;
  CHECK(seconds(Collective::kAllGather, 8) == after_call(7e-3 * slower + 7e-6));
}
