// The fleets in configs/clusters are what their headers say.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"

using namespace tangram;
using namespace tangram::cluster;

namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::string kFolder = TANGRAM_SOURCE_DIR "/configs/clusters/";

Fleet shipped(const std::string& name) {
  auto fleet = read_fleet(slurp(kFolder + name + ".json"), name + ".json");
  if (!fleet) FAIL(render(fleet.error()));
  return *std::move(fleet);
}

std::map<std::string, int> gpus_by_type(const Fleet& fleet) {
  std::map<std::string, int> count;
  for (const Node& node : fleet.nodes) {
    for (const DeviceGroup& group : node.groups) count[group.device.name] += group.count;
  }
  return count;
}

}  // namespace

TEST_CASE("shipped fleets: all read, all have a comment, a name of their own and a canonical form") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    const std::string name = entry.path().stem().string();
    INFO(name);
    ++files;
    CHECK(slurp(entry.path().string()).starts_with("//"));
    const Fleet fleet = shipped(name);
    CHECK(fleet.name == name);
    auto again = read_fleet(write_fleet(fleet), "canonical");
    REQUIRE(again);
    CHECK(again->digest == fleet.digest);
  }
  CHECK(files >= 12);
}

TEST_CASE("shipped fleets: sizes") {
  using Count = std::map<std::string, int>;
  CHECK(gpus_by_type(shipped("rtx-mixed-hosts")) == Count{{"RTX-3080", 4}, {"RTX-4090", 4}});
  CHECK(shipped("blackwell-hopper-1k").gpu_count() == 1024);
  const Fleet large = shipped("fleet-10k");
  CHECK(large.gpu_count() == 10'000);
  CHECK(gpus_by_type(large).size() == 6);
  const Fleet testbed = shipped("testbed-36-types");
  CHECK(gpus_by_type(testbed).size() == 36);
  CHECK(std::ranges::all_of(testbed.nodes, [](const Node& node) { return node.groups.front().count == 6; }));
  // One screen.
  const std::string text = slurp(kFolder + "fleet-10k.json");
  CHECK(std::count(text.begin(), text.end(), '\n') <= 50);
}

TEST_CASE("shipped fleets: the throttled node differs from its neighbours in the rate alone") {
  const Fleet fleet = shipped("a100-throttled-node");
  std::set<double> rates;
  for (const Node& node : fleet.nodes) rates.insert(node.groups[0].device.compute.gemm_efficiency);
  CHECK(rates.size() == 2);
  CHECK(gpus_by_type(fleet).size() == 1);
}

TEST_CASE("shipped fleets: zones are far apart") {
  const Fleet fleet = shipped("geo-two-zones");
  const Link far = fleet.between(0, fleet.nodes.size() - 1);
  CHECK(far.latency > Nanoseconds(10'000'000));
  CHECK(far.bandwidth < fleet.between(0, 1).bandwidth);
}
