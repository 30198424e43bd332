// Time of single kernels on one GPU. Goes in: matrix sizes or bytes, and the device's calibration. Comes out: seconds.
// Pure functions without a state; a roofline (Williams, Waterman, Patterson, CACM 52(4), 2009) with gaps:
//
//   matrix product     max(waves(m, n, k) / (peak * gemm_efficiency), bytes / (bandwidth * memory_efficiency)) + launch
//   streaming kernel   bytes / (bandwidth * memory_efficiency) + launch
//
// waves: FLOPs that the device could do while the product runs. A product is cut into tiles of the result, the tiles
// run in waves of one per multiprocessor, and a last wave that is not full takes as long as a full one (NVIDIA, "Matrix
// Multiplication Background User's Guide", wave and tile quantization); each tile fills and drains its pipeline.
// Libraries pick the tile and the split of k that take least; so does this model. The host puts kernels into the queue
// one after the other: a block takes at least the number of its kernels times host_issue, whatever the device could do
// (launch-bound: small microbatches).
#pragma once

#include "tangram/cluster/fleet.hpp"
#include "tangram/cluster/gpu.hpp"
#include "tangram/cost/narrow.hpp"
#include "tangram/model/model.hpp"

namespace tangram::cost {

/// The dense peak a job of this precision computes with. A device without the format falls back to the next wider one
/// its matrix units have, because that is what its users train in: fp4 -> fp8 -> bf16 -> fp16 (Volta, Turing) -> fp32,
/// tf32 -> fp32. 0: the device has no peak at all.
[[nodiscard]] FlopsPerSecond matrix_peak(const cluster::GpuType& device, DType precision);

/// Of all GPUs together.
[[nodiscard]] FlopsPerSecond fleet_peak(const cluster::Fleet& fleet, DType precision);

/// Of what stays in 16 bits beside products in 8 and 4: bf16; else the job's own.
[[nodiscard]] DType wide_precision(const model::Job& job);

/// The format that peak is of; `precision` itself where the device has no peak at all.
[[nodiscard]] DType matrix_format(const cluster::GpuType& device, DType precision);

/// What the kernels of one device sustain in one precision.
struct DeviceRates {
  double matrix = 0;     ///< FLOP/s of a large matrix product of a linear layer
  double attention = 0;  ///< the same inside attention and the head, in 16 bits under fp8 and fp4 (Transformer Engine)
  double single = 0;     ///< FLOP/s of products in fp32, adapters of PEFT's
  double fused_forward = 0;            ///< FLOP/s of fused attention
  double fused_backward = 0;           ///< the same of its backward pass
  double forward_extra_keys = 0;       ///< keys that fused attention computes beyond those that a query sees
  double backward_extra_keys = 0;      ///< the same of its backward pass
  double head_dim_multiple = 0;        ///< widths of heads are padded to a multiple of it, by fused attention; 0: not
  double forward_extra_head_dim = 0;   ///< what a score costs beside its products, as width of a head
  double backward_extra_head_dim = 0;  ///< the same of its backward pass
  double forward_least_head_dim = 0;   ///< narrower heads take as long; 0: none do
  double backward_least_head_dim = 0;  ///< the same of its backward pass
  double widest_value_dim = 0;         ///< heads with wider values run at the rates below; 0: none do
  double wide_forward = 0;             ///< FLOP/s of fused attention of wide heads
  double wide_backward = 0;            ///< the same of its backward pass
  double memory = 0;                   ///< bytes/s of a streaming kernel
  double unvectorized = 0;             ///< seconds a value of a kernel that reads values one by one, at least
  double launch = 0;                   ///< seconds from one kernel to the next
  double host_issue = 0;               ///< seconds the host needs for one kernel
  double multiprocessors = 0;
  NarrowCopies copies;       ///< of what products of linear layers read
  bool sums_behind = false;  ///< rates are of products alone: what adds gradients to the main ones comes on top
};
/// Of a job's precision and kernels.
[[nodiscard]] DeviceRates device_rates(const cluster::GpuType& device, const model::Job& job);
/// The same of kernels that all generations of GPUs have, or of this fused attention.
[[nodiscard]] DeviceRates device_rates(const cluster::GpuType& device, DType precision,
                                       model::AttentionKernel kernel = model::AttentionKernel::kFlash2);
/// Which fused attention the job runs on the device: never the default itself.
[[nodiscard]] model::AttentionKernel attention_kernel_on(const cluster::GpuType& device, const model::Job& job);

/// `count` products of m x k with k x n in one kernel (batched in attention, grouped in experts).
struct Gemm {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;
};

/// Seconds at `rate` FLOP/s (DeviceRates::matrix or ::attention). Filling a tile takes as long at either: 8 and 4 bits
/// need larger products to come near their rate (configs/measurements/kernels/products.json). Inputs move once with
/// `element` bytes a value, the result with `result` bytes (a weight gradient added to a 4-byte main gradient: read and
/// written, 8).
[[nodiscard]] double gemm_seconds(const Gemm& gemm, double element, double result, double rate,
                                  const DeviceRates& device);

[[nodiscard]] double streaming_seconds(double bytes, const DeviceRates& device);

/// Elementwise kernels of a framework, one for each operator, in values of one tensor. Those that read rows with gaps,
/// a vector that all rows share or two types load values one by one, and are limited by instructions, not by memory
/// (PyTorch's elementwise_kernel and unrolled_elementwise_kernel beside its vectorized_elementwise_kernel).
struct Elementwise {
  double streamed = 0;      ///< values that vectorized kernels read and write
  double moved = 0;         ///< values that the others read and write
  double unvectorized = 0;  ///< values that these give, one by one
};
[[nodiscard]] double elementwise_seconds(const Elementwise& kernels, double values, double element,
                                         const DeviceRates& device);

/// Seconds of the device in each direction, and the kernels that the host issues for them.
struct Passes {
  double forward = 0;
  double backward = 0;
  int forward_kernels = 0;
  int backward_kernels = 0;
  Passes& operator+=(const Passes& other) {
    forward += other.forward;
    backward += other.backward;
    forward_kernels += other.forward_kernels;
    backward_kernels += other.backward_kernels;
    return *this;
  }
};

/// The same when the host cannot issue faster: each direction at least its kernels times host_issue. A host that waits
/// for each kernel (`blocking`) issues nothing meanwhile: its time comes on top.
[[nodiscard]] Passes host_bound(const Passes& passes, const DeviceRates& device, bool blocking = false);

/// Whether a norm gives what a linear layer reads: it may do a part of the cast to 8 or 4 bits.
enum class InputFrom { kNorm, kOther };

/// A linear layer on `rows` rows: forward rows x in x out; backward is its two own products, the input gradient
/// (rows x out x in) and the weight gradient (in x rows x out, added to a main one of `gradient` bytes a value; 0:
/// kernels of their own add it), of which those in `wanted` are worked out.
///
/// Adding reads and writes the main gradients when a tile's sum over the rows is done, and a multiprocessor has no
/// other tile of that size meanwhile: their traffic comes behind the product. On GH200 the gradients of 32 experts
/// (49,152 rows, 2,688 to 1,856 and back) take 0.81 and 0.98 ms alone, added expert by expert 1.25 and 1.14
/// (GeodesicResearch's Nemotron 3 Nano campaign): 0.45 and 0.15 more, where 1.28 GB take 0.38. Rates that were fitted
/// to whole iterations have it in them (DeviceRates::sums_behind).
[[nodiscard]] Passes linear_seconds(double rows, double in, double out, double count, double element, double gradient,
                                    double rate, const DeviceRates& device, const model::Gradients& wanted = {},
                                    InputFrom input = InputFrom::kOther);

/// The attention core of one GPU: softmax(Q K^T) V on the local heads and queries.
struct AttentionCore {
  double samples = 0;
  double heads = 0;
  double kv_heads = 0;
  double queries = 0;  ///< of one sample on this GPU
  double keys = 0;     ///< of one sample, all of them
  double visible = 0;  ///< keys a query attends to, on average
  double qk_dim = 0;
  double v_dim = 0;
  bool dropout = false;
  double steps = 1;  ///< of a ring, each of which sees its part of the keys (context parallelism)
};

/// Fused (flash) attention: forward two products over the visible pairs; backward five (recomputed scores, dV, dP, dQ,
/// dK; Dao et al., arXiv 2205.14135, algorithm 4). Traffic is Q, K, V, O and their gradients only. Kernels made for the
/// GPU's generation pay for extra keys (cluster::NativeAttention), once for each query and step of a ring.
[[nodiscard]] Passes fused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device);

/// Unfused attention: all pairs are computed, the causal half included; softmax, mask and dropout stream the scores
/// (Korthikanti et al., arXiv 2205.05198, figure 3, lists the operators).
[[nodiscard]] Passes unfused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device);

/// Keys a query sees on average among `tokens`: causal (s+1)/2; causal with window w < s: w - w(w-1)/(2s). Of a sample
/// that is packed of sequences s is the length of a token's own, and all have that length where there is a window.
[[nodiscard]] double visible_keys(const model::Attention& attention, double tokens);

/// The attention core's part of model::forward_flops: two products over the visible pairs of one sample; of a
/// recurrence its products with states.
[[nodiscard]] Flops attention_forward_flops(const model::BlockType& block);

}  // namespace tangram::cost
