#include "tangram/plan/gpu_places.hpp"

#include <algorithm>
#include <iterator>

#include "tangram/base/at.hpp"

namespace tangram::plan {

GpuPlaces::GpuPlaces(const cluster::IslandLevel& level) {
  int member = 0;
  for (const cluster::Island& island : level.islands) {
    for (const cluster::IslandMember& m : island.members) {
      if (places_.size() <= m.node) places_.resize(m.node + 1);
      auto& node = places_[m.node];
      const int end = m.first_gpu + m.count;
      if (std::ssize(node) < end) node.resize(static_cast<std::size_t>(end));
      for (int g = m.first_gpu; g < end; ++g) at(node, g) = {island.id, island.island_class, member};
      ++member;
    }
  }
}

const GpuPlaces::Where& GpuPlaces::of(const GpuSlot& gpu) const { return at(places_[gpu.node], gpu.gpu); }

Spread locate(PlacedPart& part, const GpuPlaces& places) {
  Spread spread;
  std::set<int> members;
  std::set<int> islands;
  for (GpuSlot& gpu : part.gpus) {
    const GpuPlaces::Where& where = places.of(gpu);
    gpu.island = where.island;
    members.insert(where.member);
    islands.insert(where.island);
    spread.classes.insert(where.island_class);
  }
  // Five GPUs of two members count as five members of one, between which the links are not better than they are.
  const auto gpus = static_cast<int>(part.gpus.size());
  part.members = static_cast<int>(members.size());
  part.member = members.size() == 1 ? *members.begin() : -1;
  while (gpus % part.members != 0) ++part.members;
  spread.spills = islands.size() > 1;
  return spread;
}

cluster::DeviceShape shape_of(const PlacedPart& part, cluster::IslandClass island_class, bool spills) {
  if (spills) island_class.between_members = island_class.between_islands;
  const auto gpus = static_cast<int>(part.gpus.size());
  const int member = island_class.gpus_per_member;
  const bool inside = part.members == 1 && gpus <= member;
  const bool whole = part.members > 1 && gpus == part.members * member;
  if (inside || whole) return cluster::make_shape(island_class, gpus);
  cluster::DeviceShape shape;
  shape.device = island_class.device;
  shape.nodes = part.members;
  shape.per_node = gpus / shape.nodes;
  shape.intra = island_class.inside_member;
  shape.inter = island_class.between_members;
  // Of a node's network its GPUs have their share.
  std::set<std::size_t> nodes;
  for (const GpuSlot& gpu : part.gpus) nodes.insert(gpu.node);
  const double on_each = static_cast<double>(gpus) / static_cast<double>(nodes.size());
  shape.inter.bandwidth = shape.inter.bandwidth * std::min(1.0, on_each / member);
  return shape;
}

cluster::DeviceShape shape_of(const LaunchPlan& plan, const Part& part) {
  const PlanIsland& island = plan.island(part.island);
  cluster::DeviceShape shape;
  shape.device = island.device;
  shape.nodes = part.members;
  shape.per_node = part.strategy.degrees.gpus() / part.members;
  shape.intra = island.inside_member;
  shape.inter = island.between_members;
  return shape;
}

}  // namespace tangram::plan
