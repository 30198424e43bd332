// Which alike members are close together. Goes in: groups of members. Comes out: partitions into islands, finest first,
// and the slowest links inside and between them.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "member_groups.hpp"

namespace tangram::cluster {

/// Islands that hold equal members in equal numbers, interchangeable by construction.
struct EqualIslands {
  std::size_t alike = 0;
  std::vector<std::vector<GroupMember>> islands;
};

using Partition = std::vector<EqualIslands>;

/// The cuts through the link hierarchy of all alike clusters, finest first. In the last all alike members that are
/// connected at all (by pairs) are together. Clusters whose hierarchy is less deep repeat their finest cut.
[[nodiscard]] std::vector<Partition> cut_hierarchy(const MemberGroups& member_groups, double tolerance);

/// Slowest links inside and between the islands of a partition, per member.
class IslandLinks {
 public:
  IslandLinks(const MemberGroups& member_groups, const Partition& partition);

  /// Between two members of one island of set i; none: it has a single member.
  [[nodiscard]] const std::optional<Link>& inside(std::size_t i) const { return inside_[i]; }
  /// Between members of different islands: of set i if j is i (none: it has a single island), else of both.
  [[nodiscard]] const std::optional<Link>& between(std::size_t i, std::size_t j) const {
    return between_[i * inside_.size() + j];
  }

 private:
  std::vector<std::optional<Link>> inside_;
  std::vector<std::optional<Link>> between_;  // sets x sets
};

}  // namespace tangram::cluster
