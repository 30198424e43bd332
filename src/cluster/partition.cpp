#include "partition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "linkage.hpp"
#include "tangram/base/at.hpp"

namespace tangram::cluster {

namespace {

std::vector<std::size_t> groups_of(const MemberGroups& member_groups, std::size_t alike) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < member_groups.all().size(); ++i) {
    if (member_groups[i].alike == alike) result.push_back(i);
  }
  return result;
}

// Groups of the same nodes merge host by host, see MemberGroups::uniform.
double link_distance(const MemberGroups& member_groups, std::size_t i, std::size_t j) {
  const MemberGroup& a = member_groups[i];
  const MemberGroup& b = member_groups[j];
  const bool on_host = i != j && a.kind == b.kind && a.nodes == b.nodes;
  const double rate = message_rate(on_host ? member_groups.on_host(a, b) : member_groups.across(a, b));
  return rate > 0 ? -std::log(rate) : std::numeric_limits<double>::infinity();
}

Eigen::MatrixXd link_distances(const MemberGroups& member_groups, const std::vector<std::size_t>& members) {
  const auto count = static_cast<Eigen::Index>(members.size());
  Eigen::MatrixXd distances(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = i; j < count; ++j) {
      const double distance = link_distance(member_groups, at(members, i), at(members, j));
      distances(i, j) = distances(j, i) = distance;
    }
  }
  return distances;
}

Partition partition_of(const CompleteLinkage& linkage, const std::vector<GroupMember>& items, std::size_t alike) {
  Partition partition;
  for (const EqualClusters& clusters : linkage.clusters()) {
    EqualIslands equal{alike, {}};
    for (const ItemSet& set : clusters) {
      std::vector<GroupMember> island;
      for (const std::size_t item : set) island.push_back(items[item]);
      equal.islands.push_back(std::move(island));
    }
    partition.push_back(std::move(equal));
  }
  return partition;
}

// Merges tier by tier: a tier starts at the fastest link that still separates two clusters and takes in all that are
// alike to it.
std::vector<Partition> cuts_of(const MemberGroups& member_groups, std::size_t alike, double tolerance) {
  const std::vector<std::size_t> members = groups_of(member_groups, alike);
  std::vector<GroupMember> items;
  std::vector<EqualClusters> rows;
  for (const std::size_t member_group : members) {
    EqualClusters row;
    for (const std::size_t node : member_groups[member_group].nodes) {
      row.push_back({items.size()});
      items.push_back({member_group, node});
    }
    rows.push_back(std::move(row));
  }
  CompleteLinkage linkage(link_distances(member_groups, members), std::move(rows));

  std::vector<Partition> cuts;
  while (std::isfinite(linkage.next_distance())) {
    linkage.merge_within(linkage.next_distance() + allowed_distance(tolerance));
    cuts.push_back(partition_of(linkage, items, alike));
  }
  if (cuts.empty()) cuts.push_back(partition_of(linkage, items, alike));
  return cuts;
}

/// Where the members of one group lie: (node, number of the island), by node.
using Place = std::pair<std::size_t, std::size_t>;
using Places = std::vector<Place>;
using PlacesByGroup = std::vector<std::pair<std::size_t, Places>>;

// Whether some pair of places (one of each list, sorted by node) that `counts` lies on one node.
template <class Counts>
bool share_a_node(const Places& a, const Places& b, Counts counts) {
  auto it = b.begin();
  for (const auto& [node, island] : a) {
    while (it != b.end() && it->first < node) ++it;
    if (it != b.end() && it->first == node && counts(island, it->second)) return true;
  }
  return false;
}

// The same for two different nodes. Fast, since nearly every pair does: only lists of one place hold out.
template <class Counts>
bool lie_on_two_nodes(const Places& a, const Places& b, Counts counts) {
  for (const Place& x : a) {
    for (const Place& y : b) {
      if (x.first != y.first && counts(x.second, y.second)) return true;
    }
  }
  return false;
}

PlacesByGroup places_of(const EqualIslands& equal, std::size_t islands) {
  std::map<std::size_t, Places> places;
  for (std::size_t i = 0; i < islands; ++i) {
    for (const GroupMember& member : equal.islands[i]) places[member.member_group].emplace_back(member.node, i);
  }
  for (auto& [member_group, list] : places) std::sort(list.begin(), list.end());
  return {places.begin(), places.end()};
}

constexpr auto kAny = [](std::size_t, std::size_t) { return true; };
constexpr auto kTwoIslands = [](std::size_t a, std::size_t b) { return a != b; };

// Over the pairs of members whose islands' numbers `counts` accepts; none: there is no such pair.
template <class Counts>
std::optional<Link> slowest(const MemberGroups& member_groups, const PlacesByGroup& a, const PlacesByGroup& b,
                            Counts counts) {
  std::optional<Link> result;
  const auto take = [&](const Link& link) { result = result ? slower_of(*result, link) : link; };
  for (const auto& [i, places_a] : a) {
    for (const auto& [j, places_b] : b) {
      const bool same_kind = member_groups[i].kind == member_groups[j].kind;
      if (same_kind && i != j && share_a_node(places_a, places_b, counts))
        take(member_groups.on_host(member_groups[i], member_groups[j]));
      if (lie_on_two_nodes(places_a, places_b, counts)) take(member_groups.across(member_groups[i], member_groups[j]));
    }
  }
  return result;
}

}  // namespace

std::vector<Partition> cut_hierarchy(const MemberGroups& member_groups, double tolerance) {
  std::vector<std::vector<Partition>> cuts;
  std::size_t depth = 0;
  for (std::size_t alike = 0; alike < member_groups.alike_count(); ++alike) {
    cuts.push_back(cuts_of(member_groups, alike, tolerance));
    depth = std::max(depth, cuts.back().size());
  }
  std::vector<Partition> levels(depth);
  for (std::size_t level = 0; level < depth; ++level) {
    for (const std::vector<Partition>& own : cuts) {
      const std::size_t coarser = depth - 1 - level;
      const Partition& cut = own[own.size() - 1 - std::min(coarser, own.size() - 1)];
      levels[level].insert(levels[level].end(), cut.begin(), cut.end());
    }
  }
  return levels;
}

IslandLinks::IslandLinks(const MemberGroups& member_groups, const Partition& partition) {
  std::vector<PlacesByGroup> places;
  for (const EqualIslands& equal : partition) {
    const PlacesByGroup first = places_of(equal, 1);
    inside_.push_back(slowest(member_groups, first, first, kAny));
    places.push_back(places_of(equal, equal.islands.size()));
  }
  between_.resize(partition.size() * partition.size());
  for (std::size_t i = 0; i < partition.size(); ++i) {
    between_[i * partition.size() + i] = slowest(member_groups, places[i], places[i], kTwoIslands);
    for (std::size_t j = i + 1; j < partition.size(); ++j) {
      const auto link = slowest(member_groups, places[i], places[j], kAny);
      between_[i * partition.size() + j] = between_[j * partition.size() + i] = link;
    }
  }
}

}  // namespace tangram::cluster
