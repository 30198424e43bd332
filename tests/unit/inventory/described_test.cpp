#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/inventory/inventory.hpp"

using namespace tangram;

namespace {

std::string described_error(const std::string& nodes) {
  const auto found = inventory::described({nodes}, cluster::catalogue());
  REQUIRE(!found);
  return found.error().front().message + " | " + found.error().front().hint;
}

}  // namespace

TEST_CASE("described: nodes of a type are numbered on, whatever the text they are in") {
  const auto found =
      inventory::described({"2x8xH100-80GB-SXM", "4xRTX-4090", "1x4xH100-80GB-SXM"}, cluster::catalogue());
  REQUIRE(found);
  REQUIRE(found->nodes.size() == 4);
  CHECK(found->nodes[0].name == "h100-1");
  CHECK(found->nodes[1].name == "h100-2");
  CHECK(found->nodes[2].name == "rtx-4090-1");
  CHECK(found->nodes[2].gpus.front().count == 4);
  CHECK(found->nodes[3].name == "h100-3");
  CHECK(found->nodes[3].gpus.front().count == 4);
}

TEST_CASE("described: what is written is read as the same fleet") {
  auto found = inventory::described({"3x8xA100-80GB-SXM"}, cluster::catalogue());
  REQUIRE(found);
  const auto network = inventory::parse_network("8x200Gbit,infiniband", cluster::catalogue());
  REQUIRE(network);
  inventory::apply_network(*found, {*network});
  const auto text = inventory::write_cluster(*found);
  REQUIRE(text);
  const auto fleet = cluster::read_fleet(*text, "cluster.json");
  REQUIRE(fleet);
  CHECK(fleet->gpu_count() == 24);
  CHECK(fleet->nodes.size() == 3);
  CHECK(fleet->nodes.front().groups.front().device.name == "A100-80GB-SXM");
}

TEST_CASE("described: the beginning of a name is enough where only one type has it") {
  const auto found = inventory::described({"2x8xh200"}, cluster::catalogue());
  REQUIRE(found);
  CHECK(found->nodes.front().gpus.front().device->name.starts_with("H200"));
}

TEST_CASE("described: mistakes say what was meant") {
  CHECK(described_error("H100-80GB-SXM").find("not a number of GPUs and a type") != std::string::npos);
  CHECK(described_error("8x").find("NODESxGPUSxTYPE") != std::string::npos);
  CHECK(described_error("").find("NODESxGPUSxTYPE") != std::string::npos);
  CHECK(described_error("2x8xH100-80GB-SMX").find("did you mean \"H100-80GB-SXM\"?") != std::string::npos);
  CHECK(described_error("2x8xA100").find("say which") != std::string::npos);
  CHECK(described_error("2x8xabacus").find("tangram gpus lists them") != std::string::npos);
  CHECK(described_error("0x8xT4").find("nodes are from 1 to 100000") != std::string::npos);
  CHECK(described_error("1x2000xT4").find("GPUs of a node are from 1 to 1024") != std::string::npos);
}
