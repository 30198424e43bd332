// cluster.json becomes a fleet: names, GPU groups and their links, overrides, link rules, the canonical form.
#include "tangram/cluster/fleet.hpp"

#include "support/catch.hpp"
#include "tangram/cluster/gpu_names.hpp"
#include "tangram/cluster/slowest.hpp"

using namespace tangram;
using namespace tangram::cluster;
using namespace tangram::literals;

namespace {

Fleet read(const std::string& text) {
  auto fleet = read_fleet(text, "cluster.json");
  if (!fleet) FAIL(render(fleet.error()));
  return *std::move(fleet);
}

// A fleet of the given nodes, and what stands after them.
Fleet fleet_of(const std::string& nodes, const std::string& rest = "") {
  return read(R"({ "schema": "tangram.cluster/1", "name": "test", "nodes": [)" + nodes + "]" + rest + "}");
}

std::string node(const std::string& name, const std::string& gpus, const std::string& rest = "") {
  return R"({ "name": ")" + name + R"(", "gpus": [)" + gpus +
         R"(], "network": { "bandwidth_gbit_s": 100, "latency_us": 5 })" + (rest.empty() ? "" : ", " + rest) + "}";
}

const std::string kA100x8 = R"({ "type": "A100-80GB-SXM", "count": 8 })";
const std::string kT4x4 = R"({ "type": "T4", "count": 4 })";

std::vector<std::string> names_of(const Fleet& fleet) {
  std::vector<std::string> names;
  for (const Node& n : fleet.nodes) names.push_back(n.name);
  return names;
}

BytesPerSecond gbit(double rate) { return BytesPerSecond(rate * 1e9 / 8); }

}  // namespace

TEST_CASE("fleet: a node with two GPU types") {
  // [RTX-3080 x2, RTX-4090 x2]: neither has a fabric, so both groups are on the host bus, as wide as the slower:
  // what goes through host memory.
  const Fleet fleet = read(R"({ "schema": "tangram.cluster/1", "name": "host", "nodes": [ { "name": "desk",
      "gpus": [ { "type": "RTX-3080", "count": 2 }, { "type": "RTX-4090", "count": 2 } ] } ] })");
  REQUIRE(fleet.nodes.size() == 1);
  const Node& desk = fleet.nodes[0];
  REQUIRE(desk.groups.size() == 2);
  CHECK(fleet.gpu_count() == 4);
  CHECK(desk.groups[0].device.name == "RTX-3080");
  CHECK(desk.groups[1].clique == 2);
  CHECK(desk.groups[1].link == Link{6.9_GBps, 15_us});
  CHECK(desk.host_link == Link{6.9_GBps, 15_us});
}

TEST_CASE("fleet: ranges and counts expand, nodes come in natural order") {
  const Fleet fleet = fleet_of(node("b-[9-11]", kT4x4) + "," + node("a-[01-02,7]", kT4x4) + "," +
                               node("c-{}", kT4x4, R"("count": 10)"));
  // A range keeps the width of its first number; a count pads to the width of the last.
  CHECK(names_of(fleet) == std::vector<std::string>{"a-01", "a-02", "a-7", "b-9", "b-10", "b-11", "c-01", "c-02",
                                                    "c-03", "c-04", "c-05", "c-06", "c-07", "c-08", "c-09", "c-10"});
  CHECK(names_of(fleet_of(node("r[1-2]n[1-2]", kT4x4))) == std::vector<std::string>{"r1n1", "r1n2", "r2n1", "r2n2"});
}

TEST_CASE("fleet: link classes") {
  const auto group = [](const std::string& gpus) { return fleet_of(node("n", gpus)).nodes[0].groups[0]; };
  SECTION("the default is the fabric where it spans the node") {
    CHECK(group(kA100x8).link.bandwidth == 300_GBps);
    CHECK(group(kA100x8).clique == 8);
  }
  SECTION("a bridge joins two, so four cards are on the bus unless they are pairs") {
    CHECK(group(R"({ "type": "A6000", "count": 4 })").link.bandwidth == 32_GBps);
    CHECK(group(R"({ "type": "A6000", "count": 2 })").link.bandwidth == 56.25_GBps);
    const DeviceGroup pairs = group(R"({ "type": "A6000", "count": 4, "link": "nvlink-pairs" })");
    CHECK(pairs.link.bandwidth == 56.25_GBps);
    CHECK(pairs.clique == 2);
  }
  SECTION("pcie and numbers") {
    CHECK(group(R"({ "type": "A100-80GB-SXM", "count": 8, "link": "pcie" })").link.bandwidth == 32_GBps);
    const DeviceGroup own =
        group(R"({ "type": "T4", "count": 8, "link": { "bandwidth_gb_s": 11.5, "latency_us": 7.25, "clique": 4 } })");
    CHECK(own.link == Link{11.5_GBps, 7250_ns});
    CHECK(own.clique == 4);
  }
  SECTION("the ramp is the fabric's, unless it is given, and is written where it is not") {
    const Nanoseconds usual = group(kA100x8).link.ramp;
    CHECK(usual > 0_us);
    const auto with_link = [](const std::string& ramp) {
      return fleet_of(
          node("n", R"({ "type": "A100-80GB-SXM", "count": 8, "link": { "bandwidth_gb_s": 250, "latency_us": 2)" +
                        ramp + " } }"));
    };
    CHECK(with_link("").nodes[0].groups[0].link.ramp == usual);
    CHECK(read(write_fleet(with_link(""))) == with_link(""));
    for (const std::string ramp : {"0", "12.5"}) {
      const Fleet fleet = with_link(R"(, "ramp_us": )" + ramp);
      CHECK(fleet.nodes[0].groups[0].link.ramp.as_double() == std::stod(ramp) * 1e3);
      CHECK(read(write_fleet(fleet)) == fleet);
    }
    CHECK(group(R"({ "type": "A100-80GB-SXM", "count": 8, "link": "pcie" })").link.ramp == 0_us);
  }
  SECTION("AMD's fabric is called xgmi") {
    CHECK(group(R"({ "type": "MI300X-192GB", "count": 8, "link": "xgmi" })").link.bandwidth == 448_GBps);
  }
}

TEST_CASE("fleet: networks add their cards up") {
  // 8 cards of 200 Gbit/s are 1600 Gbit/s = 200 GB/s; InfiniBand steps usually take 5 us.
  const Fleet fleet = read(R"({ "schema": "tangram.cluster/1", "nodes": [ { "name": "n[1-2]",
      "gpus": [ { "type": "H100-80GB-SXM", "count": 8 } ],
      "network": { "cards": 8, "bandwidth_gbit_s": 200, "kind": "infiniband" } } ] })");
  CHECK(fleet.between(0, 1) == Link{200_GBps, 5_us});
}

TEST_CASE("fleet: own GPU types, from scratch and like others") {
  const Fleet fleet = read(R"({ "schema": "tangram.cluster/1",
      "gpus": {
        "A100-64GB": { "like": "A100-40GB-SXM", "memory_gib": 64, "memory_bandwidth_gb_s": 1640 },
        "A100-64GB-slow": { "like": "A100-64GB", "peak_tflops": { "bf16": 200 } },
        "toy": { "vendor": "acme", "architecture": "one", "memory_gib": 20, "memory_bandwidth_gb_s": 100,
                 "peak_tflops": { "fp16": 10 }, "pcie": { "bandwidth_gb_s": 8, "latency_us": 6 } }
      },
      "nodes": [ { "name": "n", "gpus": [ { "type": "A100-64GB", "count": 4 }, { "type": "A100-64GB-slow", "count": 4 },
                                          { "type": "toy", "count": 1 } ] } ] })");
  const GpuType& cut = fleet.nodes[0].groups[0].device;
  CHECK(cut.memory == 64_GiB);
  CHECK(cut.reserved.as_double() == Approx((1 + 0.05 * 64) * 1024 * 1024 * 1024));  // 1 GiB + 5 %
  CHECK(cut.peak_of(DType::kFp16) == 312_TFLOPs);
  const GpuType& slow = fleet.nodes[0].groups[1].device;
  CHECK(slow.memory == 64_GiB);
  CHECK(slow.peak_of(DType::kBf16) == 200_TFLOPs);
  CHECK(slow.peak_of(DType::kFp16) == 312_TFLOPs);
  const GpuType& toy = fleet.nodes[0].groups[2].device;
  CHECK(toy.usable() == 18_GiB);
  CHECK(toy.peer_link.bandwidth.value() == 0);
  CHECK(fleet.nodes[0].host_link == Link{8_GBps, 6_us});
}

TEST_CASE("fleet: attention made for a GPU's generation is taken over, changed in part, and written") {
  const Fleet fleet = read(R"({ "schema": "tangram.cluster/1",
      "gpus": { "like": { "like": "H200-141GB-SXM" },
                "part": { "like": "H200-141GB-SXM",
                          "calibration": { "native_attention": { "forward": 0.5, "head_dim_multiple": 16,
                                                                 "forward_least_head_dim": 96,
                                                                 "widest_value_dim": 160,
                                                                 "early_forward_extra_keys": 900,
                                                                 "early_backward_extra_keys": 1000,
                                                                 "source": "mine" } } },
                "none": { "like": "V100-16GB-SXM" } },
      "nodes": [ { "name": "n", "gpus": [ { "type": "like", "count": 1 }, { "type": "part", "count": 1 },
                                          { "type": "none", "count": 1 } ] } ] })");
  const auto native = [](const Fleet& from, int group) {
    return from.nodes[0].groups[static_cast<std::size_t>(group)].device.compute.native_attention;
  };
  REQUIRE(native(fleet, 0));
  REQUIRE(native(fleet, 1));
  CHECK_FALSE(native(fleet, 2));
  NativeAttention changed = *native(fleet, 0);
  changed.forward = 0.5;
  changed.head_dim_multiple = 16;
  changed.forward_least_head_dim = 96;
  changed.widest_value_dim = 160;
  changed.early_forward_extra_keys = 900;
  changed.early_backward_extra_keys = 1000;
  changed.source = "mine";
  CHECK(*native(fleet, 1) == changed);
  const Fleet again = read(write_fleet(fleet));
  for (int group = 0; group < 3; ++group) CHECK(native(again, group) == native(fleet, group));
}

TEST_CASE("fleet: attention made for a GPU's generation needs all its figures") {
  const auto wrong = read_fleet(R"({ "schema": "tangram.cluster/1",
      "gpus": { "mine": { "like": "V100-16GB-SXM", "calibration": { "native_attention": { "forward": 0.5 } } } },
      "nodes": [ { "name": "n", "gpus": [ { "type": "mine", "count": 1 } ] } ] })",
                                "cluster.json");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().size() == 3);
}

TEST_CASE("fleet: the slower of two GPU types has the slower attention of both, or none") {
  GpuType a;
  GpuType b;
  a.compute.native_attention = NativeAttention{0.7, 0.5, 400, 700, "a", 0, 0, 0, 64, 96, 0, 800, 0};
  CHECK_FALSE(slower_of(a, b).compute.native_attention);
  b.compute.native_attention = NativeAttention{0.6, 0.6, 500, 600, "b", 64, 0, 40, 128, 90, 128, 900, 700};
  const NativeAttention both{0.6, 0.5, 500, 700, "a", 64, 0, 40, 128, 96, 128, 900, 700};
  CHECK(slower_of(a, b).compute.native_attention == both);
  a.compute.native_attention->widest_value_dim = 96;
  CHECK(slower_of(a, b).compute.native_attention->widest_value_dim == 96);
}

TEST_CASE("fleet: figures of fused kernels are taken over, changed in part, and written") {
  const Fleet fleet = read(R"({ "schema": "tangram.cluster/1",
      "gpus": { "part": { "like": "H200-141GB-SXM",
                          "calibration": { "fused_kernels": { "memory_efficiency": 0.5, "source": "mine" } } } },
      "nodes": [ { "name": "n", "gpus": [ { "type": "part", "count": 1 } ] } ] })");
  const auto fused = fleet.nodes[0].groups[0].device.compute.fused_kernels;
  REQUIRE(fused);
  CHECK(*fused == FusedKernels{0.67, 0.62, 0.5, "mine"});
  CHECK(read(write_fleet(fleet)).nodes[0].groups[0].device.compute.fused_kernels == fused);
}

TEST_CASE("fleet: the slower of two GPU types is of their generation, or of none") {
  GpuType a;
  GpuType b;
  a.architecture = b.architecture = "blackwell";
  CHECK(slower_of(a, b).architecture == "blackwell");
  b.architecture = "hopper";
  CHECK(slower_of(a, b).architecture.empty());
}

TEST_CASE("fleet: the slower of two GPU types has the slower fused kernels of both, or none") {
  GpuType a;
  GpuType b;
  a.compute.fused_kernels = FusedKernels{0.7, 0.5, 0.9, "a"};
  CHECK_FALSE(slower_of(a, b).compute.fused_kernels);
  b.compute.fused_kernels = FusedKernels{0.6, 0.6, 0.8, "b"};
  CHECK(slower_of(a, b).compute.fused_kernels == FusedKernels{0.6, 0.5, 0.8, "a", 0.5});
}

TEST_CASE("fleet: measurements replace the datasheet") {
  // A100: 312 TFLOP/s peak, 2039 GB/s. Measured 234 TFLOP/s = 0.75 of it and 1529.25 GB/s = 0.75; 70 of 80 GiB usable.
  const Fleet fleet = fleet_of(node("n", R"({ "type": "A100-80GB-SXM", "count": 8, "measured": {
      "gemm_tflops": 234, "memory_bandwidth_gb_s": 1529.25, "usable_memory_gib": 70, "link_bandwidth_gb_s": 230 } })"));
  const DeviceGroup& group = fleet.nodes[0].groups[0];
  CHECK(group.device.compute.gemm_efficiency == Approx(0.75));
  CHECK(group.device.compute.memory_efficiency == Approx(0.75));
  CHECK(group.device.usable() == 70_GiB);
  const Link& usual = device_of("A100-80GB-SXM", catalogue())->peer_link;
  CHECK(group.link == Link{230_GBps, usual.latency, usual.ramp});
  CHECK(group.device.compute.source == "measured here");
  CHECK(group.device.name == "A100-80GB-SXM");
}

TEST_CASE("fleet: a card that boosts above its nominal peak") {
  // RTX 3090: nominal 71 TFLOP/s, measured 78.1 = 1.1 times: the peaks rise by that, and all of it is sustained.
  const Fleet fleet = fleet_of(node("n", R"({ "type": "RTX-3090", "count": 1, "measured": { "gemm_tflops": 78.1 } })"));
  const GpuType& device = fleet.nodes[0].groups[0].device;
  CHECK(device.compute.gemm_efficiency == 1.0);
  CHECK(device.peak_of(DType::kFp16).value() == Approx(78.1e12));
}

TEST_CASE("fleet: overrides change single nodes of a group") {
  const Fleet fleet = fleet_of(node("n[1-4]", kA100x8, R"("labels": { "rack": "r1" }, "overrides": {
      "n2": { "measured": { "A100-80GB-SXM": { "gemm_tflops": 156 } } },
      "n[3-4]": { "labels": { "rack": "r2" }, "network": { "bandwidth_gbit_s": 50, "latency_us": 9 } } })"));
  REQUIRE(fleet.nodes.size() == 4);
  CHECK(fleet.nodes[0].groups[0].device.compute.gemm_efficiency == 0.82);
  CHECK(fleet.nodes[1].groups[0].device.compute.gemm_efficiency == 0.5);  // 156 of 312
  CHECK(fleet.nodes[1].labels.at("rack") == "r1");
  CHECK(fleet.nodes[2].groups == fleet.nodes[0].groups);
  CHECK(fleet.nodes[3].labels.at("rack") == "r2");
  CHECK(fleet.nodes[3].network == Link{gbit(50), 9_us});
}

TEST_CASE("fleet: the last rule that matches decides, below what both networks carry") {
  // [a1 a2]  rack r1   zone east
  // [b1 b2]  rack r2   zone east      every node: 100 Gbit/s, 5 us
  // [c1]     rack r3   zone west
  const Fleet fleet = fleet_of(node("a[1-2]", kT4x4, R"("labels": { "rack": "r1", "zone": "east" })") + "," +
                                   node("b[1-2]", kT4x4, R"("labels": { "rack": "r2", "zone": "east" })") + "," +
                                   node("c1", kT4x4, R"("labels": { "rack": "r3", "zone": "west" })"),
                               R"(, "links": [
      { "between": "rack", "bandwidth_gbit_s": 40, "latency_us": 8 },
      { "between": { "zone": ["west", "east"] }, "bandwidth_gbit_s": 10, "latency_us": 30000 },
      { "within": { "rack": "r2" }, "bandwidth_gbit_s": 400, "latency_us": 2 } ])");
  CHECK(fleet.between(0, 1) == Link{gbit(100), 5_us});      // no rule: the networks
  CHECK(fleet.between(0, 2) == Link{gbit(40), 8_us});       // between racks
  CHECK(fleet.between(0, 4) == Link{gbit(10), 30'000_us});  // between zones, although the rack rule matches as well
  CHECK(fleet.between(4, 0) == fleet.between(0, 4));
  CHECK(fleet.between(2, 3) == Link{gbit(100), 5_us});  // a rule never widens the networks, nor shortens latency
}

TEST_CASE("fleet: a node without the label is outside of the rule") {
  const Fleet fleet = fleet_of(node("a[1-2]", kT4x4, R"("labels": { "rack": "r1" })") + "," + node("b", kT4x4),
                               R"(, "links": [ { "between": "rack", "bandwidth_gbit_s": 1, "latency_us": 1 },
                                               { "within": "rack", "bandwidth_gbit_s": 2, "latency_us": 1 } ])");
  CHECK(fleet.between(0, 1).bandwidth == gbit(2));
  CHECK(fleet.between(0, 2).bandwidth == gbit(100));
}

TEST_CASE("fleet: measured links win over rules and networks") {
  const Fleet fleet = fleet_of(node("n[1-4]", kT4x4),
                               R"(, "measured_links": { "nodes": ["n3", "n[1-2]"],
      "bandwidth_gbit_s": [[0, 90, null], [80, 0, 120], [null, 110, null]] })");
  CHECK(fleet.between(0, 2) == Link{gbit(80), 5_us});   // n3-n1: the slower direction; latency not measured
  CHECK(fleet.between(0, 1) == Link{gbit(110), 5_us});  // measured above the network's nominal rate: believed
  CHECK(fleet.between(1, 2) == Link{gbit(100), 5_us});  // null
  CHECK(fleet.between(0, 3) == Link{gbit(100), 5_us});  // not in the matrix
}

TEST_CASE("fleet: the order of nodes in the file changes nothing, that of rules does") {
  const std::string a = node("a[1-2]", kA100x8, R"("labels": { "rack": "r1" })");
  const std::string b = node("b", kT4x4, R"("labels": { "rack": "r2" })");
  const std::string tier = R"({ "between": "rack", "bandwidth_gbit_s": 10, "latency_us": 9 })";
  const std::string pair = R"({ "between": { "rack": ["r1", "r2"] }, "bandwidth_gbit_s": 20, "latency_us": 9 })";
  const Fleet one = fleet_of(a + "," + b, R"(, "links": [)" + tier + "," + pair + "]");
  const Fleet two = fleet_of(b + "," + a, R"(, "links": [)" + tier + "," + pair + "]");
  CHECK(one == two);
  CHECK(one.digest == two.digest);
  CHECK(fleet_of(a + "," + b, R"(, "links": [)" + pair + "," + tier + "]").digest != one.digest);
}

TEST_CASE("fleet: the canonical form reads back to the same fleet") {
  const Fleet fleet = fleet_of(
      node(
          "a[1-3]",
          R"({ "type": "A100-80GB-SXM", "count": 8, "link": "nvlink", "measured": { "memory_bandwidth_gb_s": 1777.7 } })",
          R"("labels": { "rack": "r1" }, "price_per_hour_usd": 32.77,
              "overrides": { "a2": { "measured": { "A100-80GB-SXM": { "gemm_tflops": 211.3 } } },
                             "a3": { "network": { "cards": 3, "bandwidth_gbit_s": 33.3, "latency_us": 1.5 } } })") +
          "," +
          node("b",
               R"({ "type": "RTX-3090", "count": 4, "link": "nvlink-pairs", "measured": { "gemm_tflops": 77.7 } })",
               R"("host_link": { "bandwidth_gb_s": 12.3, "latency_us": 9.9 }, "labels": { "rack": "r2" })"),
      R"(, "links": [ { "within": "rack", "bandwidth_gbit_s": 66.6, "latency_us": 3.3 },
                      { "within": { "rack": "r1" }, "bandwidth_gbit_s": 77.7, "latency_us": 3 },
                      { "between": { "rack": ["r2", "r1"] }, "bandwidth_gbit_s": 0.7, "latency_us": 123.456 } ],
           "measured_links": { "nodes": ["a1", "b"], "bandwidth_gbit_s": [[null, 0.3], [0.1, null]] })");
  const std::string text = write_fleet(fleet);
  const Fleet again = read(text);
  CHECK(again == fleet);
  CHECK(again.digest == fleet.digest);
  CHECK(write_fleet(again) == text);
  // The throttled node keeps its type's name, under a record of its own.
  CHECK(text.find(R"("A100-80GB-SXM#2": {)") != std::string::npos);
}

TEST_CASE("fleet: comments are welcome, and the whole catalogue reads back") {
  std::string groups;
  for (const GpuType& type : catalogue()) {
    if (!groups.empty()) groups += ",";
    groups += R"({ "type": ")" + type.name + R"(", "count": 2 })";
  }
  const Fleet fleet =
      read("// one of each\n{ \"schema\": \"tangram.cluster/1\", \"nodes\": [ { \"name\": \"zoo\", \"gpus\": [" +
           groups + "] } ] } // done\n");
  CHECK(fleet.gpu_count() == 2 * static_cast<int>(catalogue().size()));
  CHECK(read(write_fleet(fleet)) == fleet);
  for (std::size_t i = 0; i < catalogue().size(); ++i) CHECK(fleet.nodes[0].groups[i].device == catalogue()[i]);
}
