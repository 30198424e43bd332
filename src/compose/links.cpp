#include "tangram/compose/links.hpp"

#include <algorithm>

namespace tangram::compose {

namespace {

const cluster::IslandClass& class_of(const cluster::IslandLevel& level, int id) {
  return level.classes[static_cast<std::size_t>(id)];
}

// Part of a member's network cards that a shape smaller than the member may count on.
double share_of(const cluster::IslandClass& island_class, int gpus) {
  return std::min(1.0, static_cast<double>(gpus) / island_class.gpus_per_member);
}

/// Where replicas and the parts of a stage meet.
cluster::Link meeting_link(const cluster::IslandLevel& level, int replicas, std::span<const Placement> parts) {
  cluster::Link link = link_between(level, parts.front(), parts.back());
  if (replicas == 1) return link;
  for (const Placement& part : parts) {
    const cluster::Link own = link_between(level, part, part);
    link.bandwidth = std::min(link.bandwidth, own.bandwidth);
    link.latency = std::max(link.latency, own.latency);
  }
  return link;
}

int narrowest(const cluster::IslandLevel& level, std::span<const Placement> parts) {
  int members = members_of(level, parts.front());
  for (const Placement& part : parts) members = std::min(members, members_of(level, part));
  return members;
}

}  // namespace

int members_of(const cluster::IslandLevel& level, const Placement& placement) {
  return std::max(1, placement.gpus / class_of(level, placement.island_class).gpus_per_member);
}

cluster::Link link_between(const cluster::IslandLevel& level, const Placement& a, const Placement& b) {
  const cluster::IslandClass& from = class_of(level, a.island_class);
  if (a.island_class == b.island_class && from.member_count() == 1) {
    cluster::Link link = from.inside_member;  // each GPU of the smaller side talks to one of the other
    link.bandwidth = cluster::bandwidth_among(from.device, link, 2) * static_cast<double>(std::min(a.gpus, b.gpus));
    return link;
  }
  cluster::Link link = level.link(a.island_class, b.island_class);
  if (a.island_class == b.island_class) link = from.islands.size() > 1 ? from.between_islands : from.between_members;
  const double share = std::min(share_of(from, a.gpus), share_of(class_of(level, b.island_class), b.gpus));
  link.bandwidth = link.bandwidth * share;
  return link;
}

cluster::Link slowest_link(const cluster::IslandLevel& level, const Placement& placement) {
  cluster::Link slowest = link_between(level, placement, placement);
  for (int k = 0; k < static_cast<int>(level.classes.size()); ++k) {
    if (k == placement.island_class) continue;
    const cluster::Link link = link_between(level, placement, {k, class_of(level, k).gpus_per_member});
    slowest.bandwidth = std::min(slowest.bandwidth, link.bandwidth);
    slowest.latency = std::max(slowest.latency, link.latency);
  }
  return slowest;
}

Handover dearest_handover(const cluster::IslandLevel& level, std::span<const Placement> from,
                          std::span<const Placement> to, Bytes bytes) {
  Handover result;
  for (std::size_t i = 0; i < from.size(); ++i) {
    for (std::size_t j = 0; j < to.size(); ++j) {
      const auto cost = cost::boundary_cost(bytes, link_between(level, from[i], to[j]), members_of(level, from[i]),
                                            from[i].gpus, members_of(level, to[j]), to[j].gpus);
      const bool first = i == 0 && j == 0;
      if (first || cost > result.cost) result = {cost, static_cast<int>(i), static_cast<int>(j)};
    }
  }
  return result;
}

Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level, int replicas,
                          std::span<const Placement> parts, const model::SliceSignature& slice, Bytes volume) {
  Nanoseconds total{0};
  const int holders = replicas * static_cast<int>(parts.size());
  if (holders > 1) {
    total += cost::replica_sync(volume, holders, meeting_link(level, replicas, parts), narrowest(level, parts));
  }
  if (!slice.tied_elsewhere) return total;
  const std::int64_t width = model.embedding_projection > 0 ? model.embedding_projection : model.hidden;
  const Bytes table{model.vocabulary * width * model.job.gradient_bytes};
  cluster::Link link = slowest_link(level, parts.front());
  for (const Placement& part : parts) {
    const cluster::Link other = slowest_link(level, part);
    link.bandwidth = std::min(link.bandwidth, other.bandwidth);
    link.latency = std::max(link.latency, other.latency);
  }
  return total + cost::replica_sync(table, 2, link, narrowest(level, parts));
}

}  // namespace tangram::compose
