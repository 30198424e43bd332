#include "links.hpp"

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

}  // namespace tangram::compose
