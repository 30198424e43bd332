#include "tangram/cluster/slowest.hpp"

#include <algorithm>
#include <optional>

namespace tangram::cluster {

namespace {

// Of two limits, 0 where there is none: a switch beside a mesh, heads of any width, kernels that memory alone limits.
template <class T>
T stricter(T a, T b) {
  return a > T(0) && b > T(0) ? std::min(a, b) : std::max(a, b);
}

// A GPU without figures has kernels of all generations alone.
std::optional<NativeAttention> slower_kernels(const std::optional<NativeAttention>& a,
                                              const std::optional<NativeAttention>& b) {
  if (!a || !b) return std::nullopt;
  NativeAttention slower = *a;
  slower.forward = std::min(a->forward, b->forward);
  slower.backward = std::min(a->backward, b->backward);
  slower.forward_extra_keys = std::max(a->forward_extra_keys, b->forward_extra_keys);
  slower.backward_extra_keys = std::max(a->backward_extra_keys, b->backward_extra_keys);
  slower.head_dim_multiple = std::max(a->head_dim_multiple, b->head_dim_multiple);
  slower.forward_extra_head_dim = std::max(a->forward_extra_head_dim, b->forward_extra_head_dim);
  slower.backward_extra_head_dim = std::max(a->backward_extra_head_dim, b->backward_extra_head_dim);
  slower.forward_least_head_dim = std::max(a->forward_least_head_dim, b->forward_least_head_dim);
  slower.backward_least_head_dim = std::max(a->backward_least_head_dim, b->backward_least_head_dim);
  slower.widest_value_dim = stricter(a->widest_value_dim, b->widest_value_dim);
  slower.early_forward_extra_keys = std::max(a->early_forward_extra_keys, b->early_forward_extra_keys);
  slower.early_backward_extra_keys = std::max(a->early_backward_extra_keys, b->early_backward_extra_keys);
  return slower;
}

std::optional<FusedKernels> slower_kernels(const std::optional<FusedKernels>& a, const std::optional<FusedKernels>& b) {
  if (!a || !b) return std::nullopt;
  FusedKernels slower = *a;
  slower.gemm_efficiency = std::min(a->gemm_efficiency, b->gemm_efficiency);
  slower.fp8_efficiency = std::min(a->fp8_efficiency, b->fp8_efficiency);
  slower.fp4_efficiency = std::min(a->share_of(DType::kFp4), b->share_of(DType::kFp4));
  slower.memory_efficiency = std::min(a->memory_efficiency, b->memory_efficiency);
  return slower;
}

}  // namespace

Link slower_of(const Link& a, const Link& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency), std::max(a.ramp, b.ramp)};
}

GpuType slower_of(const GpuType& a, const GpuType& b) {
  GpuType slower = a;
  if (a.architecture != b.architecture) slower.architecture.clear();  // what one generation alone can do, neither does
  slower.multiprocessors = std::min(a.multiprocessors, b.multiprocessors);
  slower.memory = std::min(a.memory, b.memory);
  slower.reserved = std::max(a.reserved, b.reserved);
  slower.memory_bandwidth = std::min(a.memory_bandwidth, b.memory_bandwidth);
  for (std::size_t i = 0; i < slower.peak.size(); ++i) slower.peak[i] = std::min(a.peak[i], b.peak[i]);
  slower.peer_link = slower_of(a.peer_link, b.peer_link);
  slower.peer_pair = stricter(a.peer_pair, b.peer_pair);
  slower.pcie = slower_of(a.pcie, b.pcie);
  slower.compute.gemm_efficiency = std::min(a.compute.gemm_efficiency, b.compute.gemm_efficiency);
  slower.compute.attention_forward = std::min(a.compute.attention_forward, b.compute.attention_forward);
  slower.compute.attention_backward = std::min(a.compute.attention_backward, b.compute.attention_backward);
  slower.compute.native_attention = slower_kernels(a.compute.native_attention, b.compute.native_attention);
  slower.compute.fused_kernels = slower_kernels(a.compute.fused_kernels, b.compute.fused_kernels);
  slower.compute.host_issue = std::max(a.compute.host_issue, b.compute.host_issue);
  slower.compute.unvectorized_values = stricter(a.compute.unvectorized_values, b.compute.unvectorized_values);
  slower.compute.memory_efficiency = std::min(a.compute.memory_efficiency, b.compute.memory_efficiency);
  slower.compute.kernel_launch = std::max(a.compute.kernel_launch, b.compute.kernel_launch);
  slower.price_per_hour = std::max(a.price_per_hour, b.price_per_hour);
  return slower;
}

}  // namespace tangram::cluster
