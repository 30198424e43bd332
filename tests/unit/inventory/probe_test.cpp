// probe of a machine that is made up: a driver of our own, and ports of network cards in a folder.
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/inventory/inventory.hpp"

using namespace tangram;

namespace {

/// A folder of its own, gone at the end.
class Sys {
 public:
  explicit Sys(const std::string& name) : root_(std::filesystem::temp_directory_path() / name) {
    std::filesystem::remove_all(root_);
  }
  Sys(const Sys&) = delete;
  Sys& operator=(const Sys&) = delete;
  ~Sys() { std::filesystem::remove_all(root_); }

  void port(const std::string& card, const std::string& rate, const std::string& state) const {
    const auto folder = root_ / "class" / "infiniband" / card / "ports" / "1";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "rate") << rate << "\n";
    std::ofstream(folder / "state") << state << "\n";
    std::ofstream(folder / "link_layer") << "InfiniBand\n";
  }
  [[nodiscard]] std::string path() const { return root_.string(); }

 private:
  std::filesystem::path root_;
};

}  // namespace

TEST_CASE("probe: GPUs of the driver, NVLink pairs, a slow slot, the fastest ports") {
  const Sys sys("tangram-probe-test");
  sys.port("mlx5_0", "200 Gb/sec (4X HDR)", "4: ACTIVE");
  sys.port("mlx5_1", "200 Gb/sec (4X HDR)", "4: ACTIVE");
  sys.port("mlx5_2", "200 Gb/sec (4X HDR)", "1: DOWN");
  sys.port("mlx5_3", "25 Gb/sec (1X EDR)", "4: ACTIVE");
  const auto found = inventory::probe({}, cluster::catalogue(), {TANGRAM_FAKE_NVML, sys.path()});
  REQUIRE(found);
  REQUIRE(found->left_out.size() == 1);
  CHECK(found->left_out[0].node == found->nodes[0].name + ", GPU 4");
  CHECK(found->left_out[0].reason == "GPU is lost");
  const auto text = inventory::write_cluster(*found);
  REQUIRE(text);
  const auto fleet = cluster::read_fleet(*text, "cluster.json");
  REQUIRE(fleet);
  const cluster::Node& node = fleet->nodes.front();
  REQUIRE(node.groups.size() == 1);
  CHECK(node.groups[0].device.name == "A6000");
  CHECK(node.groups[0].count == 4);
  CHECK(node.groups[0].clique == 2);
  CHECK(node.host_link.bandwidth.value() == 16e9);         // 16 lanes of PCIe 3.0
  CHECK(node.network.bandwidth.value() == 2 * 200e9 / 8);  // mlx5_0 and mlx5_1
}

TEST_CASE("probe: a machine without a driver gets a clear answer") {
  const auto found = inventory::probe({}, cluster::catalogue(), {"libtangram-no-such-driver.so", "/nonexistent"});
  REQUIRE_FALSE(found);
  REQUIRE(found.error().size() == 1);
  CHECK(found.error().front().code == "no-gpus");
  CHECK(found.error().front().message.find("libtangram-no-such-driver.so") != std::string::npos);
  CHECK_FALSE(found.error().front().hint.empty());
}
