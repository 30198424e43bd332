#include "member_metrics.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "linkage.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::cluster {

namespace {

double sustained_flops(const GpuType& device) {
  double peak = std::max(device.peak_of(DType::kFp16).value(), device.peak_of(DType::kBf16).value());
  for (const FlopsPerSecond& other : device.peak) {
    if (peak <= 0) peak = other.value();
  }
  return peak * device.compute.gemm_efficiency;
}

unsigned supported_dtypes(const GpuType& device) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < device.peak.size(); ++i) {
    if (device.peak[i].value() > 0) bits |= 1U << i;
  }
  return bits;
}

// Members that can be alike at all: what must be equal is. A metric that is zero has no logarithm and is alike only to
// zero.
using ExactKey = std::tuple<std::string, int, unsigned, unsigned>;

ExactKey exact_key_of(const MemberMetrics& member) {
  unsigned present = 0;
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    if (member.values[i] > 0) present |= 1U << i;
  }
  return {member.vendor, member.gpus, member.dtypes, present};
}

Eigen::MatrixXd log_distances(const std::vector<MemberMetrics>& members) {
  const auto count = static_cast<Eigen::Index>(members.size());
  Eigen::ArrayXXd logs(static_cast<Eigen::Index>(kMetricCount), count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index k = 0; k < logs.rows(); ++k) {
      const double value = at(at(members, i).values, k);
      logs(k, i) = value > 0 ? std::log(value) : 0.0;
    }
  }
  Eigen::MatrixXd distances(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) distances(i, j) = (logs.col(i) - logs.col(j)).abs().maxCoeff();
  }
  return distances;
}

std::vector<std::vector<MemberMetrics>> clusters_within(const std::vector<MemberMetrics>& distinct, double tolerance) {
  std::vector<EqualClusters> rows;
  rows.reserve(distinct.size());
  for (std::size_t i = 0; i < distinct.size(); ++i) rows.push_back({{i}});
  CompleteLinkage linkage(log_distances(distinct), std::move(rows));
  linkage.merge_within(allowed_distance(tolerance));

  std::vector<std::vector<MemberMetrics>> clusters;
  for (const EqualClusters& row : linkage.clusters()) {
    std::vector<MemberMetrics> cluster;
    for (const std::size_t i : row.front()) cluster.push_back(distinct[i]);
    clusters.push_back(std::move(cluster));
  }
  return clusters;
}

// Fastest first; what is left undecided by the numbers is decided by what must be equal.
bool before(const MemberMetrics& a, const MemberMetrics& b) {
  return std::tie(b.values, b.gpus, a.vendor, b.dtypes) < std::tie(a.values, a.gpus, b.vendor, a.dtypes);
}

}  // namespace

MemberMetrics metrics_of(const Node& node, const DeviceGroup& group) {
  MemberMetrics metrics;
  metrics.vendor = group.device.vendor;
  metrics.gpus = group.clique;
  metrics.dtypes = supported_dtypes(group.device);
  int gpus_of_node = 0;
  for (const DeviceGroup& other : node.groups) gpus_of_node += other.count;
  metrics.values = {sustained_flops(group.device), group.device.usable().as_double(),
                    group.device.memory_bandwidth.value(), group.clique > 1 ? group.link.bandwidth.value() : 0.0,
                    node.network.bandwidth.value() * group.clique / gpus_of_node};
  return metrics;
}

MemberMetrics slower_of(const MemberMetrics& a, const MemberMetrics& b) {
  MemberMetrics slower = a;
  for (std::size_t i = 0; i < kMetricCount; ++i) slower.values[i] = std::min(a.values[i], b.values[i]);
  return slower;
}

double allowed_distance(double tolerance) {
  TANGRAM_ASSERT(tolerance >= 0 && tolerance < 1);
  constexpr double kRounding = 1e-9;  // 90 is within 10 % of 100, whatever the last bit of the logarithms
  return -std::log1p(-tolerance) + kRounding;
}

std::vector<std::size_t> alike_clusters(std::span<const MemberMetrics> members, double tolerance) {
  std::map<ExactKey, std::vector<MemberMetrics>> by_key;
  for (const MemberMetrics& member : members) by_key[exact_key_of(member)].push_back(member);

  std::vector<std::vector<MemberMetrics>> clusters;
  for (auto& [key, group] : by_key) {
    std::sort(group.begin(), group.end());
    group.erase(std::unique(group.begin(), group.end()), group.end());
    for (auto& cluster : clusters_within(group, tolerance)) clusters.push_back(std::move(cluster));
  }
  const auto worst = [](const std::vector<MemberMetrics>& cluster) {
    return std::accumulate(cluster.begin(), cluster.end(), cluster.front(), slower_of);
  };
  std::sort(clusters.begin(), clusters.end(), [&](const auto& a, const auto& b) {
    const MemberMetrics worst_a = worst(a);
    const MemberMetrics worst_b = worst(b);
    if (before(worst_a, worst_b) || before(worst_b, worst_a)) return before(worst_a, worst_b);
    return a < b;
  });

  std::map<MemberMetrics, std::size_t> number;
  for (std::size_t i = 0; i < clusters.size(); ++i) {
    for (const MemberMetrics& metrics : clusters[i]) number.emplace(metrics, i);
  }
  std::vector<std::size_t> result;
  for (const MemberMetrics& member : members) result.push_back(number.at(member));
  return result;
}

}  // namespace tangram::cluster
