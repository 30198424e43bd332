// Time of single kernels on one GPU. Goes in: matrix sizes or bytes, and the device's calibration. Comes out: seconds.
// Pure functions without a state; a roofline (Williams, Waterman, Patterson, CACM 52(4), 2009) with a floor:
//   matrix product     max( (F + F_half) / (peak * gemm_efficiency), bytes / (bandwidth * memory_efficiency), launch )
//   streaming kernel   max( bytes / (bandwidth * memory_efficiency), launch )
// F: 2 m n k, with m and n padded to whole tiles. F_half/(F + F_half) is the share lost to filling and draining the
// device: at F = F_half half of the sustained rate is reached.
#pragma once

#include "tangram/cluster/gpu.hpp"
#include "tangram/model/model.hpp"

namespace tangram::cost {

/// The dense peak a job of this precision computes with. A device without the format falls back to the next wider one
/// its matrix units have, because that is what its users train in: fp8 -> bf16 -> fp16 (Volta, Turing) -> fp32,
/// tf32 -> fp32. 0: the device has no peak at all.
[[nodiscard]] FlopsPerSecond matrix_peak(const cluster::GpuType& device, DType precision);

/// The format that peak is of; `precision` itself where the device has no peak at all.
[[nodiscard]] DType matrix_format(const cluster::GpuType& device, DType precision);

/// What the kernels of one device sustain in one precision.
struct DeviceRates {
  double matrix = 0;  ///< FLOP/s of a large matrix product of a linear layer
  double attention =
      0;  ///< the same inside attention and the head, which stay in 16 bits under fp8 (Transformer Engine)
  double half_size = 0;  ///< F_half, FLOPs
  double memory = 0;     ///< bytes/s of a streaming kernel
  double launch = 0;     ///< seconds, floor of one kernel
};
[[nodiscard]] DeviceRates device_rates(const cluster::GpuType& device, DType precision);

/// `count` products of m x k with k x n in one kernel (batched in attention, grouped in experts).
struct Gemm {
  double m = 0;
  double n = 0;
  double k = 0;
  double count = 1;
};

/// Seconds at `rate` FLOP/s (DeviceRates::matrix or ::attention). Inputs move once with `element` bytes a value, the
/// result with `result` bytes (a weight gradient added to a 4-byte main gradient: read and written, 8).
[[nodiscard]] double gemm_seconds(const Gemm& gemm, double element, double result, double rate,
                                  const DeviceRates& device);

[[nodiscard]] double streaming_seconds(double bytes, const DeviceRates& device);

/// One direction each; both without communication.
struct Passes {
  double forward = 0;
  double backward = 0;
  Passes& operator+=(const Passes& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

/// A linear layer on `rows` rows: forward rows x in x out; backward is its two own products, the input gradient
/// (rows x out x in) and the weight gradient (in x rows x out, accumulated in `gradient` bytes a value).
[[nodiscard]] Passes linear_seconds(double rows, double in, double out, double count, double element, double gradient,
                                    double rate, const DeviceRates& device);

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
};

/// Share of the rate of a large matrix product that a fused attention kernel reaches. FlashAttention-2 (Dao, arXiv
/// 2307.08691, section 4.1) reports up to 73 % of the A100's peak forward and up to 63 % backward, where large products
/// reach about 90 %.
inline constexpr double kFusedForwardShare = 0.80;
inline constexpr double kFusedBackwardShare = 0.70;

/// Fused (flash) attention: forward two products over the visible pairs; backward five (recomputed scores, dV, dP, dQ,
/// dK; Dao et al., arXiv 2205.14135, algorithm 4). Traffic is Q, K, V, O and their gradients only.
[[nodiscard]] Passes fused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device);

/// Unfused attention: all pairs are computed, the causal half included; softmax, mask and dropout stream the scores
/// (Korthikanti et al., arXiv 2205.05198, figure 3, lists the operators).
[[nodiscard]] Passes unfused_attention_seconds(const AttentionCore& core, double element, const DeviceRates& device);

/// Keys a query sees on average among `tokens`: causal (s+1)/2; causal with window w < s: w - w(w-1)/(2s).
[[nodiscard]] double visible_keys(const model::Attention& attention, double tokens);

/// The attention core's part of model::forward_flops: two products over the visible pairs of one sample.
[[nodiscard]] Flops attention_forward_flops(const model::BlockType& block);

}  // namespace tangram::cost
