// What if the fleet were another: what changes, and where texts are wrong.
#include "tangram/cluster/edits.hpp"

#include <algorithm>

#include "support/catch.hpp"
#include "support/topology.hpp"

using namespace tangram;
using namespace tangram::cluster;

namespace {

/// Racks r1 (a, b) and r2 (c): 8 A100 each in r1, 4 V100 in r2; 200 Gbit/s in r1, 10 Gbit/s between.
Fleet two_racks() { return tangram::testing::topology("[A100-80x8 a]==ib200==[A100-80x8 b]--eth10--[V100-32x4 c]"); }

Fleet with(const Edits& edits) {
  auto fleet = edited(two_racks(), edits);
  if (!fleet) FAIL(render(fleet.error()));
  return *fleet;
}

std::string error_of(const Edits& edits) {
  const auto fleet = edited(two_racks(), edits);
  REQUIRE_FALSE(fleet);
  return render(fleet.error());
}

std::vector<std::string> names(const Fleet& fleet) {
  std::vector<std::string> result;
  for (const Node& node : fleet.nodes) result.push_back(node.name);
  return result;
}

}  // namespace

TEST_CASE("edits: none leave the fleet as it is") { CHECK(with({}).digest == two_racks().digest); }

TEST_CASE("edits: nodes go by name, by label and by GPU type") {
  CHECK(names(with({{"node=b"}, {}, {}})) == std::vector<std::string>{"a", "c"});
  CHECK(names(with({{"rack=r1"}, {}, {}})) == std::vector<std::string>{"c"});
  CHECK(names(with({{"gpu=V100"}, {}, {}})) == std::vector<std::string>{"a", "b"});
  CHECK(names(with({{"node=a", "node=c"}, {}, {}})) == std::vector<std::string>{"b"});
}

TEST_CASE("edits: added nodes are like those that are there, in their rack unless another is said") {
  const Fleet fleet = with({{}, {"gpu=A100,nodes=2"}, {}});
  REQUIRE(names(fleet) == std::vector<std::string>{"a", "added-1", "added-2", "b", "c"});
  CHECK(fleet.gpu_count() == 36);
  CHECK(fleet.nodes[1].groups == fleet.nodes[0].groups);
  CHECK(fleet.nodes[1].labels == fleet.nodes[0].labels);
  CHECK(fleet.between(0, 1).bandwidth.value() == Approx(25e9));
  const Fleet other = with({{}, {"gpu=A100,nodes=1,rack=r2,count=4,network=100Gbit"}, {}});
  CHECK(other.nodes[1].groups.front().count == 4);
  CHECK(other.nodes[1].network.bandwidth.value() == Approx(12.5e9));
  CHECK(other.between(0, 1).bandwidth.value() == Approx(1.25e9));
}

TEST_CASE("edits: added nodes are like one of them, as it is now") {
  const Fleet hot = with({{}, {}, {"node(b).compute=70%"}});
  const auto fleet = edited(hot, {{}, {"like=b,nodes=2"}, {}});
  REQUIRE(fleet);
  REQUIRE(names(*fleet) == std::vector<std::string>{"a", "added-1", "added-2", "b", "c"});
  CHECK(fleet->nodes[1].groups == hot.nodes[1].groups);
  CHECK(fleet->nodes[1].labels == hot.nodes[1].labels);
  CHECK_FALSE(fleet->nodes[1].groups == fleet->nodes[0].groups);
  const Fleet other = with({{}, {"like=c,rack=r1,network=100Gbit"}, {}});
  CHECK(other.nodes[1].groups == two_racks().nodes[2].groups);
  CHECK(other.nodes[1].labels.at("rack") == "r1");
  CHECK(other.nodes[1].network.bandwidth.value() == Approx(12.5e9));
}

TEST_CASE("edits: a type the fleet has not comes from the catalogue") {
  const Fleet fleet = with({{}, {"gpu=L40S,nodes=1,count=8,network=200Gbit"}, {}});
  REQUIRE(fleet.nodes.size() == 4);
  CHECK(fleet.nodes[1].groups.front().device.name == "L40S");
  CHECK(fleet.nodes[1].groups.front().count == 8);
  CHECK(fleet.nodes[1].network.bandwidth.value() == Approx(25e9));
}

TEST_CASE("edits: what is not said of a new type is taken from the largest nodes, and told") {
  const Fleet fleet = with({{}, {"gpu=H100,nodes=2"}, {}});
  REQUIRE(names(fleet) == std::vector<std::string>{"a", "added-1", "added-2", "b", "c"});
  CHECK(fleet.nodes[1].groups.front().device.name == "H100-80GB-SXM");
  CHECK(fleet.nodes[1].groups.front().count == 8);
  CHECK(fleet.nodes[1].network.bandwidth.value() == fleet.nodes[0].network.bandwidth.value());
  CHECK(fleet.assumed ==
        std::vector<std::string>{"--add: H100 is taken as H100-80GB-SXM, 8 GPUs a node and 200 Gbit/s as a has"});
  CHECK(with({{}, {"gpu=L40S,network=100Gbit"}, {}}).assumed ==
        std::vector<std::string>{"--add: L40S: 8 GPUs a node as a has"});
  CHECK(with({{}, {"gpu=L40S,count=4,network=100Gbit"}, {}}).assumed.empty());
  // Of the fleet's own types nothing is left open, and a word that is one of them means it.
  CHECK(with({{}, {"gpu=V100,nodes=1"}, {}}).assumed.empty());
  CHECK(with({{}, {"gpu=A10G"}, {}}).nodes[1].groups.front().device.name == "A10G");
}

TEST_CASE("edits: links, nodes and types get other figures") {
  // 5 Gbit/s = 0.625 GB/s between the racks; the latency stays that of eth, 20 us.
  const Fleet slow = with({{}, {}, {"link(rack:r1,rack:r2).bandwidth=5Gbit"}});
  CHECK(slow.between(0, 2).bandwidth.value() == Approx(0.625e9));
  CHECK(slow.between(0, 2).latency == two_racks().between(0, 2).latency);
  CHECK(slow.between(0, 1) == two_racks().between(0, 1));
  CHECK(with({{}, {}, {"link(rack).latency=3ms"}}).between(1, 2).latency == Nanoseconds(3'000'000));
  CHECK(with({{}, {}, {"link(rack:r1,rack:r1).bandwidth=1GB/s"}}).between(0, 1).bandwidth.value() == Approx(1e9));

  const Fleet hot = with({{}, {}, {"node(b).compute=70%"}});
  const auto peak = [](const Fleet& fleet, std::size_t n) {
    return fleet.nodes[n].groups.front().device.peak_of(DType::kBf16).value();
  };
  CHECK(peak(hot, 1) == Approx(0.7 * peak(two_racks(), 1)));
  CHECK(peak(hot, 0) == Approx(peak(two_racks(), 0)));
  CHECK(with({{}, {}, {"node(rack:r1).network=50Gbit"}}).between(0, 1).bandwidth.value() == Approx(6.25e9));
  const Fleet dear = with({{}, {}, {"gpu(V100).price=9.5", "node(a).price=30"}});
  CHECK(dear.nodes[2].groups.front().device.price_per_hour.value() == Approx(9.5));
  CHECK(dear.nodes[0].price_per_hour.value() == Approx(30));
  CHECK(with({{}, {}, {"gpu(A100).memory=50%"}}).nodes[1].groups.front().device.memory.as_double() ==
        Approx(0.5 * two_racks().nodes[1].groups.front().device.memory.as_double()));
}

TEST_CASE("edits: the digest is that of the fleet that comes out") {
  CHECK(with({{"node=c"}, {}, {}}).digest != two_racks().digest);
  CHECK(with({{"node=c"}, {}, {}}).digest == with({{"gpu=V100"}, {}, {}}).digest);
}

TEST_CASE("edits: mistakes point into the argument") {
  CHECK(error_of({{"rack=r3"}, {}, {}}) ==
        "--drop:1:6: error: there is no rack \"r3\"\n  rack=r3\n       ^~\n  hint: did you mean \"r1\"?\n");
  CHECK(error_of({{"rank=r1"}, {}, {}}) ==
        "--drop:1:1: error: there is no label \"rank\"\n  rank=r1\n  ^~~~\n  hint: did you mean \"rack\"?\n");
  CHECK(error_of({{"c"}, {}, {}}) == "--drop:1:1: error: no \"=\" in it\n  c\n  ^\n  hint: NAME=VALUE\n");
  CHECK(error_of({{"node=[a-b]"}, {}, {}}).starts_with("--drop:1:6: error: "));
  CHECK(error_of({{"node=a", "node=b", "node=c"}, {}, {}}) ==
        "--drop:1:1: error: nothing is left of the fleet\n  node=c\n  ^~~~~~\n");
  CHECK(error_of({{}, {"gpu=A100,nodes=0"}, {}}) ==
        "--add:1:16: error: a whole number from 1 to 10000 was expected\n  gpu=A100,nodes=0\n                 ^\n");
  CHECK(error_of({{}, {"gpu=A100,,nodes=1"}, {}}) ==
        "--add:1:10: error: something is missing here\n  gpu=A100,,nodes=1\n           ^\n");
  CHECK(error_of({{}, {"nodes=1"}, {}}) ==
        "--add:1:1: error: which GPUs?\n  nodes=1\n  ^~~~~~~\n  hint: gpu=TYPE,nodes=N or like=NODE,nodes=N\n");
  CHECK(error_of({{}, {"like=node-9"}, {}}) ==
        "--add:1:6: error: there is no node \"node-9\"\n  like=node-9\n       ^~~~~~\n  hint: known: a, b, c\n");
  CHECK(error_of({{}, {"gpu=A100,like=a"}, {}}) ==
        "--add:1:15: error: gpu= and like= both say which GPUs\n  gpu=A100,like=a\n                ^\n"
        "  hint: leave one of them out\n");
  CHECK(error_of({{}, {"like=a,count=4"}, {}}) ==
        "--add:1:6: error: a node like another has as many GPUs\n  like=a,count=4\n       ^\n");
  CHECK(error_of({{}, {"gpu=H1,count=4,network=10Gbit"}, {}}).find("may be several GPU types") != std::string::npos);
  CHECK(error_of({{}, {"gpu=RTX"}, {}}).find("may be several GPU types") != std::string::npos);
  CHECK(error_of({{}, {}, {"link(rack:r1,rack:r2).bandwidth=fast"}}) ==
        "--set:1:33: error: a rate was expected\n  link(rack:r1,rack:r2).bandwidth=fast\n"
        "                                  ^~~~\n  hint: as in 10Gbit or 1.25GB (a second)\n");
  CHECK(error_of({{}, {}, {"link(rack:r1,rack:r2).speed=1Gbit"}}) ==
        "--set:1:23: error: there is no property of a link \"speed\"\n  link(rack:r1,rack:r2).speed=1Gbit\n"
        "                        ^~~~~\n  hint: known: bandwidth, latency\n");
  CHECK(error_of({{}, {}, {"link(rack:r1).bandwidth=1Gbit"}}).starts_with("--set:1:6: error: "));
  CHECK(error_of({{}, {}, {"nod(a).network=1Gbit"}}) ==
        "--set:1:1: error: there is no kind of thing \"nod\"\n  nod(a).network=1Gbit\n  ^~~\n  hint: did you mean "
        "\"node\"?\n");
  CHECK(error_of({{}, {}, {"node(a).compute=0.7"}}) ==
        "--set:1:17: error: a share of what is there was expected\n  node(a).compute=0.7\n                  ^~~\n"
        "  hint: as in 70%\n");
  CHECK(error_of({{}, {}, {"bandwidth=1Gbit"}}).starts_with("--set:1:1: error: what is to be set?"));
}

TEST_CASE("edits: mistakes of all arguments are told at once") {
  const auto fleet = edited(two_racks(), {{"rack=r9"}, {"gpu=Nope"}, {"node(z).network=1Gbit"}});
  REQUIRE_FALSE(fleet);
  CHECK(fleet.error().size() == 3);
  for (const Diagnostic& d : fleet.error()) CHECK(d.kind == ErrorKind::kUsage);
}
