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

// Both in one member: each GPU of the smaller side talks to one of the other.
cluster::Link inner_link(const cluster::IslandClass& island_class, const Placement& a, const Placement& b) {
  cluster::Link link = island_class.inside_member;
  link.bandwidth =
      cluster::bandwidth_among(island_class.device, link, 2) * static_cast<double>(std::min(a.gpus, b.gpus));
  return link;
}

void slow_down(cluster::Link& link, const cluster::Link& other) {
  link.bandwidth = std::min(link.bandwidth, other.bandwidth);
  link.latency = std::max(link.latency, other.latency);
}

}  // namespace

int members_of(const cluster::IslandLevel& level, const Placement& placement) {
  return std::max(1, placement.gpus / class_of(level, placement.island_class).gpus_per_member);
}

cluster::Link link_between(const cluster::IslandLevel& level, const Placement& a, const Placement& b) {
  const cluster::IslandClass& from = class_of(level, a.island_class);
  const bool same_class = a.island_class == b.island_class;
  if (same_class && from.member_count() == 1) return inner_link(from, a, b);
  cluster::Link link = level.link(a.island_class, b.island_class);
  if (same_class) link = from.islands.size() > 1 ? from.between_islands : from.between_members;
  const double share = std::min(share_of(from, a.gpus), share_of(class_of(level, b.island_class), b.gpus));
  link.bandwidth = link.bandwidth * share;
  // Parts of a member may come to sit in the same one, whose inner link can be slower than the network.
  if (same_class && a.gpus + b.gpus <= from.gpus_per_member) slow_down(link, inner_link(from, a, b));
  return link;
}

cluster::Link slowest_link(const cluster::IslandLevel& level, const Placement& placement) {
  cluster::Link slowest = link_between(level, placement, placement);
  for (int k = 0; k < static_cast<int>(level.classes.size()); ++k) {
    if (k == placement.island_class) continue;
    const cluster::Link link = link_between(level, placement, {k, class_of(level, k).gpus_per_member});
    slow_down(slowest, link);
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

Meeting meeting_of(const cluster::IslandLevel& level, int replicas, std::span<const Placement> parts) {
  Meeting meeting{replicas * static_cast<int>(parts.size()), link_between(level, parts.front(), parts.back()),
                  members_of(level, parts.front())};
  for (const Placement& part : parts) {
    if (replicas > 1) slow_down(meeting.link, link_between(level, part, part));
    meeting.members = std::min(meeting.members, members_of(level, part));
  }
  return meeting;
}

void join(const cluster::IslandLevel& level, std::span<const Placement> parts, int replicas,
          std::span<const std::vector<Placement>> stages, Meeting& meeting) {
  std::size_t most_parts = 0;
  for (const std::vector<Placement>& others : stages) {
    most_parts = std::max(most_parts, others.size());
    const Meeting own = meeting_of(level, replicas, others);
    if (own.holders > 1) slow_down(meeting.link, own.link);
    meeting.members = std::min(meeting.members, own.members);
    for (const Placement& other : others) {
      for (const Placement& part : parts) slow_down(meeting.link, link_between(level, part, other));
    }
  }
  meeting.holders += replicas * static_cast<int>(most_parts);
}

Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level, const Meeting& meeting,
                          std::span<const Placement> parts, const model::SliceSignature& slice, Bytes volume) {
  const Nanoseconds total = cost::replica_sync(volume, meeting.holders, meeting.link, meeting.members);
  if (!slice.tied_elsewhere) return total;
  const std::int64_t width = model.embedding_projection > 0 ? model.embedding_projection : model.hidden;
  const Bytes table{model.vocabulary * width * model.job.gradient_bytes};
  cluster::Link link = slowest_link(level, parts.front());
  for (const Placement& part : parts) slow_down(link, slowest_link(level, part));
  return total + cost::replica_sync(table, 2, link, meeting_of(level, 1, parts).members);
}

Nanoseconds crossing_sync(const model::Model& model, const cluster::IslandLevel& level, int replicas,
                          std::span<const Placement> parts, const model::SliceSignature& slice, Bytes volume) {
  return crossing_sync(model, level, meeting_of(level, replicas, parts), parts, slice, volume);
}

}  // namespace tangram::compose
