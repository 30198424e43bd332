// The operators of inference whose kernels are timed. Goes in: an operator and its shape. Comes out: the work that it
// cannot do without, which a roofline divides by the rates of a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tangram/base/dtype.hpp"

namespace tangram::kernels {

/// With the numbers of their shapes.
enum class Operator : std::uint8_t {
  kGemm,              ///< m, n, k: [m x k] times [k x n]
  kAttentionDecode,   ///< batch, context, heads, kv_heads, head_dim: one query for each of batch
  kAttentionPrefill,  ///< batch, tokens, heads, kv_heads, head_dim: causal, all queries
  kExperts,           ///< tokens, hidden, intermediate, topk, experts: all products of the routed experts, gated
  kChunkProducts,     ///< products, m, n, k, bytes: so many [m x k] times [k x n] of a recurrence by chunks, and what
                      ///< they read and write in all
  kStream,            ///< bytes: a kernel that reads and writes so many and computes next to nothing
};
inline constexpr int kOperatorCount = 6;

[[nodiscard]] std::string_view to_string(Operator op);  ///< "gemm", ...
/// In the order of their values.
[[nodiscard]] std::span<const std::string_view> operator_names();
/// What the numbers of a shape are called, in their order.
[[nodiscard]] std::span<const std::string_view> shape_names(Operator op);

struct Work {
  double flops = 0;  ///< of matrix units
  double bytes = 0;  ///< read and written once, of memory
};

/// `shape` has as many numbers as shape_names, each at least 1. Experts: those that tokens x topk uniform draws hit are
/// read, experts (1 - (1 - topk / experts)^tokens) in the mean.
[[nodiscard]] Work work_of(Operator op, std::span<const std::int64_t> shape, DType dtype);

}  // namespace tangram::kernels
