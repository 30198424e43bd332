#include "tangram/cost/compute.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>

namespace tangram::cost {
namespace {

/// A tile of the result and the share of the full rate that it reaches: small ones load more bytes per FLOP (NVIDIA's
/// guide, "tile sizes"; it gives their order, the figures are assumed).
struct Tile {
  double rows;
  double columns;
  double share;
};
constexpr Tile kTiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.96}, {128, 64, 0.84}, {64, 64, 0.70}};

/// Steps of k in 16 bits that filling and draining a tile's pipeline takes: fitted together with the A100's rates
/// (scripts/calibrate). Formats of 8 and 4 bits do more steps in that time.
constexpr double kFill = 200;

/// No part of k is cut shorter: adding up the parts would cost more.
constexpr double kLeastDepth = 512;

constexpr double kWhole = 0x1p52;  // from here on doubles are whole

/// std::floor and std::ceil of what is not negative, without a call.
double rounded_down(double value) {
  return value < kWhole ? static_cast<double>(static_cast<std::int64_t>(value)) : value;
}
double rounded_up(double value) {
  const double down = rounded_down(value);
  return down < value ? down + 1 : down;
}

/// FLOPs the device could do meanwhile, where filling a tile takes so many steps of k. units 0: unknown, the product
/// fills the device evenly.
double wave_flops(const Gemm& gemm, double units, double fill) {
  if (units <= 0) return 2 * gemm.count * gemm.m * gemm.n * gemm.k;
  double best = 1e300;
  for (const Tile& tile : kTiles) {
    const double tiles = gemm.count * rounded_up(gemm.m / tile.rows) * rounded_up(gemm.n / tile.columns);
    const double each = 2 * tile.rows * tile.columns / tile.share;
    const double whole = rounded_up(tiles / units) * units * each * (gemm.k + fill);
    best = std::min(best, whole);
    const double splits = rounded_down(units / tiles);
    if (splits >= 2) best = std::min(best, units * each * (std::max(gemm.k / splits, kLeastDepth) + 2 * fill));
  }
  return best;
}

DType first_supported(const cluster::GpuType& device, DType precision, std::initializer_list<DType> order) {
  for (const DType type : order) {
    if (device.peak_of(type).value() > 0) return type;
  }
  return precision;
}

/// A fused kernel: no tiles to pad, because it loops over keys inside.
double fused_seconds(double flops, double bytes, double rate, const DeviceRates& device) {
  return std::max(flops / rate, bytes / device.memory) + device.launch;
}

}  // namespace

DType matrix_format(const cluster::GpuType& device, DType precision) {
  const auto first = [&](std::initializer_list<DType> order) { return first_supported(device, precision, order); };
  switch (precision) {
    case DType::kFp4: return first({DType::kFp4, DType::kFp8, DType::kBf16, DType::kFp16, DType::kFp32});
    case DType::kFp8: return first({DType::kFp8, DType::kBf16, DType::kFp16, DType::kFp32});
    case DType::kBf16: return first({DType::kBf16, DType::kFp16, DType::kFp32});
    case DType::kFp16: return first({DType::kFp16, DType::kBf16, DType::kFp32});
    case DType::kTf32: return first({DType::kTf32, DType::kFp32});
    case DType::kFp32: return first({DType::kFp32, DType::kTf32});
  }
  return precision;
}

DType wide_precision(const model::Job& job) { return is_narrow(job.precision) ? DType::kBf16 : job.precision; }

FlopsPerSecond matrix_peak(const cluster::GpuType& device, DType precision) {
  return device.peak_of(matrix_format(device, precision));
}

FlopsPerSecond fleet_peak(const cluster::Fleet& fleet, DType precision) {
  double peak = 0;
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) {
      peak += matrix_peak(group.device, precision).value() * group.count;
    }
  }
  return FlopsPerSecond(peak);
}

namespace {

using Fused = std::optional<cluster::FusedKernels>;

/// Products in 4 bits are vendors' kernels whatever runs beside them.
double matrix_rate(const cluster::GpuType& device, DType precision, const Fused& fused) {
  const DType format = matrix_format(device, precision);
  const Fused& kernels = format == DType::kFp4 ? device.compute.fused_kernels : fused;
  return device.peak_of(format).value() * (kernels ? kernels->share_of(format) : device.compute.gemm_efficiency);
}

void set_fused_attention(DeviceRates& rates, const cluster::ComputeCalibration& compute, double peak,
                         model::AttentionKernel kernel) {
  rates.fused_forward = peak * compute.attention_forward;
  rates.fused_backward = peak * compute.attention_backward;
  if (kernel != model::AttentionKernel::kNative || !compute.native_attention) return;
  const cluster::NativeAttention& native = *compute.native_attention;
  rates.fused_forward = peak * native.forward;
  rates.fused_backward = peak * native.backward;
  rates.forward_extra_keys = native.forward_extra_keys;
  rates.backward_extra_keys = native.backward_extra_keys;
  rates.head_dim_multiple = native.head_dim_multiple;
  rates.forward_extra_head_dim = native.forward_extra_head_dim;
  rates.backward_extra_head_dim = native.backward_extra_head_dim;
  rates.forward_least_head_dim = native.forward_least_head_dim;
  rates.backward_least_head_dim = native.backward_least_head_dim;
  rates.widest_value_dim = native.widest_value_dim;
  rates.wide_forward = peak * compute.attention_forward;
  rates.wide_backward = peak * compute.attention_backward;
}

double memory_rate(const cluster::GpuType& device, const Fused& fused) {
  return device.memory_bandwidth.value() * (fused ? fused->memory_efficiency : device.compute.memory_efficiency);
}

}  // namespace

DeviceRates device_rates(const cluster::GpuType& device, const model::Job& job) {
  const DType format = matrix_format(device, job.precision);
  const DType wide = wide_precision(job);
  const Fused fused = job.fused_kernels ? device.compute.fused_kernels : std::nullopt;
  DeviceRates rates;
  rates.matrix = matrix_rate(device, job.precision, fused);
  rates.attention = matrix_rate(device, wide, fused);
  const double single = matrix_rate(device, DType::kFp32, fused);
  rates.single = single > 0 ? single : rates.attention;  // a record need not have a peak in fp32
  set_fused_attention(rates, device.compute, matrix_peak(device, wide).value(), attention_kernel_on(device, job));
  rates.host_issue = job.cuda_graphs.has(model::GraphModule::kRest) ? 0 : to_seconds(device.compute.host_issue);
  rates.multiprocessors = device.multiprocessors;
  rates.copies = narrow_copies(device, format, job);
  rates.memory = memory_rate(device, fused);
  if (device.compute.unvectorized_values > 0) rates.unvectorized = 1 / device.compute.unvectorized_values;
  rates.launch = to_seconds(device.compute.kernel_launch);
  rates.sums_behind = fused.has_value();
  return rates;
}

DeviceRates device_rates(const cluster::GpuType& device, DType precision, model::AttentionKernel kernel) {
  model::Job job;
  job.precision = precision;
  job.attention_kernel = kernel;
  return device_rates(device, job);
}

/// From Hopper on Transformer Engine prefers cuDNN's to FlashAttention-2 (get_attention_backend, "Hopper+"), and so do
/// Megatron-LM, FlagScale and Megatron-Bridge, which leave the choice to it; PyTorch took it in our runs.
model::AttentionKernel attention_kernel_on(const cluster::GpuType& device, const model::Job& job) {
  using model::AttentionKernel;
  if (job.attention_kernel != AttentionKernel::kDefault) return job.attention_kernel;
  const bool native = device.architecture == "hopper" || device.architecture == "blackwell";
  return native ? AttentionKernel::kNative : AttentionKernel::kFlash2;
}

double gemm_seconds(const Gemm& gemm, double element, double result, double rate, const DeviceRates& device) {
  const double fill = kFill * rate / device.attention;
  const double flops = wave_flops(gemm, device.multiprocessors, fill);
  const double bytes = gemm.count * (element * (gemm.m * gemm.k + gemm.k * gemm.n) + result * gemm.m * gemm.n);
  return std::max(flops / rate, bytes / device.memory) + device.launch;
}

double streaming_seconds(double bytes, const DeviceRates& device) { return bytes / device.memory + device.launch; }

double elementwise_seconds(const Elementwise& kernels, double values, double element, const DeviceRates& device) {
  const double one_by_one =
      std::max(kernels.moved * element / device.memory, kernels.unvectorized * device.unvectorized);
  return values * (kernels.streamed * element / device.memory + one_by_one) + device.launch;
}

Passes host_bound(const Passes& passes, const DeviceRates& device, bool blocking) {
  const auto bound = [&](double seconds, int kernels) {
    const double host = kernels * device.host_issue;
    return blocking ? seconds + host : std::max(seconds, host);
  };
  Passes result = passes;
  result.forward = bound(passes.forward, passes.forward_kernels);
  result.backward = bound(passes.backward, passes.backward_kernels);
  return result;
}

namespace {

/// Of weights, once more by columns (NarrowCopies::transposes).
Passes transpose_seconds(double weights, const DeviceRates& device) {
  constexpr double kMoved = 2;  // read and written
  return {0, streaming_seconds(weights * kMoved * device.copies.one, device), 0, 1};
}

/// Inputs are cast in forward, gradients of outputs in backward; weights once an iteration (UnitCost::cast).
Passes cast_seconds(double inputs, double gradients, double element, InputFrom input, const DeviceRates& device) {
  const NarrowCopies& copies = device.copies;
  const double reads = input == InputFrom::kNorm ? copies.normed_reads : copies.input_reads;
  const auto seconds = [&](double values, double times) {
    return streaming_seconds(values * (times * element + copies.bytes()), device);
  };
  const auto kernels = [](double times) { return std::max(1, static_cast<int>(times)); };
  return {seconds(inputs, reads), seconds(gradients, copies.gradient_reads), kernels(reads),
          kernels(copies.gradient_reads)};
}

}  // namespace

namespace {

double weight_gradient_seconds(const Gemm& gemm, double element, double gradient, double rate,
                               const DeviceRates& device) {
  if (gradient <= 0) return gemm_seconds(gemm, element, element, rate, device);
  const double added = 2 * gradient;  // read and written
  if (!device.sums_behind) return gemm_seconds(gemm, element, added, rate, device);
  return gemm_seconds(gemm, element, 0, rate, device) + gemm.count * gemm.m * gemm.n * added / device.memory;
}

}  // namespace

Passes linear_seconds(double rows, double in, double out, double count, double element, double gradient, double rate,
                      const DeviceRates& device, const model::Gradients& wanted, InputFrom input) {
  const double forward = gemm_seconds({rows, out, in, count}, element, element, rate, device);
  const double input_gradient = gemm_seconds({rows, in, out, count}, element, element, rate, device);
  const double weight_gradient = weight_gradient_seconds({in, out, rows, count}, element, gradient, rate, device);
  Passes time{forward, (wanted.inputs ? input_gradient : 0) + (wanted.weights ? weight_gradient : 0), 1,
              wanted.products()};
  if (device.copies.one > 0) time += cast_seconds(count * rows * in, count * rows * out, element, input, device);
  if (device.copies.transposes() && wanted.inputs) time += transpose_seconds(count * in * out, device);
  return time;
}

namespace {

/// What each step of a ring but the first adds to what those before it left: forward its output to one of fp32, with
/// the sums of exponentials, backward its gradients of Q, K and V to theirs (Transformer Engine, context_parallel.py).
Passes merge_seconds(const AttentionCore& core, double element, const DeviceRates& device) {
  constexpr double kRead = 1, kAccumulated = 2 * 4;  // the step's own; read and written in 4 bytes
  const double tokens = core.samples * core.queries;
  const double output = tokens * core.heads * core.v_dim;
  const double inputs = tokens * (core.heads * core.qk_dim + core.kv_heads * (core.qk_dim + core.v_dim));
  const double bytes = kRead * element + kAccumulated;
  const int more = static_cast<int>(core.steps) - 1;
  return {more * streaming_seconds(output * bytes, device), more * streaming_seconds(inputs * bytes, device), more,
          2 * more};
}

/// The width of a head whose products take as long as this one's: what kernels pad it to, at least `least`, and `extra`
/// for each score, both beside those of the head that rates of fused attention are stated for.
double timed_width(double head_dim, double extra, double least, double multiple) {
  constexpr double kStated = 128;
  const double padded = multiple > 0 ? std::ceil(head_dim / multiple) * multiple : head_dim;
  return (std::max(padded, least) + extra) * kStated / (kStated + extra);
}

/// The same device with the kernels that it has for wide heads alone.
DeviceRates for_wide_heads(DeviceRates device) {
  device.fused_forward = device.wide_forward;
  device.fused_backward = device.wide_backward;
  device.forward_extra_keys = device.backward_extra_keys = 0;
  device.head_dim_multiple = 0;
  device.forward_extra_head_dim = device.backward_extra_head_dim = 0;
  device.forward_least_head_dim = device.backward_least_head_dim = 0;
  device.widest_value_dim = 0;
  return device;
}

}  // namespace

Passes fused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device) {
  if (device.widest_value_dim > 0 && core.v_dim > device.widest_value_dim) {
    return fused_attention_seconds(core, element, for_wide_heads(device));
  }
  const auto pairs = [&](double extra_keys) {
    return core.samples * core.heads * core.queries * (core.visible + extra_keys);
  };
  const double query = core.samples * core.queries * core.heads * (core.qk_dim + core.v_dim);  // Q and O
  const double key = core.samples * core.queries * core.kv_heads * (core.qk_dim + core.v_dim);
  const double bytes = element * (query + key);
  const auto width = [&](double dim) {
    return timed_width(dim, device.forward_extra_head_dim, device.forward_least_head_dim, device.head_dim_multiple);
  };
  const auto backward_width = [&](double dim) {
    return timed_width(dim, device.backward_extra_head_dim, device.backward_least_head_dim, device.head_dim_multiple);
  };
  const double forward = 2 * pairs(core.steps * device.forward_extra_keys) * (width(core.qk_dim) + width(core.v_dim));
  const double backward = 2 * pairs(core.steps * device.backward_extra_keys) *
                          (3 * backward_width(core.qk_dim) + 2 * backward_width(core.v_dim));
  Passes time{fused_seconds(forward, bytes, device.fused_forward, device),
              fused_seconds(backward, 2 * bytes, device.fused_backward, device), 1, 2};
  if (core.steps > 1) time += merge_seconds(core, element, device);
  return time;
}

namespace {

/// How often a softmax of attention reads or writes all scores, and its kernels in each direction.
struct SoftmaxPasses {
  double forward = 0;
  double backward = 0;
  int kernels = 0;
};

/// Scores of 2 bytes: scale, mask and softmax are one kernel (Megatron-LM, fused_softmax.py).
constexpr SoftmaxPasses kOneKernel{2, 3, 1};
/// Others: operators of PyTorch. Forward: scaled (2), masked (2), row by row for its maximum and sum, then again (3).
/// Backward: two reads of softmax and gradient (5), the masked one a copy (4), scaled (2). Timings of the three
/// together by Sailor (SOSP 2025; Aceso's profiler; 256 MiB to 3.5 GiB of scores), in passes at the rate of the same
/// GPU's GELU: V100 6.3 and 11.6, Titan RTX 6.5 and 11.6, RTX 2080 6.3 and 11.3, RTX 3090 7.3 and 12.2, A100 6.5 and
/// 10.6, GH200 8.3 and 11.4.
constexpr SoftmaxPasses kOwnOperators{7, 11, 3};

}  // namespace

Passes unfused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device) {
  const double batch = core.samples * core.heads;
  const double scores = batch * core.queries * core.keys;
  const auto product = [&](double m, double n, double k) {
    return gemm_seconds({m, n, k, batch}, element, element, device.attention, device);
  };
  const double mask = core.dropout ? 1 : 0;
  const double dropout = core.dropout ? streaming_seconds(scores * (2 * element + mask), device) : 0;
  const SoftmaxPasses& passes = element > 2 ? kOwnOperators : kOneKernel;
  const double softmax_forward = streaming_seconds(scores * passes.forward * element, device);
  const double softmax_backward = streaming_seconds(scores * passes.backward * element, device);
  const double forward = product(core.queries, core.keys, core.qk_dim) + softmax_forward + dropout +
                         product(core.queries, core.v_dim, core.keys);
  const double backward = product(core.keys, core.v_dim, core.queries) +                                // dV
                          product(core.queries, core.keys, core.v_dim) +                                // dP
                          dropout + softmax_backward + product(core.queries, core.qk_dim, core.keys) +  // dQ
                          product(core.keys, core.qk_dim, core.queries);                                // dK
  const int kernels = 2 + passes.kernels + (core.dropout ? 1 : 0);
  return {forward, backward, kernels, kernels + 2};
}

double visible_keys(const model::Attention& attention, double tokens) {
  const double window = static_cast<double>(attention.sliding_window);
  const double length = attention.packed_length > 0 ? std::min(attention.packed_length, tokens) : tokens;
  const double seen = window > 0 && window < length ? window : length;
  if (!attention.causal) return seen;
  return seen - seen * (seen - 1) / (2 * length);
}

Flops attention_forward_flops(const model::BlockType& block) {
  if (block.recurrence) return recurrence_flops(*block.recurrence, block.tokens);
  const model::Attention& attention = block.attention;
  const bool latent = attention.kind == model::AttentionKind::kLatent;
  const double dims =
      latent ? attention.qk_nope_head_dim + attention.qk_rope_head_dim + attention.v_head_dim : 2 * attention.head_dim;
  const double tokens = static_cast<double>(block.tokens);
  return Flops(2 * attention.heads * tokens * visible_keys(attention, tokens) * dims);
}

}  // namespace tangram::cost
