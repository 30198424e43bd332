// What makes two members alike. Goes in: groups of nodes. Comes out: clusters of members whose metrics differ by no
// more than the tolerance.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/cluster/fleet.hpp"

namespace tangram::cluster {

enum class Metric : std::uint8_t { kCompute, kMemory, kMemoryBandwidth, kInsideLink, kNetwork };
inline constexpr std::size_t kMetricCount = 5;

/// A member in numbers. GPUs of different vendors, with different number formats or in different numbers never work as
/// one homogeneous group, however near the rest is.
struct MemberMetrics {
  std::string vendor;
  int gpus = 0;
  unsigned dtypes = 0;                        ///< bit per DType that the matrix units support
  std::array<double, kMetricCount> values{};  ///< by Metric: FLOP/s, bytes, bytes/s x 3

  [[nodiscard]] double value(Metric metric) const { return at(values, metric); }
  auto operator<=>(const MemberMetrics&) const = default;
};

/// Sustained FLOP/s: best dense 16-bit peak x gemm_efficiency. Memory: what a plan may use. Network: the member's share
/// of the node's cards, in proportion to its GPUs.
[[nodiscard]] MemberMetrics metrics_of(const Node& node, const DeviceGroup& group);

/// The smaller value of each metric.
[[nodiscard]] MemberMetrics slower_of(const MemberMetrics& a, const MemberMetrics& b);

/// |log a - log b| up to which two quantities count as alike: their ratio is at least 1 - tolerance.
[[nodiscard]] double allowed_distance(double tolerance);

/// Number of the cluster of each member; cluster 0 is the fastest.
[[nodiscard]] std::vector<std::size_t> alike_clusters(std::span<const MemberMetrics> members, double tolerance);

}  // namespace tangram::cluster
