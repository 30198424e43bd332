// Kernels whose times can be worked out on paper: 100 TFLOP/s, 1000 GB/s, no floors unless a test sets them.
#include "tangram/cost/compute.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

TEST_CASE("a large product runs at the sustained rate") {
  // 2 * 4096^3 = 137438953472 FLOPs at 100 TFLOP/s: 1.37438953472 ms. Bytes: 3 * 4096^2 * 2 = 100663296 at 1000 GB/s:
  // 0.1 ms, below.
  const DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  CHECK(gemm_seconds({4096, 4096, 4096}, 2, 2, rates.matrix, rates) == Approx(1.37438953472e-3));
}

TEST_CASE("a last wave that is not full takes as long as a full one") {
  cluster::GpuType gpu = round_gpu();
  gpu.multiprocessors = 64;
  const DeviceRates rates = device_rates(gpu, DType::kBf16);
  // 256 x 128 tiles, 200 steps of k to fill and drain. 2048 x 1024: 8 x 8 = 64 tiles, one wave on 64 multiprocessors:
  // 64 * 2 * 256 * 128 * (4096 + 200) FLOPs at 100 TFLOP/s.
  const double wave = 64 * 2.0 * 256 * 128 * (4096 + 200) / 100e12;
  CHECK(gemm_seconds({2048, 1024, 4096}, 2, 2, rates.matrix, rates) == Approx(wave));
  // One tile more each row: 72 tiles of 256 x 128 are two waves; 144 of 128 x 128 (at 0.96 of the rate) three of half
  // the work, 1.5 / 0.96 = 1.5625; 288 of 128 x 64 (0.84) five of a quarter, 1.25 / 0.84: the least.
  CHECK(gemm_seconds({2048, 1152, 4096}, 2, 2, rates.matrix, rates) == Approx(1.25 / 0.84 * wave));
}

TEST_CASE("filling a tile takes as long in 8 bits as in 16") {
  cluster::GpuType gpu = round_gpu();
  gpu.multiprocessors = 64;
  gpu.memory_bandwidth = 1e6_GBps;
  set_peak(gpu, DType::kFp8, 200_TFLOPs);
  const DeviceRates rates = device_rates(gpu, DType::kFp8);
  // One wave of 256 x 128 tiles as above, k of 2048: at 200 TFLOP/s half as long as at 100, the 200 steps of k aside.
  const double step = 64 * 2.0 * 256 * 128 / 100e12;
  CHECK(gemm_seconds({2048, 1024, 2048}, 1, 2, rates.attention, rates) == Approx(step * (2048 + 200)));
  CHECK(gemm_seconds({2048, 1024, 2048}, 1, 2, rates.matrix, rates) == Approx(step * (2048 / 2.0 + 200)));
}

TEST_CASE("a product of few tiles is cut along k") {
  cluster::GpuType gpu = round_gpu();
  gpu.multiprocessors = 64;
  gpu.memory_bandwidth = 1e6_GBps;
  const DeviceRates rates = device_rates(gpu, DType::kBf16);
  // 256 x 256 of k = 8192: with 64 x 64 tiles (0.70 of the rate) 16 tiles, k cut in 4: 64 * 2 * 64 * 64 / 0.70 *
  // (2048 + 400); with 128 x 64 (0.84) 8 tiles, cut in 8: 64 * 2 * 128 * 64 / 0.84 * (1024 + 400); with 128 x 128
  // (0.96) 4 tiles, cut in 16: 64 * 2 * 128 * 128 / 0.96 * (512 + 400): 64 * 2 * 4096 * (3497, 3390, 3800): the second.
  CHECK(gemm_seconds({256, 256, 8192}, 2, 2, rates.matrix, rates) ==
        Approx(64 * 2.0 * 128 * 64 / 0.84 * (1024 + 400) / 100e12));
}

TEST_CASE("elementwise kernels that read values one by one take as long as published") {
  std::ifstream file(TANGRAM_ELEMENTWISE_TIMES);
  const nlohmann::json table = nlohmann::json::parse(file);
  REQUIRE(table.at("rows").size() >= 6);
  for (const nlohmann::json& row : table.at("rows")) {
    const auto gpu = row.at("gpu").get<std::string>();
    INFO(gpu << ", " << row.at("kernel").get<std::string>());
    const auto type = std::ranges::find(cluster::catalogue(), gpu, &cluster::GpuType::name);
    REQUIRE(type != cluster::catalogue().end());
    model::Job job;
    job.fused_kernels = true;  // what a framework's kernels reach of memory in the mean has these in it
    const DeviceRates rates = device_rates(*type, job);
    const double seconds = elementwise_seconds({0, 3, 1}, row.at("mvalues").get<double>() * 1e6, 2, rates);
    CHECK(std::abs(seconds / (row.at("ms").get<double>() * 1e-3) - 1) < 0.06);
  }
}

TEST_CASE("a slow host bounds a block of many small kernels") {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.host_issue = 10_us;
  const DeviceRates rates = device_rates(gpu, DType::kBf16);
  // 3 and 5 kernels: 30 us and 50 us; the device needs 20 us and 80 us.
  const Passes bound = host_bound({20e-6, 80e-6, 3, 5}, rates);
  CHECK(bound.forward == Approx(30e-6));
  CHECK(bound.backward == Approx(80e-6));
}

TEST_CASE("a host that waits for each kernel adds its own time") {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.host_issue = 10_us;
  // 20 us of the device and 3 kernels of 10 us, 80 us and 5.
  const Passes bound = host_bound({20e-6, 80e-6, 3, 5}, device_rates(gpu, DType::kBf16), true);
  CHECK(bound.forward == Approx(50e-6));
  CHECK(bound.backward == Approx(130e-6));
}

TEST_CASE("a thin product is bound by its bytes") {
  // 1 x 8192 x 8192: the weight alone is 8192^2 * 2 = 134217728 bytes: 134.2 us; its 0.13 GFLOP would
  // take 1.3 us.
  const DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  const double bytes = 2.0 * (8192.0 * 8192 + 8192 + 8192);
  CHECK(gemm_seconds({1, 8192, 8192}, 2, 2, rates.matrix, rates) == Approx(bytes / 1000e9));
}

TEST_CASE("dimensions are padded to whole tiles") {
  cluster::GpuType gpu = round_gpu();
  gpu.multiprocessors = 64;
  const DeviceRates rates = device_rates(gpu, DType::kBf16);
  const auto seconds = [&](double m) { return gemm_seconds({m, 4096, 4096}, 0, 0, rates.matrix, rates); };
  CHECK(seconds(4000) == seconds(4096));
  CHECK(seconds(4097) > seconds(4096));
}

TEST_CASE("kernels follow each other with a gap") {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.kernel_launch = 5_us;
  const DeviceRates rates = device_rates(gpu, DType::kBf16);
  // 3 * 16^2 values of 2 bytes: 1.5 ns. 10 MB at 1000 GB/s: 10 us.
  CHECK(gemm_seconds({16, 16, 16}, 2, 2, rates.matrix, rates) == Approx(5e-6 + 1.536e-9));
  CHECK(streaming_seconds(10e6, rates) == Approx(15e-6));
}

TEST_CASE("precisions fall back to what the device has") {
  cluster::GpuType volta = round_gpu();
  set_peak(volta, DType::kBf16, FlopsPerSecond(0));
  set_peak(volta, DType::kFp16, 125_TFLOPs);
  set_peak(volta, DType::kFp32, 15_TFLOPs);
  CHECK(matrix_peak(volta, DType::kBf16) == 125_TFLOPs);
  CHECK(matrix_peak(volta, DType::kFp8) == 125_TFLOPs);
  CHECK(matrix_peak(volta, DType::kTf32) == 15_TFLOPs);

  cluster::GpuType pascal = volta;
  set_peak(pascal, DType::kFp16, FlopsPerSecond(0));
  CHECK(matrix_peak(pascal, DType::kBf16) == 15_TFLOPs);

  cluster::GpuType hopper = round_gpu();
  set_peak(hopper, DType::kFp8, 200_TFLOPs);
  // Linear layers in fp8, attention stays in 16 bits.
  CHECK(device_rates(hopper, DType::kFp8).matrix == Approx(200e12));
  CHECK(device_rates(hopper, DType::kFp8).attention == Approx(100e12));
  CHECK(matrix_format(hopper, DType::kFp4) == DType::kFp8);
  cluster::GpuType blackwell = hopper;
  set_peak(blackwell, DType::kFp4, 400_TFLOPs);
  CHECK(device_rates(blackwell, DType::kFp4).matrix == Approx(400e12));
  CHECK(device_rates(blackwell, DType::kFp4).attention == Approx(100e12));
  CHECK(matrix_peak(cluster::GpuType{}, DType::kBf16).value() == 0);
}

TEST_CASE("a linear layer's backward is its own two products") {
  // rows 2048, in 4096, out 1024: all three products have 2 * 2048 * 4096 * 1024 = 17.18 GFLOP, 171.8 us each, and no
  // padding; the weight gradient adds 8 bytes for each of 4096 * 1024 values, still below.
  const DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  const Passes time = linear_seconds(2048, 4096, 1024, 1, 2, 4, rates.matrix, rates);
  CHECK(time.forward == Approx(171.79869184e-6));
  CHECK(time.backward == Approx(2 * 171.79869184e-6));
  // Two rows: forward reads 8 MiB of weights (8.4 us), the weight gradient moves 32 MiB (33.6 us): not twice anything.
  const Passes thin = linear_seconds(2, 4096, 1024, 1, 2, 4, rates.matrix, rates);
  CHECK(thin.backward > 4 * thin.forward);
}

TEST_CASE("visible keys of causal, windowed and full attention") {
  model::Attention attention;
  // Causal, 4 tokens: 1 + 2 + 3 + 4 = 10, 2.5 on average.
  CHECK(visible_keys(attention, 4) == Approx(2.5));
  // Window of 2: 1 + 2 + 2 + 2 = 7.
  attention.sliding_window = 2;
  CHECK(visible_keys(attention, 4) == Approx(1.75));
  // A window longer than the sequence is none.
  attention.sliding_window = 10;
  CHECK(visible_keys(attention, 4) == Approx(2.5));
  attention.causal = false;
  attention.sliding_window = 0;
  CHECK(visible_keys(attention, 4) == Approx(4));
}

TEST_CASE("fused attention computes the visible half and five products backward") {
  // 1 sample, 8 heads, 4096 tokens, 128 wide: pairs 8 * 4096 * 2048.5; forward 4 * 128 FLOPs a pair.
  AttentionCore core{1, 8, 8, 4096, 4096, 2048.5, 128, 128, false};
  const DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  const double pairs = 8.0 * 4096 * 2048.5;
  const Passes time = fused_attention_seconds(core, 2, rates);
  CHECK(time.forward == Approx(pairs * 4 * 128 / (100e12 * 0.8)));
  CHECK(time.backward == Approx(pairs * 10 * 128 / (100e12 * 0.7)));
}

TEST_CASE("unfused attention pays for all pairs and streams the scores") {
  AttentionCore core{1, 8, 8, 4096, 4096, 2048.5, 128, 128, true};
  const DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  const double scores = 8.0 * 4096 * 4096;
  // Products: 2 forward and 4 backward of 2 * scores * 128 FLOPs; each also moves the scores once, 2 bytes a value:
  // FLOP time 0.34 ms each, byte time 0.27 + 0.02 ms, so FLOPs decide.
  const double product = 2 * scores * 128 / 100e12;
  // Softmax 2 + 2, dropout 2 + 2 + 1 bytes; backward dropout the same, softmax 6.
  const Passes time = unfused_attention_seconds(core, 2, rates);
  CHECK(time.forward == Approx(2 * product + scores * (4 + 5) / 1000e9));
  CHECK(time.backward == Approx(4 * product + scores * (5 + 6) / 1000e9));
  CHECK(time.forward_kernels == 4);
  CHECK(time.backward_kernels == 6);
}

TEST_CASE("scores of four bytes are scaled, masked and normalised by kernels of their own") {
  AttentionCore core{1, 8, 8, 4096, 4096, 2048.5, 128, 128, false};
  const DeviceRates rates = device_rates(round_gpu(), DType::kFp32);
  const double scores = 8.0 * 4096 * 4096;
  const auto product = [&](double m, double n, double k) {
    return gemm_seconds({m, n, k, 8}, 4, 4, rates.attention, rates);
  };
  const double forward = product(4096, 4096, 128) + product(4096, 128, 4096);
  const double backward = 2 * product(4096, 4096, 128) + 2 * product(4096, 128, 4096);
  const Passes time = unfused_attention_seconds(core, 4, rates);
  CHECK(time.forward == Approx(forward + scores * 7 * 4 / 1000e9));
  CHECK(time.backward == Approx(backward + scores * 11 * 4 / 1000e9));
  CHECK(time.forward_kernels == 5);
}

TEST_CASE("Llama-2-7B: FLOPs of one block") {
  // h 4096, f 11008, s 4096: weights 4 h^2 + 3 h f = 67108864 + 135266304 = 202375168; 2 * 4096 tokens each:
  // 1.657857e12. Attention: two products over s (s+1) / 2 pairs, 32 heads of 128: 4 * 4096 * 4096 * 2048.5
  // = 1.374725e11.
  const model::BlockType block = llama_block(4096, 32, 32, 11008, 4096);
  CHECK(attention_forward_flops(block).value() == Approx(4.0 * 4096 * 4096 * 2048.5));
  const cluster::GpuType gpu = round_gpu();
  const model::Model llama = model_of(block, 32, 32'000);
  // At 100 TFLOP/s, three times forward. The model's own count takes s/2 for (s+1)/2: 1/4096 of the attention.
  const double flops = 2 * 4096.0 * 202375168 + 4.0 * 4096 * 4096 * 2048.5;
  CHECK(least_gpu_seconds(llama, block, gpu) == Approx(3 * flops / 100e12).epsilon(1e-4));
  CHECK(least_gpu_seconds_head(llama, gpu) == Approx(3 * 2.0 * 4096 * 4096 * 32000 / 100e12));
}

TEST_CASE("the peak of a fleet is that of all its GPUs") {
  // Two nodes with 3 of 100 TFLOP/s each.
  cluster::Node node;
  node.groups.resize(1);
  node.groups[0].device = round_gpu();
  node.groups[0].count = 3;
  cluster::Fleet fleet;
  fleet.nodes = {node, node};
  CHECK(fleet_peak(fleet, DType::kBf16) == 600_TFLOPs);
}
