#include "tangram/compose/links.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "tangram/cluster/slowest.hpp"

namespace tangram::compose {

namespace {

const cluster::IslandClass& class_of(const cluster::IslandLevel& level, int id) {
  return level.classes[static_cast<std::size_t>(id)];
}

// Part of a member's network cards that a shape smaller than the member may count on.
double share_of(const cluster::IslandClass& island_class, int gpus) {
  return std::min(1.0, static_cast<double>(gpus) / island_class.gpus_per_member);
}

// What parts of two members may count on of a link between these. Where the slower of the members' own networks is what
// limits it, either part has its share of its own; what lies between the members is shared like the smaller part's.
BytesPerSecond shared_bandwidth(const cluster::IslandLevel& level, const Placement& a, const Placement& b,
                                BytesPerSecond whole) {
  const cluster::IslandClass& from = class_of(level, a.island_class);
  const cluster::IslandClass& to = class_of(level, b.island_class);
  const double share_a = share_of(from, a.gpus);
  const double share_b = share_of(to, b.gpus);
  const BytesPerSecond own_a = from.between_members.bandwidth;
  const BytesPerSecond own_b = to.between_members.bandwidth;
  const BytesPerSecond of_path = whole * std::min(share_a, share_b);
  if (whole < std::min(own_a, own_b)) return of_path;
  return std::max(of_path, std::min({whole, own_a * share_a, own_b * share_b}));
}

// Both in one member: each GPU of the smaller side talks to one of the other.
cluster::Link inner_link(const cluster::IslandClass& island_class, const Placement& a, const Placement& b) {
  cluster::Link link = island_class.inside_member;
  link.bandwidth =
      cluster::bandwidth_among(island_class.device, link, 2) * static_cast<double>(std::min(a.gpus, b.gpus));
  return link;
}

bool is_known(const Placement& placement) { return placement.member != Placement::kAnyMember; }

bool is_same_member(const cluster::IslandClass& island_class, const Placement& a, const Placement& b) {
  return island_class.member_count() == 1 || (is_known(a) && a.member == b.member);
}

// Whether they may come to be in the same member.
bool may_meet(const cluster::IslandClass& island_class, const Placement& a, const Placement& b) {
  return a.gpus + b.gpus <= island_class.gpus_per_member && !(is_known(a) && is_known(b));
}

void slow_down(cluster::Link& link, const cluster::Link& other) { link = slower_of(link, other); }

}  // namespace

int members_of(const cluster::IslandLevel& level, const Placement& placement) {
  return std::max(1, placement.gpus / class_of(level, placement.island_class).gpus_per_member);
}

cluster::Link link_between(const cluster::IslandLevel& level, const Placement& a, const Placement& b) {
  const cluster::IslandClass& from = class_of(level, a.island_class);
  const bool same_class = a.island_class == b.island_class;
  if (same_class && is_same_member(from, a, b)) return inner_link(from, a, b);
  cluster::Link link = level.link(a.island_class, b.island_class);
  if (same_class) link = from.islands.size() > 1 ? from.between_islands : from.between_members;
  link.bandwidth = shared_bandwidth(level, a, b, link.bandwidth);
  // The inner link of a member can be slower than the network.
  if (same_class && may_meet(from, a, b)) slow_down(link, inner_link(from, a, b));
  return link;
}

cluster::Link slowest_link(const cluster::IslandLevel& level, const Placement& placement, const Reach& reach) {
  const cluster::IslandClass& own = class_of(level, placement.island_class);
  if (reach.in_one_member) return inner_link(own, placement, placement);
  cluster::Link slowest = link_between(level, placement, placement);
  for (const int k : reach.classes) {
    if (k == placement.island_class) continue;
    const Placement member{.island_class = k, .gpus = class_of(level, k).gpus_per_member};
    slow_down(slowest, link_between(level, placement, member));
  }
  return slowest;
}

namespace {

constexpr int kAllSubsetsClasses = 4;  // up to here any set of classes is a reach
constexpr int kMostReachClasses = 8;   // with more, only all of them and single members

// Between any two members of the classes, whole ones: for comparing links.
double speed_between(const cluster::IslandLevel& level, int a, int b) {
  const Placement from{.island_class = a, .gpus = class_of(level, a).gpus_per_member};
  const Placement to{.island_class = b, .gpus = class_of(level, b).gpus_per_member};
  return link_between(level, from, to).bandwidth.value();
}

// A set of classes around one, whose links to and among each other are all as fast: the closest ones first.
std::vector<int> joined_classes(const cluster::IslandLevel& level, int around, double least) {
  std::vector<int> others;
  for (int k = 0; k < static_cast<int>(level.classes.size()); ++k) {
    if (k != around) others.push_back(k);
  }
  std::ranges::stable_sort(others, std::ranges::greater{}, [&](int k) { return speed_between(level, around, k); });
  std::vector<int> joined{around};
  for (const int k : others) {
    const bool fast = std::ranges::all_of(joined, [&](int j) { return speed_between(level, j, k) >= least; });
    if (fast) joined.push_back(k);
  }
  std::ranges::sort(joined);
  return joined;
}

std::vector<double> speeds_between_classes(const cluster::IslandLevel& level) {
  std::set<double> speeds;
  const int classes = static_cast<int>(level.classes.size());
  for (int a = 0; a < classes; ++a) {
    for (int b = 0; b < a; ++b) speeds.insert(speed_between(level, a, b));
  }
  return {speeds.begin(), speeds.end()};
}

Reach all_classes(const cluster::IslandLevel& level) {
  Reach reach;
  for (const cluster::IslandClass& c : level.classes) reach.classes.push_back(c.id);
  return reach;
}

Reach subset_of(const cluster::IslandLevel& level, unsigned members) {
  Reach reach;
  for (const cluster::IslandClass& c : level.classes) {
    if ((members >> static_cast<unsigned>(c.id) & 1U) != 0) reach.classes.push_back(c.id);
  }
  return reach;
}

// By bandwidth; of equal ones by latency.
bool is_faster(const cluster::Link& link, const cluster::Link& than) {
  if (link.bandwidth != than.bandwidth) return link.bandwidth > than.bandwidth;
  return link.latency < than.latency;
}

}  // namespace

std::vector<Reach> reaches_of(const cluster::IslandLevel& level) {
  std::vector<Reach> reaches{all_classes(level)};
  const auto add = [&](Reach reach) {
    if (std::ranges::find(reaches, reach) == reaches.end()) reaches.push_back(std::move(reach));
  };
  const int classes = static_cast<int>(level.classes.size());
  if (classes <= kAllSubsetsClasses) {
    const unsigned all = (1U << static_cast<unsigned>(classes)) - 1;
    for (unsigned members = 1; members <= all; ++members) add(subset_of(level, members));
  } else if (classes <= kMostReachClasses) {
    for (const double least : speeds_between_classes(level)) {
      for (int k = 0; k < classes; ++k) add({joined_classes(level, k, least), false});
    }
    for (int k = 0; k < classes; ++k) add({{k}, false});
  }
  for (const cluster::IslandClass& c : level.classes) {
    if (c.member_count() > 1) add({{c.id}, true});
  }
  return reaches;
}

Reach narrowest_reach(const cluster::IslandLevel& level, std::span<const Placement> pipeline, bool in_one_member) {
  const auto holds = [&](const Reach& reach) {
    return std::ranges::all_of(
               pipeline,
               [&](const Placement& p) { return std::ranges::binary_search(reach.classes, p.island_class); }) &&
           (!reach.in_one_member || in_one_member);
  };
  const auto slowest_within = [&](const Reach& reach) {
    cluster::Link slowest = slowest_link(level, pipeline.front(), reach);
    for (const Placement& p : pipeline.subspan(1)) slow_down(slowest, slowest_link(level, p, reach));
    return slowest;
  };
  const std::vector<Reach> reaches = reaches_of(level);
  const Reach* narrowest = &reaches.front();  // all classes, which hold any pipeline
  cluster::Link fastest = slowest_within(*narrowest);
  for (const Reach& reach : std::span(reaches).subspan(1)) {
    if (!holds(reach)) continue;
    const cluster::Link slowest = slowest_within(reach);
    if (!is_faster(slowest, fastest)) continue;
    fastest = slowest;
    narrowest = &reach;
  }
  return *narrowest;
}

Handover dearest_handover(const cluster::IslandLevel& level, std::span<const Placement> from,
                          std::span<const Placement> to, Bytes bytes) {
  Handover result;
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t j = 0; j < to.size(); ++j) {
      const cluster::Link link = link_between(level, from[i], to[j]);
      const auto cost = cost::boundary_cost(bytes, link, members_of(level, from[i]), from[i].gpus,
                                            members_of(level, to[j]), to[j].gpus);
      const bool first = i == 0 && j == 0;
      if (first || cost > result.cost) result = {cost, static_cast<int>(i), static_cast<int>(j), link};
    }
  }
  return result;
}

SyncGroup sync_group_of(const cluster::IslandLevel& level, int replicas, std::span<const Placement> parts,
                        std::span<const int> in_one_member) {
  const auto placed = [&](Placement part) {
    if (std::ranges::binary_search(in_one_member, part.island_class)) part.member = 0;
    return part;
  };
  SyncGroup sync_group{replicas * static_cast<int>(parts.size()),
                       link_between(level, placed(parts.front()), placed(parts.back())),
                       members_of(level, parts.front())};
  for (const Placement& part : parts) {
    if (replicas > 1) slow_down(sync_group.link, link_between(level, placed(part), placed(part)));
    sync_group.members = std::min(sync_group.members, members_of(level, part));
  }
  return sync_group;
}

void join(const cluster::IslandLevel& level, std::span<const Placement> parts, int replicas,
          std::span<const std::vector<Placement>> stages, SyncGroup& sync_group) {
  std::size_t most_parts = 0;
  for (const std::vector<Placement>& others : stages) {
    most_parts = std::max(most_parts, others.size());
    const SyncGroup own = sync_group_of(level, replicas, others);
    if (own.holders > 1) slow_down(sync_group.link, own.link);
    sync_group.members = std::min(sync_group.members, own.members);
    for (const Placement& other : others) {
      for (const Placement& part : parts) slow_down(sync_group.link, link_between(level, part, other));
    }
  }
  sync_group.holders += replicas * static_cast<int>(most_parts);
}

Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level, const SyncGroup& sync_group,
                          const Reach& reach, std::span<const Placement> parts, const model::SliceSignature& slice,
                          Bytes volume) {
  const Nanoseconds total = cost::replica_sync(volume, sync_group.holders, sync_group.link, sync_group.members);
  if (!slice.tied_elsewhere) return total;
  const std::int64_t width = model.embedding_projection > 0 ? model.embedding_projection : model.hidden;
  const bool trained = model.end_gradients().weights;
  const Bytes table{trained ? model.vocabulary * width * model.job.gradient_bytes : 0};
  cluster::Link link = slowest_link(level, parts.front(), reach);
  for (const Placement& part : parts) slow_down(link, slowest_link(level, part, reach));
  return total + cost::replica_sync(table, 2, link, sync_group_of(level, 1, parts).members);
}

Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level, int replicas,
                          const Reach& reach, std::span<const Placement> parts, const model::SliceSignature& slice,
                          Bytes volume) {
  const SyncGroup sync_group = sync_group_of(level, replicas, parts, reach.with_replicas);
  return crossing_sync(model, level, sync_group, reach, parts, slice, volume);
}

}  // namespace tangram::compose
