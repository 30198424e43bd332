// Which islands a planner may exchange. Goes in: a partition. Comes out: a level with islands, classes and links, still
// without names; and what the names are made of.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "partition.hpp"

namespace tangram::cluster {

/// What tells a class apart from others, beside what IslandClass says.
struct ClassFacts {
  std::size_t alike = 0;
  MemberMetrics metrics;           ///< the worst of its members
  std::vector<std::size_t> nodes;  ///< ascending, each once
};

struct UnnamedLevel {
  IslandLevel level;
  std::vector<ClassFacts> facts;  ///< by class
};

/// Sets of `partition` that are one class: same alike cluster, same number of members, same link inside, and the same
/// link to every other island (links within the tolerance count as the same). Exchanging two islands of a class then
/// changes no link, so that counting them loses nothing.
[[nodiscard]] std::vector<std::vector<std::size_t>> interchangeable_sets(const Partition& partition,
                                                                         const IslandLinks& links, double tolerance);

[[nodiscard]] UnnamedLevel build_level(const MemberGroups& member_groups, const Partition& partition, double tolerance);

}  // namespace tangram::cluster
