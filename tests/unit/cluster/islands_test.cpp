#include "tangram/cluster/islands.hpp"

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/topology.hpp"

using namespace tangram;
using namespace tangram::cluster;
using tangram::testing::topology;

namespace {

constexpr double kTolerance = 0.10;

IslandHierarchy islands_of(const std::string& drawing, double tolerance = kTolerance) {
  return find_islands(topology(drawing), tolerance);
}

std::vector<std::string> level_names(const IslandHierarchy& hierarchy) {
  std::vector<std::string> names;
  for (const IslandLevel& level : hierarchy.levels) names.push_back(level.name);
  return names;
}

std::vector<std::string> aliases(const IslandLevel& level) {
  std::vector<std::string> names;
  for (const IslandClass& c : level.classes) names.push_back(c.alias);
  return names;
}

using Names = std::vector<std::string>;

double gbps(const Link& link) { return link.bandwidth.value() / 1e9; }

}  // namespace

// Two hosts of A100 on 200 Gbit/s = 25 GB/s; the V100 host hangs on 10 Gbit/s = 1.25 GB/s.
TEST_CASE("GPU types make islands, fastest first", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-80x8 a]==ib200==[A100-80x8 b]--eth10--[V100-32x4 c]");
  REQUIRE(level_names(hierarchy) == Names{"fleet"});
  const IslandLevel& level = hierarchy.levels.front();
  CHECK(aliases(level) == Names{"A100-80", "V100-32"});
  CHECK(level.threshold == Approx(25e9));

  const IslandClass& a100 = level.classes[0];
  CHECK(a100.gpus_per_member == 8);
  CHECK(a100.members_per_island == 2);
  CHECK(a100.gpu_count() == 16);
  CHECK(gbps(a100.inside_member) == Approx(300));
  CHECK(gbps(a100.between_members) == Approx(25));
  CHECK(gbps(level.link(0, 0)) == Approx(25));
  CHECK(gbps(level.link(0, 1)) == Approx(1.25));
  CHECK(gbps(level.link(1, 0)) == Approx(1.25));

  REQUIRE(level.islands.size() == 2);
  CHECK(level.islands[0].members == std::vector<IslandMember>{{0, 0, 0, 8}, {1, 0, 0, 8}});
  CHECK(level.islands[1].members == std::vector<IslandMember>{{2, 0, 0, 4}});
  CHECK(level.islands[0].reason == "2 nodes alike within 10 %: A100-80, 8 GPUs on NVLink; joined by 200 Gbit/s");
}

// 0.69 of the others' matrix products: 31 % slower, more than 10 %.
TEST_CASE("a throttled node falls out of its type's island", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-80x8 a*7]==ib200==[A100-80x8 slow compute=0.69]");
  REQUIRE(hierarchy.levels.size() == 1);
  const IslandLevel& level = hierarchy.levels.front();
  CHECK(aliases(level) == Names{"A100-80", "A100-80@compute-31%"});
  REQUIRE(level.islands.size() == 2);
  CHECK(level.islands[0].members.size() == 7);
  CHECK(level.islands[1].reason ==
        "A100-80, 8 GPUs on NVLink; apart from a-0 and 6 more: 31 % slower matrix products (measured)");
  CHECK(level.islands[0].reason ==
        "7 nodes alike within 10 %: A100-80, 8 GPUs on NVLink; joined by 200 Gbit/s; apart from slow: 31 % slower "
        "matrix products (measured) there");
  // 0.70 x 0.69 = 0.483 of the peak.
  CHECK(level.classes[1].device.compute.gemm_efficiency == Approx(0.483));
}

// Within the tolerance the throttled node stays, and the class is as slow as it is.
TEST_CASE("a class has the worst of its members in every metric", "[islands]") {
  const IslandLevel level =
      islands_of("[A100-80x8 a compute=0.95 price=16]==ib200==[A100-80x8 b membw=0.92 price=8]").levels.front();
  REQUIRE(level.classes.size() == 1);
  const IslandClass& c = level.classes.front();
  CHECK(c.device.compute.gemm_efficiency == Approx(0.70 * 0.95));
  CHECK(c.device.memory_bandwidth.value() == Approx(2039e9 * 0.92));
  CHECK(c.device.memory == Bytes(80'000'000'000));
  // 16 $ / 8 GPUs against 8 $ / 8 GPUs: the dearer one, so that no plan costs more than it says.
  CHECK(c.price_per_gpu_hour.value() == Approx(2.0));
}

// Tolerance t unites up to a ratio of 1 - t: exactly 10 % apart is inside, 0.899 is outside of 10 %, and 0 unites only
// equals. With 0.30 the node at 0.71 stays and the one at 0.69 leaves.
TEST_CASE("the tolerance is the largest relative difference", "[islands]") {
  const auto count = [](const std::string& factor, double tolerance) {
    return islands_of("[A100-80x8 a]==ib200==[A100-80x8 b compute=" + factor + "]", tolerance)
        .levels.front()
        .islands.size();
  };
  CHECK(count("0.9", 0.10) == 1);
  CHECK(count("0.899", 0.10) == 2);
  CHECK(count("1", 0) == 1);
  CHECK(count("0.9999", 0) == 2);
  CHECK(count("0.71", 0.30) == 1);
  CHECK(count("0.69", 0.30) == 2);
}

// 1, 0.93, 0.86, 0.79: neighbours are alike (ratio >= 0.9), the ends are not. Complete linkage cuts the chain instead
// of following it: ratios 0.93, 0.925, 0.919, so the nearest pair is (1, 0.93); of the rest (0.86, 0.79) is left
// together, since 0.86 against 1 is 14 %.
TEST_CASE("a chain of near neighbours is cut", "[islands]") {
  const IslandLevel level = islands_of(
                                "[A100-80x8 a]==ib200==[A100-80x8 b compute=0.93]==ib200==[A100-80x8 c compute=0.86]"
                                "==ib200==[A100-80x8 d compute=0.79]")
                                .levels.front();
  REQUIRE(level.islands.size() == 2);
  CHECK(level.islands[0].members == std::vector<IslandMember>{{0, 0, 0, 8}, {1, 0, 0, 8}});
  CHECK(level.islands[1].members == std::vector<IslandMember>{{2, 0, 0, 8}, {3, 0, 0, 8}});
}

TEST_CASE("the same GPU with 40 and 80 GB makes two classes", "[islands]") {
  const IslandLevel level = islands_of("[A100-40x8 a*2]==ib200==[A100-80x8 b*2]").levels.front();
  CHECK(aliases(level) == Names{"A100-80", "A100-40"});
  const IslandLevel same_name = islands_of("[A100-80x8 a*2]==ib200==[A100-80x8 b*2 memory=0.5]").levels.front();
  // 80 GB - 1 GiB = 78.93, 40 GB - 1 GiB = 38.93: 51 % less to use.
  CHECK(aliases(same_name) == Names{"A100-80", "A100-80@memory-51%"});
}

// Half the cables: 100 instead of 200 Gbit/s.
TEST_CASE("a half-cabled node falls out", "[islands]") {
  const IslandLevel level = islands_of("[A100-80x8 a*3]==ib200==[A100-80x8 half net=100]").levels.front();
  CHECK(aliases(level) == Names{"A100-80", "A100-80@network-50%"});
  CHECK(level.islands[1].reason == "A100-80, 8 GPUs on NVLink; apart from a-0 and 2 more: 50 % slower network");
  CHECK(gbps(level.link(0, 0)) == Approx(25));
  CHECK(gbps(level.link(0, 1)) == Approx(12.5));
}

// A pair is a member: 2 GPUs x 32 GB/s of PCIe = 64 GB/s to the other pair of its host; of the host's 200 Gbit/s = 25
// GB/s half, 12.5, to pairs of other hosts.
TEST_CASE("NVLink pairs are members, joined by the host bus and then by the network", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-40x4 a*3 clique=2 net=200]");
  REQUIRE(level_names(hierarchy) == Names{"host", "fleet"});
  const IslandLevel& host = hierarchy.levels[0];
  REQUIRE(host.classes.size() == 1);
  CHECK(host.classes[0].islands == std::vector<int>{0, 1, 2});
  CHECK(host.classes[0].gpus_per_member == 2);
  CHECK(host.classes[0].members_per_island == 2);
  CHECK(gbps(host.classes[0].between_members) == Approx(64));
  CHECK(gbps(host.classes[0].between_islands) == Approx(12.5));
  CHECK(gbps(host.link(0, 0)) == Approx(12.5));
  CHECK(host.islands[1].members == std::vector<IslandMember>{{1, 0, 0, 2}, {1, 0, 2, 2}});

  const IslandLevel& fleet = hierarchy.levels[1];
  REQUIRE(fleet.classes.size() == 1);
  CHECK(fleet.classes[0].members_per_island == 6);
  CHECK(gbps(fleet.classes[0].between_members) == Approx(12.5));
}

// A bus of 5 GB/s per GPU is 10 GB/s per pair, slower than the pair's 12.5 GB/s share of the network: the first pairs
// of the hosts are one island, the second pairs another.
TEST_CASE("pairs on a slow host bus are joined across hosts first", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-40x4 a*3 clique=2 net=200 bus=5]");
  REQUIRE(hierarchy.levels.size() == 2);
  const IslandLevel& rails = hierarchy.levels[0];
  REQUIRE(rails.islands.size() == 2);
  CHECK(rails.classes.size() == 1);
  CHECK(rails.islands[0].members == std::vector<IslandMember>{{0, 0, 0, 2}, {1, 0, 0, 2}, {2, 0, 0, 2}});
  CHECK(rails.islands[1].members == std::vector<IslandMember>{{0, 0, 2, 2}, {1, 0, 2, 2}, {2, 0, 2, 2}});
  CHECK(gbps(rails.classes[0].between_members) == Approx(12.5));
  CHECK(gbps(rails.classes[0].between_islands) == Approx(10));
  CHECK(hierarchy.levels[1].islands.size() == 1);
}

// 200 Gbit/s inside a rack, 25 = 3.125 GB/s between racks.
TEST_CASE("two racks on a thin link are two islands of one class, or one island", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-80x8 a*4]==ib200==[A100-80x8 b]--eth25--[A100-80x8 c*5 net=200]");
  REQUIRE(level_names(hierarchy) == Names{"rack", "fleet"});
  const IslandLevel& rack = hierarchy.levels[0];
  REQUIRE(rack.classes.size() == 1);
  CHECK(rack.classes[0].islands.size() == 2);
  CHECK(rack.classes[0].members_per_island == 5);
  CHECK(gbps(rack.classes[0].between_members) == Approx(25));
  CHECK(gbps(rack.classes[0].between_islands) == Approx(3.125));
  CHECK(rack.islands[0].reason ==
        "5 nodes alike within 10 %: A100-80, 8 GPUs on NVLink; joined by 200 Gbit/s; 25 Gbit/s to 1 island like it");
  CHECK(hierarchy.levels[1].classes.size() == 1);
  CHECK(gbps(hierarchy.levels[1].classes[0].between_members) == Approx(3.125));
}

// Racks of unequal size are not interchangeable.
TEST_CASE("classes of one type are told apart by their label", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-80x8 a*4 net=200]--eth25--[A100-80x8 b*3 net=200]");
  CHECK(aliases(hierarchy.levels[0]) == Names{"A100-80@rack=r1", "A100-80@rack=r2"});
  CHECK(hierarchy.levels[0].islands[1].reason ==
        "3 nodes alike within 10 %: A100-80, 8 GPUs on NVLink; joined by 200 Gbit/s; apart from a-0 and 3 more: 25 "
        "Gbit/s between");
  CHECK(aliases(hierarchy.levels[1]) == Names{"A100-80"});
}

// Racks r1, r2 | r3, r4: 100 Gbit/s inside a zone, 10 between the zones. All four racks look alike one by one, but
// exchanging r2 and r3 changes links: a class per zone, whose racks see 100 Gbit/s = 12.5 GB/s.
TEST_CASE("a class does not mix islands that see each other through different links", "[islands]") {
  const IslandHierarchy hierarchy = islands_of(
      "[A100-80x8 a*2 net=200]--eth100--[A100-80x8 b*2 net=200]--eth10--[A100-80x8 c*2 net=200]--eth100--"
      "[A100-80x8 d*2 net=200]");
  REQUIRE(hierarchy.levels.size() == 3);
  const IslandLevel& racks = hierarchy.levels[0];
  REQUIRE(racks.classes.size() == 2);
  CHECK(racks.islands.size() == 4);
  CHECK(gbps(racks.classes[0].between_islands) == Approx(12.5));
  CHECK(gbps(racks.link(0, 1)) == Approx(1.25));
  const IslandLevel& zones = hierarchy.levels[1];
  REQUIRE(zones.classes.size() == 1);
  CHECK(zones.islands.size() == 2);
  CHECK(gbps(zones.classes[0].between_members) == Approx(12.5));
  CHECK(zones.name == "100 Gbit/s");
  CHECK(hierarchy.levels[2].islands.size() == 1);
}

// Hosts with two pairs each, two hosts a rack: inside a rack two hosts see 12.5 GB/s a pair, between racks half
// of 3.125.
TEST_CASE("hosts are interchangeable inside their rack only", "[islands]") {
  const IslandLevel level =
      islands_of("[A100-40x4 a*2 clique=2 net=200]--eth25--[A100-40x4 b*2 clique=2 net=200]").levels.front();
  CHECK(level.name == "host");
  CHECK(level.islands.size() == 4);
  CHECK(aliases(level) == Names{"A100-40@rack=r1", "A100-40@rack=r2"});
  CHECK(gbps(level.classes[0].between_islands) == Approx(12.5));
  CHECK(gbps(level.link(0, 1)) == Approx(1.5625));
}

// 32 MiB at 12.5 GB/s take 2.7 ms; 30 ms of latency make the same bandwidth 12 times slower.
TEST_CASE("latency separates what bandwidth joins", "[islands]") {
  Fleet fleet = topology("[A100-80x8 a*2 net=100]--eth100--[A100-80x8 b*2 net=100]");
  CHECK(find_islands(fleet, kTolerance).levels.size() == 1);
  fleet.rules.front().link.latency = Nanoseconds(30'000'000);
  const IslandHierarchy hierarchy = find_islands(fleet, kTolerance);
  REQUIRE(hierarchy.levels.size() == 2);
  CHECK(hierarchy.levels[0].classes[0].between_islands.latency == Nanoseconds(30'000'000));
  CHECK(hierarchy.levels[1].classes[0].between_members.latency == Nanoseconds(30'000'000));
}

// Of the node's 100 Gbit/s = 12.5 GB/s each half of the GPUs gets half; inside a host the two types see 2 x 32 GB/s,
// but not in the other host, so that the slowest link counts.
TEST_CASE("a node with two GPU types has members of two classes", "[islands]") {
  const IslandLevel level = islands_of("[RTX3080x2+RTX4090x2 h*2]").levels.front();
  CHECK(aliases(level) == Names{"RTX4090", "RTX3080"});
  CHECK(level.islands[0].members == std::vector<IslandMember>{{0, 1, 2, 2}, {1, 1, 2, 2}});
  CHECK(level.islands[1].members == std::vector<IslandMember>{{0, 0, 0, 2}, {1, 0, 0, 2}});
  CHECK(gbps(level.link(0, 1)) == Approx(6.25));
  const IslandLevel alone = islands_of("[RTX3080x2+RTX4090x2 h]").levels.front();
  CHECK(alone.name == "node");
  CHECK(alone.threshold == 0);
  CHECK(gbps(alone.link(0, 1)) == Approx(64));
}

TEST_CASE("members of different sizes are never alike", "[islands]") {
  const IslandLevel level = islands_of("[A100-80x8 a]==ib200==[A100-80x4 b]").levels.front();
  CHECK(aliases(level) == Names{"A100-80@x8", "A100-80@x4"});
}

TEST_CASE("GPUs of two vendors or with other number formats are never alike", "[islands]") {
  Fleet fleet = topology("[A100-80x8 a]==ib200==[A100-80x8 b]");
  fleet.nodes[1].groups[0].device.peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(0);
  CHECK(find_islands(fleet, 0.3).levels.front().islands.size() == 2);
  fleet = topology("[A100-80x8 a]==ib200==[A100-80x8 b]");
  fleet.nodes[1].groups[0].device.vendor = "amd";
  CHECK(find_islands(fleet, 0.3).levels.front().islands.size() == 2);
}

// a-b and b-c at 25 GB/s, a-c measured at 5: no island may hold a and c. The tie goes to the first pair.
TEST_CASE("measured links decide where they are given", "[islands]") {
  Fleet fleet = topology("[A100-80x8 a]==ib200==[A100-80x8 b]==ib200==[A100-80x8 c]");
  const Link fast{BytesPerSecond(25e9), Nanoseconds(2000)};
  const Link slow{BytesPerSecond(5e9), Nanoseconds(2000)};
  fleet.measured = {Link{}, fast, slow, fast, Link{}, fast, slow, fast, Link{}};
  const IslandHierarchy hierarchy = find_islands(fleet, kTolerance);
  REQUIRE(hierarchy.levels.size() == 2);
  REQUIRE(hierarchy.levels[0].islands.size() == 2);
  CHECK(hierarchy.levels[0].islands[0].members == std::vector<IslandMember>{{0, 0, 0, 8}, {1, 0, 0, 8}});
  CHECK(gbps(hierarchy.levels[0].link(0, 1)) == Approx(5));
  CHECK(gbps(hierarchy.levels[1].classes[0].between_members) == Approx(5));
}

TEST_CASE("nodes without a network stay alone", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-80x8 a*3 net=0]");
  REQUIRE(hierarchy.levels.size() == 1);
  CHECK(hierarchy.levels[0].name == "node");
  CHECK(hierarchy.levels[0].islands.size() == 3);
  REQUIRE(hierarchy.levels[0].classes.size() == 1);
  CHECK(hierarchy.levels[0].classes[0].between_islands.bandwidth.value() == 0);
}

// 2 racks x 2 nodes x 8 GPUs. 4 GPUs: half a member, with half of its 25 GB/s. 16: the two nodes of a rack. 24: three
// members, hence across racks at 3.125 GB/s.
TEST_CASE("a shape is part of a member or whole members", "[islands]") {
  const IslandHierarchy hierarchy = islands_of("[A100-80x8 a*2 net=200]--eth25--[A100-80x8 b*2 net=200]");
  const IslandClass& c = hierarchy.levels.front().classes.front();
  const DeviceShape part = make_shape(c, 4);
  CHECK(part.nodes == 1);
  CHECK(part.per_node == 4);
  CHECK(gbps(part.intra) == Approx(300));
  CHECK(gbps(part.inter) == Approx(12.5));
  const DeviceShape rack = make_shape(c, 16);
  CHECK(rack.nodes == 2);
  CHECK(rack.per_node == 8);
  CHECK(gbps(rack.inter) == Approx(25));
  const DeviceShape wide = make_shape(c, 24);
  CHECK(wide.gpus() == 24);
  CHECK(gbps(wide.inter) == Approx(3.125));
  CHECK(gbps(make_shape(c, 3).inter) == Approx(25 * 3.0 / 8));  // of any number of its GPUs
  CHECK_THROWS(make_shape(c, 12));
  CHECK_THROWS(make_shape(c, 40));
}

// 500 x 8 + 250 x 8 + 250 x 8 + 300 x 4 + 400 x 2 = 10,000 GPUs.
TEST_CASE("ten thousand GPUs take no time", "[islands]") {
  const Fleet fleet = topology(
      "[H100-80x8 a*300]==ib400==[H100-80x8 b*200]--eth100--[A100-80x8 c*250]==ib200==[A100-40x8 d*250]--eth25--"
      "[V100-32x4 e*300]--eth10--[T4x4 f*200 clique=2]");
  REQUIRE(fleet.gpu_count() == 10'000);
  const auto start = std::chrono::steady_clock::now();
  const IslandHierarchy hierarchy = find_islands(fleet, kTolerance);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  CHECK(seconds.count() < 1.0);
  REQUIRE(hierarchy.levels.size() == 2);
  // At the finer level each host's two pairs of T4 are an island of their own; the other types are one each.
  CHECK(hierarchy.levels[0].islands.size() == 204);
  CHECK(hierarchy.levels[1].islands.size() == 5);
  for (const IslandLevel& level : hierarchy.levels) {
    int gpus = 0;
    for (const IslandClass& c : level.classes) gpus += c.gpu_count();
    CHECK(gpus == 10'000);
  }
}

TEST_CASE("aliases and level names are unique", "[islands]") {
  const IslandHierarchy hierarchy = islands_of(
      "[A100-80x8 a*2 net=200]--eth100--[A100-80x8 b*3 net=200]--eth10--[A100-80x8 c*4 net=200 compute=0.5]--eth25--"
      "[A100-80x4 d net=200]--eth10--[A100-80x4 e clique=2 net=50]");
  for (const IslandLevel& level : hierarchy.levels) {
    const std::vector<std::string> names = aliases(level);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  }
  const std::vector<std::string> names = level_names(hierarchy);
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}
