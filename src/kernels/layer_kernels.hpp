// Kernels of one transformer layer. Goes in: its dimensions and what the step serves. Comes out: the kernels that a
// serving engine launches for it, in order.
#pragma once

#include <vector>

#include "graph_builder.hpp"
#include "tangram/kernels/synth.hpp"

namespace tangram::kernels {

/// What kernels of a step have in common.
struct StepShape {
  PhaseKind kind = PhaseKind::kDecode;
  std::int64_t requests = 1;
  std::int64_t context = 1;
  std::int64_t tokens = 1;         ///< that are computed
  DType precision = DType::kBf16;  ///< of weights and of products with them
  DType activation = DType::kBf16;
  bool rotary = true;  ///< positions are rotated into queries and keys

  [[nodiscard]] std::int64_t weight_bytes() const { return bytes_of(precision); }
  [[nodiscard]] std::int64_t activation_bytes() const { return bytes_of(activation); }
};

[[nodiscard]] std::vector<KernelSpec> layer_kernels(const model::BlockType& block, const StepShape& step);

/// Parts that layers and the ends of a model share.
[[nodiscard]] Use activation(std::string name, std::int64_t columns, const StepShape& step);
[[nodiscard]] Use weight(std::string name, std::int64_t parameters, const StepShape& step);
/// [tokens x columns] = [tokens x inner] times a weight: reads `in` and the weight, and touches `out`.
[[nodiscard]] KernelSpec gemm_kernel(std::string name, Part part, std::int64_t tokens, std::int64_t columns,
                                     std::int64_t inner, Use in, Use weights, const StepShape& step);
/// Moves all that it touches once.
[[nodiscard]] KernelSpec stream_kernel(std::string name, Part part, std::vector<Use> reads, std::vector<Use> writes,
                                       std::vector<Use> updates);

}  // namespace tangram::kernels
