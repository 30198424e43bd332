// Attention by kernels made for the GPU's generation, against published times of cuDNN
// (configs/measurements/kernels/attention.json; scripts/fit_attention fits on the shape "llama3.1").
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/compute.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;
using model::AttentionKernel;

namespace {

const cluster::GpuType& catalogue_type(const std::string& name) {
  for (const cluster::GpuType& type : cluster::catalogue()) {
    if (type.name == name) return type;
  }
  FAIL("no GPU type " << name);
  return cluster::catalogue().front();
}

AttentionCore causal_core(double samples, double heads, double kv_heads, double tokens) {
  return {samples, heads, kv_heads, tokens, tokens, (tokens + 1) / 2, 128, 128, false};
}

AttentionCore published_core(const nlohmann::json& row) {
  model::Attention attention;
  attention.sliding_window = row.value("window", 0);
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  AttentionCore core;
  core.samples = number("batch");
  core.heads = number("heads");
  core.kv_heads = number("kv_heads");
  core.queries = core.keys = number("sequence");
  core.visible = visible_keys(attention, core.keys);
  core.qk_dim = number("qk_dim");
  core.v_dim = number("v_dim");
  return core;
}

/// Mean absolute relative error of a table, forward and backward together.
struct Miss {
  double sum = 0;
  int count = 0;
  void add(double predicted, double measured) {
    sum += std::abs(predicted / measured - 1);
    ++count;
  }
  [[nodiscard]] double mean() const { return sum / count; }
};

using Misses = std::map<std::pair<std::string, std::string>, Miss>;

/// By GPU and shape as published. `rates_of`: of a GPU type.
template <class RatesOf>
Misses misses(const char* list, const RatesOf& rates_of) {
  const std::map<std::string, std::string> names = {
      {"H200", "H200-141GB-SXM"}, {"B200", "B200-180GB-SXM"}, {"GB200", "GB200-186GB"}, {"GB300", "GB300-288GB"}};
  std::ifstream file(TANGRAM_ATTENTION_TIMES);
  REQUIRE(file);
  Misses out;
  const nlohmann::json document = nlohmann::json::parse(file);
  for (const nlohmann::json& row : document.at(list)) {
    if (!row.contains("backward_ms")) continue;  // no training runs this kernel
    const auto gpu = row.at("gpu").get<std::string>();
    const Passes time = fused_attention_seconds(published_core(row), 2, rates_of(catalogue_type(names.at(gpu))));
    Miss& miss = out[{gpu, row.at("model").get<std::string>()}];
    miss.add(time.forward, row.at("forward_ms").get<double>() * 1e-3);
    miss.add(time.backward, row.at("backward_ms").get<double>() * 1e-3);
  }
  return out;
}

Misses misses(AttentionKernel kernel, const char* list = "rows") {
  return misses(list, [&](const cluster::GpuType& gpu) { return device_rates(gpu, DType::kBf16, kernel); });
}

/// With the first kernels of the GPU's generation.
DeviceRates early_rates(cluster::GpuType gpu) {
  cluster::NativeAttention& native = gpu.compute.native_attention.value();
  native.forward_extra_keys = native.early_forward_extra_keys;
  native.backward_extra_keys = native.early_backward_extra_keys;
  return device_rates(gpu, DType::kBf16, AttentionKernel::kNative);
}

}  // namespace

TEST_CASE("native attention: published times, table by table") {
  auto native = misses(AttentionKernel::kNative);
  auto flash = misses(AttentionKernel::kFlash2);
  const auto mean = [&](const char* gpu, const char* shape) { return native.at({gpu, shape}).mean(); };
  // Fitted.
  CHECK(mean("H200", "llama3.1") < 0.02);
  CHECK(mean("GB200", "llama3.1") < 0.05);
  CHECK(mean("GB300", "llama3.1") < 0.03);
  // Held out: heads of 192 and 128.
  for (const char* gpu : {"GB200", "GB300"}) {
    for (const char* shape : {"dsv3", "kimiK26"}) {
      INFO(gpu << " " << shape);
      CHECK(mean(gpu, shape) < 0.08);
    }
  }
  // Held out on Hopper, and what least widths are fitted to on Blackwell: heads of 64 and a window. One time is off by
  // more than a third on both: 32K tokens forward, three times as long as 16K.
  CHECK(mean("H200", "gpt_oss") < 0.05);
  CHECK(mean("GB200", "gpt_oss") < 0.07);
  CHECK(mean("GB300", "gpt_oss") < 0.16);
  // One rate for all lengths, of older kernels, is far off on Hopper.
  CHECK(flash.at({"H200", "llama3.1"}).mean() > 1);
}

TEST_CASE("native attention: the first kernels of a generation cost more keys") {
  for (const auto& [name, miss] : misses("early", early_rates)) {
    INFO(name.first);
    CHECK(miss.mean() < 0.05);
  }
  const Misses today = misses(AttentionKernel::kNative, "early");
  CHECK(today.at({"B200", "llama3.1-405b"}).mean() > 0.1);
  CHECK(today.at({"GB300", "llama3.1-405b"}).mean() > 0.1);
}

TEST_CASE("FlashAttention-2 on Blackwell: published times") {
  // One share for all lengths, of 2K to 32K tokens.
  for (const auto& [name, miss] : misses(AttentionKernel::kFlash2, "flash2")) {
    INFO(name.first);
    CHECK(miss.mean() < 0.16);
  }
  CHECK(misses(AttentionKernel::kNative, "flash2").at({"B200", "llama3.1-405b"}).mean() > 0.5);
}

TEST_CASE("a job that does not say which attention runs has cuDNN's on Hopper and later, else FlashAttention-2") {
  model::Job job;
  CHECK(attention_kernel_on(catalogue_type("B200-180GB-SXM"), job) == AttentionKernel::kNative);
  CHECK(attention_kernel_on(catalogue_type("H100-80GB-SXM"), job) == AttentionKernel::kNative);
  CHECK(attention_kernel_on(catalogue_type("A100-80GB-SXM"), job) == AttentionKernel::kFlash2);
  CHECK(attention_kernel_on(catalogue_type("MI300X-192GB"), job) == AttentionKernel::kFlash2);
  job.attention_kernel = AttentionKernel::kFlash2;
  CHECK(attention_kernel_on(catalogue_type("B200-180GB-SXM"), job) == AttentionKernel::kFlash2);
  CHECK(attention_kernel_on(catalogue_type("H100-80GB-SXM"), job) == AttentionKernel::kFlash2);
  job.attention_kernel = AttentionKernel::kNative;
  CHECK(attention_kernel_on(catalogue_type("A100-80GB-SXM"), job) == AttentionKernel::kNative);
}

TEST_CASE("native attention: heads whose values are too wide run the kernels of all generations") {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.attention_forward = 0.2;
  gpu.compute.attention_backward = 0.1;
  gpu.compute.native_attention = cluster::NativeAttention{0.9, 0.6, 500, 700, "", 64, 32, 72, 128, 96};
  gpu.compute.native_attention->widest_value_dim = 128;
  const auto time_of = [&](AttentionKernel kernel, double keys, double values) {
    AttentionCore core = causal_core(1, 8, 8, 4096);
    core.qk_dim = keys;
    core.v_dim = values;
    return fused_attention_seconds(core, 2, device_rates(gpu, DType::kBf16, kernel));
  };
  const auto same = [&](double keys, double values) {
    const Passes native = time_of(AttentionKernel::kNative, keys, values);
    const Passes flash = time_of(AttentionKernel::kFlash2, keys, values);
    return native.forward == flash.forward && native.backward == flash.backward;
  };
  CHECK(same(192, 192));
  CHECK(same(256, 256));
  CHECK_FALSE(same(128, 128));
  CHECK_FALSE(same(192, 128));  // latent attention
  const double pairs = 8.0 * 4096 * 2048.5;
  CHECK(time_of(AttentionKernel::kNative, 192, 192).forward == Approx(pairs * 4 * 192 / (100e12 * 0.2)));
  CHECK(time_of(AttentionKernel::kNative, 192, 192).backward == Approx(pairs * 10 * 192 / (100e12 * 0.1)));
  gpu.compute.native_attention->widest_value_dim = 0;
  CHECK_FALSE(same(256, 256));
}

TEST_CASE("native attention: a query costs as much as some keys more than it sees") {
  // 1 sample, 8 heads of 128, 4096 tokens: 2048.5 keys on average, and 500 or 700 beyond.
  cluster::GpuType gpu = round_gpu();
  gpu.compute.native_attention = cluster::NativeAttention{0.9, 0.6, 500, 700, ""};
  const Passes time =
      fused_attention_seconds(causal_core(1, 8, 8, 4096), 2, device_rates(gpu, DType::kBf16, AttentionKernel::kNative));
  const double queries = 8.0 * 4096;
  CHECK(time.forward == Approx(queries * (2048.5 + 500) * 4 * 128 / (100e12 * 0.9)));
  CHECK(time.backward == Approx(queries * (2048.5 + 700) * 10 * 128 / (100e12 * 0.6)));
}

TEST_CASE("native attention: narrow heads are padded, and pay for each score") {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.native_attention = cluster::NativeAttention{0.9, 0.6, 0, 0, "", 64, 32, 72};
  const DeviceRates rates = device_rates(gpu, DType::kBf16, AttentionKernel::kNative);
  const auto time_of = [&](double head_dim) {
    AttentionCore core = causal_core(1, 8, 8, 4096);
    core.qk_dim = core.v_dim = head_dim;
    return fused_attention_seconds(core, 2, rates);
  };
  const Passes stated = time_of(128);
  CHECK(stated.forward == Approx(8.0 * 4096 * 2048.5 * 4 * 128 / (100e12 * 0.9)));
  CHECK(time_of(64).forward / stated.forward == Approx((64 + 32) / (128.0 + 32)));
  CHECK(time_of(64).backward / stated.backward == Approx((64 + 72) / (128.0 + 72)));
  CHECK(time_of(80).forward == stated.forward);
  CHECK(time_of(160).backward / stated.backward == Approx((192 + 72) / (128.0 + 72)));
}

TEST_CASE("native attention: heads below a least width take as long as one of it") {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.native_attention = cluster::NativeAttention{0.9, 0.6, 0, 0, "", 0, 0, 0, 128, 96};
  const DeviceRates rates = device_rates(gpu, DType::kBf16, AttentionKernel::kNative);
  const auto time_of = [&](double keys, double values) {
    AttentionCore core = causal_core(1, 8, 8, 4096);
    core.qk_dim = keys;
    core.v_dim = values;
    return fused_attention_seconds(core, 2, rates);
  };
  const Passes stated = time_of(128, 128);
  CHECK(time_of(64, 64).forward == stated.forward);
  CHECK(time_of(64, 64).backward / stated.backward == Approx(96 / 128.0));
  CHECK(time_of(112, 64).backward / stated.backward == Approx((3 * 112 + 2 * 96) / (5 * 128.0)));
  CHECK(time_of(192, 128).forward / stated.forward == Approx((192 + 128) / 256.0));
}

TEST_CASE("native attention: the rate rises with the sequence") {
  const cluster::GpuType& h100 = catalogue_type("H100-80GB-SXM");
  const DeviceRates rates = device_rates(h100, DType::kBf16, AttentionKernel::kNative);
  const double peak = h100.peak_of(DType::kBf16).value();
  double forward = 0;
  double backward = 0;
  for (const double tokens : {512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 65536.0, 1048576.0}) {
    const AttentionCore core = causal_core(1, 32, 8, tokens);
    const double flops = core.heads * core.queries * core.visible * 4 * 128;
    const Passes time = fused_attention_seconds(core, 2, rates);
    INFO(tokens);
    CHECK(flops / time.forward / peak > forward);
    CHECK(2.5 * flops / time.backward / peak > backward);
    forward = flops / time.forward / peak;
    backward = 2.5 * flops / time.backward / peak;
  }
  CHECK(forward <= h100.compute.native_attention->forward);
  CHECK(backward <= h100.compute.native_attention->backward);
}

TEST_CASE("native attention: as FlashAttention-2 where it is not asked for, or the GPU has no figures") {
  const AttentionCore core = causal_core(2, 32, 8, 4096);
  const auto seconds = [&](const cluster::GpuType& gpu, AttentionKernel kernel) {
    const Passes time = fused_attention_seconds(core, 2, device_rates(gpu, DType::kBf16, kernel));
    return std::pair(time.forward, time.backward);
  };
  const cluster::GpuType h100 = catalogue_type("H100-80GB-SXM");
  cluster::GpuType without = h100;
  without.compute.native_attention.reset();
  CHECK(seconds(h100, AttentionKernel::kFlash2) == seconds(without, AttentionKernel::kFlash2));
  CHECK(seconds(without, AttentionKernel::kNative) == seconds(without, AttentionKernel::kFlash2));
  CHECK(seconds(h100, AttentionKernel::kNative) < seconds(h100, AttentionKernel::kFlash2));
}

TEST_CASE("native attention: a job's block, and the bound under it") {
  model::Model llama = model_of(llama_block(4096, 32, 8, 14336, 16384), 4, 32'000);
  const model::BlockType& block = llama.types.front();
  const cluster::DeviceShape shape = shape_of(catalogue_type("H100-80GB-SXM"), 1, 1);
  const auto seconds = [&](AttentionKernel kernel) {
    llama.job.attention_kernel = kernel;
    const BlockTime time = block_time(block, llama.job, Degrees{}, 1, shape, {});
    CHECK(time.compute.forward + time.compute.backward >= least_gpu_seconds(llama, block, shape.device));
    return time.compute.forward + time.compute.backward;
  };
  CHECK(seconds(AttentionKernel::kNative) < 0.75 * seconds(AttentionKernel::kFlash2));
}
