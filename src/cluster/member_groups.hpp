// The members of a fleet, counted. Goes in: a fleet and a tolerance. Comes out: groups of members that nothing
// but their host's name tells apart, and the links between them, so that 10,000 GPUs in a few kinds of nodes cost no
// more than a few nodes.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

#include "member_metrics.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cluster/slowest.hpp"

namespace tangram::cluster {

/// The n-th clique of one group in each of some interchangeable nodes: one member per node.
struct MemberGroup {
  std::size_t kind = 0;  ///< of its nodes
  std::size_t group = 0;
  int clique = 0;
  std::size_t alike = 0;  ///< cluster of alike members
  MemberMetrics metrics;
  std::vector<std::size_t> nodes;  ///< ascending
  double share = 1;                ///< of its node's GPUs, hence of its network

  [[nodiscard]] int gpus() const { return metrics.gpus; }
};

/// One member: a group and which of its nodes.
struct GroupMember {
  std::size_t member_group = 0;
  std::size_t node = 0;
  bool operator==(const GroupMember&) const = default;
};

/// Time of one boundary-sized message decides which of two links is faster: bytes/s with the latency in it. 32 MiB is a
/// microbatch of 4,096 tokens at width 4,096 in 16 bit; a wide-area link of the same bandwidth ranks behind a local
/// one.
[[nodiscard]] double message_rate(const Link& link);

class MemberGroups {
 public:
  MemberGroups(const Fleet& fleet, double tolerance);

  [[nodiscard]] const std::vector<MemberGroup>& all() const { return groups_; }
  [[nodiscard]] const MemberGroup& operator[](std::size_t i) const { return groups_[i]; }
  [[nodiscard]] std::size_t alike_count() const { return alike_count_; }
  [[nodiscard]] const Fleet& fleet() const { return *fleet_; }

  /// Per member, between members of two groups on the same node.
  [[nodiscard]] Link on_host(const MemberGroup& a, const MemberGroup& b) const;
  /// Per member, between members of two groups (or one) on different nodes.
  [[nodiscard]] Link across(const MemberGroup& a, const MemberGroup& b) const;

  [[nodiscard]] IslandMember island_member(const GroupMember& member) const;

 private:
  void find_alike(double tolerance);
  void split_uneven_kinds();
  [[nodiscard]] bool uniform(const MemberGroup& member_group) const;

  const Fleet* fleet_;
  std::vector<std::vector<std::size_t>> kinds_;  // nodes of each kind
  std::vector<Link> between_kinds_;              // kinds x kinds, per node; diagonal: two nodes of the kind
  std::vector<MemberGroup> groups_;
  std::size_t alike_count_ = 0;
};

}  // namespace tangram::cluster
