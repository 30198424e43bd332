// The catalogue that comes with the program: complete, plausible, with a source for every figure.
#include <algorithm>
#include <set>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"

using namespace tangram;
using namespace tangram::cluster;
using namespace tangram::literals;

namespace {

const GpuType& type_called(std::string_view name) {
  const auto& all = catalogue();
  const auto found = std::find_if(all.begin(), all.end(), [&](const GpuType& t) { return t.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("catalogue: many types, sorted, each with its sources") {
  const auto& all = catalogue();
  CHECK(all.size() >= 28);
  CHECK(std::is_sorted(all.begin(), all.end(), [](const GpuType& a, const GpuType& b) { return a.name < b.name; }));
  for (const GpuType& type : all) {
    INFO(type.name);
    CHECK_FALSE(type.source.empty());
    CHECK_FALSE(type.compute.source.empty());
    CHECK_FALSE(type.vendor.empty());
    CHECK_FALSE(type.architecture.empty());
  }
}

TEST_CASE("catalogue: figures are of hardware") {
  for (const GpuType& type : catalogue()) {
    INFO(type.name);
    CHECK(type.usable() >= Bytes(type.memory.value() * 3 / 4));
    CHECK(type.usable() < type.memory);
    CHECK(type.memory_bandwidth >= 300_GBps);
    CHECK(type.memory_bandwidth <= 8000_GBps);
    // fp32 runs on vector units, and 16-bit matrix units are at least as fast.
    CHECK(type.peak_of(DType::kFp32).value() > 0);
    CHECK(type.peak_of(DType::kFp16) >= type.peak_of(DType::kFp32));
    CHECK((type.peak_of(DType::kBf16) == type.peak_of(DType::kFp16) || type.peak_of(DType::kBf16).value() == 0));
    // Dense fp8 is twice fp16 where there is any; four times would be a sparse figure.
    if (type.peak_of(DType::kFp8).value() > 0) {
      CHECK(type.peak_of(DType::kFp8).value() / type.peak_of(DType::kFp16).value() == Approx(2.0).epsilon(0.02));
    }
    // Blackwell has twice its fp8 in fp4, Blackwell Ultra three times.
    if (type.peak_of(DType::kFp4).value() > 0) {
      const double more = type.peak_of(DType::kFp4).value() / type.peak_of(DType::kFp8).value();
      CHECK((more == Approx(2.0) || more == Approx(3.0)));
      CHECK(type.compute.fused_kernels->fp4_efficiency > 0);
    }
    CHECK(type.pcie.bandwidth >= 2_GBps);  // through host memory
    CHECK(type.multiprocessors >= 40);
    CHECK(type.compute.gemm_efficiency >= 0.2);
    CHECK(type.compute.gemm_efficiency <= 1.0);
    CHECK(type.compute.attention_forward <= type.compute.gemm_efficiency + 0.15);
    CHECK(type.compute.attention_backward <= type.compute.attention_forward);
    if (const auto& native = type.compute.native_attention) {
      CHECK_FALSE(native->source.empty());
      CHECK(native->forward > type.compute.attention_forward);
      CHECK(native->forward <= 0.95);  // of H20, whose peak is cut: measured
      CHECK(native->backward <= native->forward);
    }
    CHECK(type.compute.kernel_launch >= 1_us);
    CHECK(type.compute.host_issue >= type.compute.kernel_launch);
  }
}

TEST_CASE("catalogue: figures that people know by heart") {
  const GpuType& a100 = type_called("A100-80GB-SXM");
  CHECK(a100.memory == 80_GiB);
  CHECK(a100.peak_of(DType::kBf16) == 312_TFLOPs);
  CHECK(a100.memory_bandwidth == 2039_GBps);
  CHECK(a100.peer_link.bandwidth == 300_GBps);  // 600 GB/s in the datasheet, both directions together
  CHECK(type_called("A100-40GB-SXM").peak == a100.peak);
  CHECK(type_called("V100-16GB-SXM").peak_of(DType::kBf16).value() == 0);
  // GeForce: fp16 with fp32 accumulate has half the rate that the box advertises (142 on RTX 3090).
  CHECK(type_called("RTX-3090").peak_of(DType::kFp16) == 71_TFLOPs);
  CHECK(type_called("H100-80GB-SXM").peak_of(DType::kBf16) == 989.4_TFLOPs);  // 1978.9 is sparse
  CHECK(type_called("MI300X-192GB").vendor == "amd");
  // One chip at 2.2 and 2.4 GHz: 256 units of 4096 FLOPs a cycle in bf16.
  CHECK(type_called("MI350X-288GB").peak_of(DType::kBf16).value() == Approx(256 * 4096 * 2.2e9).epsilon(1e-4));
  CHECK(type_called("MI355X-288GB").peak_of(DType::kBf16).value() == Approx(256 * 4096 * 2.4e9).epsilon(1e-4));
}

TEST_CASE("catalogue: a group in a mesh has the links among its own GPUs") {
  // V100: four of six NVLinks of 25 GB/s lead to the three others of a quad, 33.3 a pair; 8 GPUs have all six.
  const GpuType& v100 = type_called("V100-16GB-SXM");
  const auto among = [&](int gpus) { return bandwidth_among(v100, v100.peer_link, gpus); };
  CHECK(among(2) == 33.3_GBps);
  CHECK(among(3).value() == Approx(66.6e9));
  CHECK(among(8) == 150_GBps);
  CHECK(bandwidth_among(v100, v100.pcie, 2) == v100.pcie.bandwidth);  // the host bus is no mesh
  // A full mesh of eight: seven links of 64 GB/s.
  const GpuType& mi300x = type_called("MI300X-192GB");
  CHECK(bandwidth_among(mi300x, mi300x.peer_link, 8) == mi300x.peer_link.bandwidth);
  CHECK(bandwidth_among(mi300x, mi300x.peer_link, 2) == 64_GBps);
  // A switch leads all links of a GPU to any other.
  const GpuType& a100 = type_called("A100-80GB-SXM");
  CHECK(bandwidth_among(a100, a100.peer_link, 2) == 300_GBps);
}

TEST_CASE("catalogue: sustained rates follow the published measurements") {
  // Datasheets would put L4 (121) ahead of A10G (70); measured, A10G does 68 TFLOP/s and L4 54.
  const auto sustained = [](const GpuType& t) { return t.peak_of(DType::kFp16).value() * t.compute.gemm_efficiency; };
  CHECK(sustained(type_called("L4")) == Approx(54e12).epsilon(0.05));
  CHECK(sustained(type_called("A10G")) == Approx(68e12).epsilon(0.05));
  CHECK(sustained(type_called("V100-32GB-SXM")) == Approx(91e12).epsilon(0.05));
  CHECK(sustained(type_called("A100-40GB-SXM")) == Approx(245e12).epsilon(0.05));
}
