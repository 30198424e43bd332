// How long a kernel takes. Goes in: tables of measured times, an operator, its shape, a GPU. Comes out: a time, with
// where it comes from and how far it may be off: the row of that shape first, its neighbours second, the roofline last.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "tangram/kernels/kernel_graph.hpp"
#include "tangram/kernels/operator_table.hpp"

namespace tangram::kernels {

/// How far a measured time is from another measurement of the same: the products of H100 and H200, which have the same
/// processor, differ where they are bound by it (m >= 2048) by 4.4 % in the median, sqrt(2) times what one is off.
inline constexpr double kRepeatError = 0.031;

/// The error of an interpolated time is that of rows held out on each of its axes; errors of several axes add up like
/// independent ones, which is not below what rows show that are held out on two at once.
class KernelCosts {
 public:
  /// Of several tables of one operator the first with rows of the GPU counts. All have an inference part.
  explicit KernelCosts(std::vector<OperatorTable> tables) : tables_(std::move(tables)) {}

  /// None where no table is of the operator (products by chunks without one get a roofline of attention and streams),
  /// or the GPU cannot compute in `dtype`. Tables of bf16 are those of fp16 too, at which matrix units run as fast;
  /// other formats get the roofline at their own peak.
  [[nodiscard]] std::optional<KernelTime> time(Operator op, std::span<const std::int64_t> shape, DType dtype,
                                               const cluster::GpuType& gpu) const;

 private:
  [[nodiscard]] std::optional<KernelTime> time_of_chunk_products(std::span<const std::int64_t> shape, DType dtype,
                                                                 const cluster::GpuType& gpu) const;
  [[nodiscard]] const OperatorTable* table_for(Operator op, const std::string& gpu) const;

  std::vector<OperatorTable> tables_;
};

}  // namespace tangram::kernels
