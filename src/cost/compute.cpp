#include "tangram/cost/compute.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace tangram::cost {
namespace {

/// Thread-block tile of the large library kernels, and the granularity of the matrix instructions, which small
/// dimensions are padded to instead (NVIDIA, "Matrix Multiplication Background User's Guide", tile quantization).
constexpr double kTile = 128;
constexpr double kInstructionTile = 16;

double padded(double dimension) {
  const double quantum = dimension > kTile ? kTile : kInstructionTile;
  return quantum * std::ceil(dimension / quantum);
}

DType first_supported(const cluster::GpuType& device, DType precision, std::initializer_list<DType> order) {
  for (const DType type : order) {
    if (device.peak_of(type).value() > 0) return type;
  }
  return precision;
}

/// A fused kernel: no tiles to pad, because it loops over keys inside.
double fused_seconds(double flops, double bytes, double share, const DeviceRates& device) {
  const double compute = (flops + device.half_size) / (device.attention * share);
  return std::max({compute, bytes / device.memory, device.launch});
}

}  // namespace

DType matrix_format(const cluster::GpuType& device, DType precision) {
  const auto first = [&](std::initializer_list<DType> order) { return first_supported(device, precision, order); };
  switch (precision) {
    case DType::kFp8: return first({DType::kFp8, DType::kBf16, DType::kFp16, DType::kFp32});
    case DType::kBf16: return first({DType::kBf16, DType::kFp16, DType::kFp32});
    case DType::kFp16: return first({DType::kFp16, DType::kBf16, DType::kFp32});
    case DType::kTf32: return first({DType::kTf32, DType::kFp32});
    case DType::kFp32: return first({DType::kFp32, DType::kTf32});
  }
  return precision;
}

FlopsPerSecond matrix_peak(const cluster::GpuType& device, DType precision) {
  return device.peak_of(matrix_format(device, precision));
}

DeviceRates device_rates(const cluster::GpuType& device, DType precision) {
  const double efficiency = device.compute.gemm_efficiency;
  const DType wide = precision == DType::kFp8 ? DType::kBf16 : precision;
  DeviceRates rates;
  rates.matrix = matrix_peak(device, precision).value() * efficiency;
  rates.attention = matrix_peak(device, wide).value() * efficiency;
  rates.half_size = device.compute.gemm_half_size;
  rates.memory = device.memory_bandwidth.value() * device.compute.memory_efficiency;
  rates.launch = to_seconds(device.compute.kernel_launch);
  return rates;
}

double gemm_seconds(const Gemm& gemm, double element, double result, double rate, const DeviceRates& device) {
  const double flops = 2 * gemm.count * padded(gemm.m) * padded(gemm.n) * gemm.k;
  const double bytes = gemm.count * (element * (gemm.m * gemm.k + gemm.k * gemm.n) + result * gemm.m * gemm.n);
  return std::max({(flops + device.half_size) / rate, bytes / device.memory, device.launch});
}

double streaming_seconds(double bytes, const DeviceRates& device) {
  return std::max(bytes / device.memory, device.launch);
}

Passes linear_seconds(double rows, double in, double out, double count, double element, double gradient, double rate,
                      const DeviceRates& device) {
  const double forward = gemm_seconds({rows, out, in, count}, element, element, rate, device);
  const double input_gradient = gemm_seconds({rows, in, out, count}, element, element, rate, device);
  const double weight_gradient = gemm_seconds({in, out, rows, count}, element, 2 * gradient, rate, device);
  return {forward, input_gradient + weight_gradient};
}

Passes fused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device) {
  const double pairs = core.samples * core.heads * core.queries * core.visible;
  const double query = core.samples * core.queries * core.heads * (core.qk_dim + core.v_dim);  // Q and O
  const double key = core.samples * core.queries * core.kv_heads * (core.qk_dim + core.v_dim);
  const double bytes = element * (query + key);
  const double forward = 2 * pairs * (core.qk_dim + core.v_dim);
  const double backward = 2 * pairs * (3 * core.qk_dim + 2 * core.v_dim);
  return {fused_seconds(forward, bytes, kFusedForwardShare, device),
          fused_seconds(backward, 2 * bytes, kFusedBackwardShare, device)};
}

Passes unfused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device) {
  const double batch = core.samples * core.heads;
  const double scores = batch * core.queries * core.keys;
  const auto product = [&](double m, double n, double k) {
    return gemm_seconds({m, n, k, batch}, element, element, device.attention, device);
  };
  const double mask = core.dropout ? 1 : 0;
  const double dropout = core.dropout ? streaming_seconds(scores * (2 * element + mask), device) : 0;
  const double softmax_forward = streaming_seconds(scores * 2 * element, device);
  const double softmax_backward = streaming_seconds(scores * 3 * element, device);
  const double forward = product(core.queries, core.keys, core.qk_dim) + softmax_forward + dropout +
                         product(core.queries, core.v_dim, core.keys);
  const double backward = product(core.keys, core.v_dim, core.queries) +                                // dV
                          product(core.queries, core.keys, core.v_dim) +                                // dP
                          dropout + softmax_backward + product(core.queries, core.qk_dim, core.keys) +  // dQ
                          product(core.keys, core.qk_dim, core.queries);                                // dK
  return {forward, backward};
}

double visible_keys(const model::Attention& attention, double tokens) {
  const double window = static_cast<double>(attention.sliding_window);
  const double seen = window > 0 && window < tokens ? window : tokens;
  if (!attention.causal) return seen;
  return seen - seen * (seen - 1) / (2 * tokens);
}

Flops attention_forward_flops(const model::BlockType& block) {
  const model::Attention& attention = block.attention;
  const bool latent = attention.kind == model::AttentionKind::kLatent;
  const double dims =
      latent ? attention.qk_nope_head_dim + attention.qk_rope_head_dim + attention.v_head_dim : 2 * attention.head_dim;
  const double tokens = static_cast<double>(block.tokens);
  return Flops(2 * attention.heads * tokens * visible_keys(attention, tokens) * dims);
}

}  // namespace tangram::cost
