// The importers on reports as fleets give them, and their results read back.
#include <fstream>
#include <set>
#include <sstream>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/inventory/inventory.hpp"

using namespace tangram;
using inventory::LeftOut;

namespace {

profiles::SourceFile report(const std::string& name) {
  std::ifstream in(TANGRAM_SOURCE_DIR "/tests/data/cluster/reports/" + name, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return {name, text.str()};
}

inventory::NetworkChoice network(const std::string& text) {
  auto choice = inventory::parse_network(text, cluster::catalogue());
  REQUIRE(choice);
  return *choice;
}

/// What tangram islands would read.
cluster::Fleet read_back(inventory::Inventory found, const std::string& net = "8x200Gbit,infiniband") {
  inventory::apply_network(found, {network(net)});
  const auto text = inventory::write_cluster(found);
  REQUIRE(text);
  INFO(*text);
  auto fleet = cluster::read_fleet(*text, "cluster.json");
  REQUIRE(fleet);
  return *fleet;
}

inventory::Inventory slurm_line(const std::string& gres, const std::string& state = "IDLE") {
  const auto found = inventory::from_slurm(
      {{{"n.txt", "NodeName=n1 Gres=" + gres + " State=" + state + "\nNodeName=ok Gres=gpu:t4:1 State=IDLE\n"}}, {}},
      cluster::catalogue());
  REQUIRE(found);
  return *found;
}

}  // namespace

TEST_CASE("slurm as JSON: 10 H100 nodes and 7 A100 nodes of 8 GPUs are usable") {
  const auto found = inventory::from_slurm({{report("slurm.json")}, {}}, cluster::catalogue());
  REQUIRE(found);
  CHECK(found->left_out == std::vector<LeftOut>{{"h100-05", "drained (ECC errors on GPU 3)"},
                                                {"h100-09", "down, not responding (Not responding)"},
                                                {"a100-08", "in maintenance"},
                                                {"login1", "it has no GPUs"},
                                                {"login2", "it has no GPUs"}});
  const cluster::Fleet fleet = read_back(*found);
  CHECK(fleet.nodes.size() == 17);
  CHECK(fleet.gpu_count() == 17 * 8);
  CHECK(fleet.nodes.front().name == "a100-01");
  CHECK(fleet.nodes.back().name == "h100-12");
  CHECK(fleet.nodes.back().network.bandwidth.value() == 8 * 200e9 / 8);
}

TEST_CASE("slurm as text: what a reason says is no key") {
  const auto found = inventory::from_slurm({{report("slurm.txt")}, {}}, cluster::catalogue());
  REQUIRE(found);
  REQUIRE(found->left_out.size() == 3);
  CHECK(found->left_out[0].node == "v100-5");
  CHECK(found->left_out[0].reason == "drained (fans, see State=DOWN in the log [root@2025-10-23T07:12:44])");
  CHECK(found->left_out[1].reason == "not responding, down (Not responding [root@2025-10-23T07:12:44])");
  const cluster::Fleet fleet = read_back(*found);
  CHECK(fleet.gpu_count() == 4 * 4 + 2 + 2);
  REQUIRE(fleet.nodes.front().groups.size() == 2);
  CHECK(fleet.nodes.front().groups[0].device.name == "RTX-4090");
}

TEST_CASE("slurm: states leave a node out or do not") {
  for (const char* state : {"IDLE", "MIXED+PLANNED", "ALLOCATED+COMPLETING", "IDLE+CLOUD", "IDLE-", "mixed"}) {
    INFO(state);
    CHECK(slurm_line("gpu:t4:2", state).left_out.empty());
  }
  for (const char* state : {"IDLE+DRAIN", "IDLE*", "DOWN", "IDLE+CLOUD+POWERED_DOWN", "FUTURE", "MIXED+FAIL", "IDLE~",
                            "IDLE+SOMETHING_NEW", "ALLOCATED+REBOOT_ISSUED", "IDLE$"}) {
    INFO(state);
    CHECK(slurm_line("gpu:t4:2", state).left_out.size() == 1);
  }
  CHECK(slurm_line("gpu:t4:2", "IDLE+NEW").left_out.front().reason == "in a state that is not known, \"NEW\"");
}

TEST_CASE("slurm: forms of gres") {
  const auto count = [](const std::string& gres) {
    int gpus = 0;
    for (const auto& node : slurm_line(gres).nodes) {
      for (const auto& group : node.gpus) gpus += node.name == "n1" ? group.count : 0;
    }
    return gpus;
  };
  CHECK(count("gpu:t4") == 1);
  CHECK(count("gpu:t4:4(S:0,1)") == 4);
  CHECK(count("gpu:t4:2(S:0),gpu:t4:2(S:1),nvme:3") == 4);
  CHECK(count("gpu:h100_pcie:2") == 2);
  CHECK(count("gpu:t4:0") == 0);
  CHECK(count("shard:t4:16,gpu:Tesla-T4:1") == 1);
  CHECK(slurm_line("gpu:a100_1g.5gb:7").left_out.front().reason == "its GPUs are cut into slices (MIG)");
}

TEST_CASE("names of GPUs that the user gave win") {
  const std::string text = "NodeName=n1 Gres=gpu:a100:4 State=IDLE\nNodeName=n2 Gres=gpu:2 State=IDLE\n";
  const auto found =
      inventory::from_slurm({{{"n.txt", text}}, {{"a100", "A100-40GB-PCIe"}, {"gpu", "T4"}}}, cluster::catalogue());
  REQUIRE(found);
  CHECK(found->nodes[0].gpus[0].device->name == "A100-40GB-PCIe");
  CHECK(found->nodes[1].gpus[0].device->name == "T4");
  const auto unknown =
      inventory::from_slurm({{{"n.txt", text}}, {{"a100", "A100-40GB-PCIE"}, {"gpu", "T5"}}}, cluster::catalogue());
  REQUIRE_FALSE(unknown);
  CHECK(render(unknown.error()) ==
        "error: there is no GPU type \"A100-40GB-PCIE\"\n  hint: did you mean \"A100-40GB-PCIe\"?\n"
        "error: there is no GPU type \"T5\"\n  hint: did you mean \"T4\"?\n");
}

TEST_CASE("nodes alike become ranges that stand for exactly their names") {
  inventory::Inventory found;
  found.name = "ranges";
  const cluster::GpuType* t4 = nullptr;
  for (const auto& device : cluster::catalogue()) t4 = device.name == "T4" ? &device : t4;
  REQUIRE(t4 != nullptr);
  const std::vector<std::string> names = {"a8",     "a9",    "a10",      "a08",        "a-1.x.org", "a-2.x.org",
                                          "a-4.x1", "login", "n0000001", "n123456789", "r2-n007",   "r3-n007"};
  for (const std::string& name : names) {
    inventory::FoundNode node;
    node.name = name;
    inventory::FoundGpus gpus;
    gpus.device = t4;
    gpus.count = 1;
    node.gpus.push_back(gpus);
    found.nodes.push_back(std::move(node));
  }
  const cluster::Fleet fleet = read_back(found);
  std::set<std::string> wanted(names.begin(), names.end());
  std::set<std::string> seen;
  for (const cluster::Node& node : fleet.nodes) seen.insert(node.name);
  CHECK(seen == wanted);
}

TEST_CASE("the option --network") {
  const auto choice = network("H100-80GB-SXM=8x400Gbit/s,infiniband");
  CHECK(choice.type == "H100-80GB-SXM");
  CHECK(choice.network.cards == 8);
  CHECK(choice.network.per_card.value() == 50e9);
  const auto error = [](const std::string& text) {
    const auto refused = inventory::parse_network(text, cluster::catalogue());
    return refused ? std::string() : render(refused.error());
  };
  CHECK(error("400Gbit") == "error: --network 400Gbit: the kind is missing\n  hint: as in 8x400Gbit,infiniband\n");
  CHECK(error("400Gbit,infinband") ==
        "error: --network 400Gbit,infinband: there is no kind of network \"infinband\"\n"
        "  hint: did you mean \"infiniband\"?\n");
  CHECK(error("0x400Gbit,roce") ==
        "error: --network 0x400Gbit,roce: a node has 1 to 256 cards\n  hint: as in 8x400Gbit,infiniband\n");
  CHECK(error("400GB,roce") ==
        "error: --network 400GB,roce: \"400GB\" is no rate\n  hint: as in 8x400Gbit,infiniband\n");
  CHECK(error("H100=400Gbit,roce") ==
        "error: --network H100=400Gbit,roce: there is no GPU type \"H100\"\n  hint: give its name in the catalogue\n");
}

TEST_CASE("nccl-tests: a ring over two nodes shows what a node's cards carry") {
  // 1 GiB in 22 ms over 16 ranks: bus bandwidth 2 * 15/16 * 2^30 B / 22 ms = 91.5 GB/s. 8 B in 60 us: two steps between
  // two nodes, 30 us each.
  std::string log = "# nThread 1\n# Collective test starting: all_reduce_perf\n# Using devices\n";
  for (int rank = 0; rank < 16; ++rank) {
    log += "#  Rank " + std::to_string(rank) + " Group  0 Pid " + std::to_string(900 + rank) + " on a100-0" +
           std::to_string(1 + rank / 8) + " device  " + std::to_string(rank % 8) + " [0x07] NVIDIA A100-SXM4-80GB\n";
  }
  log +=
      "           8             2     float     sum      -1    60.00    0.00    0.00      0    60.00    0.00    0.00   "
      "   0\n";
  log +=
      "  1073741824     268435456     float     sum      -1    22000   48.81   91.51      0    22000   48.81   91.51   "
      "   0\n";
  auto found = inventory::from_slurm({{report("slurm.json")}, {}}, cluster::catalogue());
  REQUIRE(found);
  REQUIRE(inventory::apply_measured_links(*found, {{"all_reduce.log", log}}, cluster::catalogue()));
  const cluster::Fleet fleet = read_back(*found);
  const cluster::Node& a100 = fleet.nodes.front();
  CHECK(a100.network.bandwidth.value() == Approx(2.0 * 15 / 16 * 1073741824 / 22e-3));
  CHECK(a100.network.latency == Nanoseconds(30'000));
  CHECK(fleet.nodes.back().network.bandwidth.value() == 8 * 200e9 / 8);  // no log of H100: --network
}

TEST_CASE("kubernetes: cordoned, unreachable, cut, shared and dead nodes are left out and named") {
  const auto found = inventory::from_kubernetes({{report("kubernetes.json")}, {}}, cluster::catalogue());
  REQUIRE(found);
  CHECK(found->left_out == std::vector<LeftOut>{{"gpu-h100-3.pool.example.org", "cordoned"},
                                                {"gpu-l40s-2.pool.example.org", "unreachable, not ready"},
                                                {"gpu-mig-1", "its GPUs are cut into slices (MIG)"},
                                                {"gpu-shared-1", "its GPUs are shared by several pods"},
                                                {"gpu-lost-1", "none of its 4 GPUs is allocatable"},
                                                {"control-1", "it has no GPUs"}});
  CHECK(found->notes == std::vector<std::string>{"gpu-h100-5.pool.example.org: 7 of 8 GPUs are allocatable"});
  const cluster::Fleet fleet = read_back(*found);
  CHECK(fleet.nodes.size() == 5 + 3 + 1);
  CHECK(fleet.gpu_count() == 4 * 8 + 7 + 3 * 4 + 8);
  CHECK(fleet.nodes.front().groups.front().device.name == "MI300X-192GB");
  CHECK(fleet.nodes.front().labels.at("zone") == "east-1c");
}

TEST_CASE("kubernetes: a node that does not say what is allocatable is left out and named") {
  const auto node = [](const std::string& name, const std::string& allocatable) {
    return R"({"kind": "Node", "metadata": {"name": ")" + name +
           R"(", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}}, "status": {)" + allocatable +
           R"("capacity": {"nvidia.com/gpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}})";
  };
  const std::string whole = node("n1", R"("allocatable": {"nvidia.com/gpu": "4"}, )");
  const std::string list = R"({"kind": "List", "items": [)" + whole + ", " + node("n2", "") + ", " +
                           node("n3", R"("allocatable": null, )") + "]}";
  const auto found = inventory::from_kubernetes({{{"nodes.json", list}}, {}}, cluster::catalogue());
  REQUIRE(found);
  CHECK(found->left_out == std::vector<LeftOut>{{"n2", "it does not report what is allocatable"},
                                                {"n3", "it does not report what is allocatable"}});
  CHECK(read_back(*found).gpu_count() == 4);
  const std::string none = R"({"kind": "List", "items": [)" + node("n2", "") + "]}";
  const auto nothing = inventory::from_kubernetes({{{"nodes.json", none}}, {}}, cluster::catalogue());
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().front().hint == "n2: it does not report what is allocatable");
}

TEST_CASE("nvidia-smi: links, cards and slots of hosts") {
  inventory::Request request;
  for (const char* name : {"dgx-1.xml", "dgx-1.txt", "dgx-2.xml", "dgx-2.txt", "ws-1.xml", "ws-1.txt", "ws-2.xml",
                           "ws-2.txt", "ws-3.xml"}) {
    request.files.push_back(report(std::string("nvidia-smi/") + name));
  }
  const auto found = inventory::from_nvidia_smi(request, cluster::catalogue());
  REQUIRE(found);
  REQUIRE(found->left_out.size() == 2);
  CHECK(found->left_out[0].node == "ws-3");
  CHECK(found->left_out[1] == LeftOut{"ws-2, GPU 3", "rows of its memory failed for good"});
  const cluster::Fleet fleet = read_back(*found, "200Gbit,infiniband");
  REQUIRE(fleet.nodes.size() == 4);
  const cluster::Node& dgx = fleet.nodes[0];
  CHECK(dgx.groups[0].device.name == "A100-80GB-SXM");
  CHECK(dgx.groups[0].clique == 8);
  CHECK(dgx.groups[0].link.bandwidth.value() == 300e9);
  CHECK(dgx.network.bandwidth.value() == 4 * 200e9 / 8);  // NIC0 to NIC3
  CHECK(dgx.host_link.bandwidth.value() == 32e9);         // PCIe 4.0 x16
  const cluster::Node& pairs = fleet.nodes[2];
  CHECK(pairs.name == "ws-1");
  CHECK(pairs.groups[0].device.name == "A6000");
  CHECK(pairs.groups[0].clique == 2);
  CHECK(pairs.host_link.bandwidth.value() == 16e9);  // a slot of PCIe 3.0 x16
  const cluster::Node& mixed = fleet.nodes[3];
  REQUIRE(mixed.groups.size() == 2);
  CHECK(mixed.groups[0].count == 2);
  CHECK(mixed.groups[1].device.name == "RTX-3080");
  CHECK(mixed.groups[1].count == 1);
}
