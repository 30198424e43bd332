#include "parts.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace tangram::importing {

namespace {

bool has_experts(const JobStage& stage, const model::Model& model) {
  for (std::int64_t b = stage.first; b < std::min<std::int64_t>(stage.last, model.block_count()); ++b) {
    if (model.block(static_cast<int>(b)).feed_forward.is_moe()) return true;
  }
  return false;
}

cost::Strategy strategy_of(const JobStage& stage, const Replica& replica, const model::Model& model) {
  cost::Strategy strategy{stage.common, stage.policy};
  strategy.degrees.tp = replica.tp;
  strategy.degrees.dp = 1;
  strategy.degrees.sequence_parallel = stage.common.sequence_parallel && replica.tp > 1;
  if (!has_experts(stage, model)) strategy.degrees.ep = strategy.degrees.etp = 1;
  return strategy;
}

/// What follows from where the part's GPUs are.
void locate(JobPart& part, const GpuPlaces& places) {
  std::set<int> members;
  std::set<int> islands;
  for (plan::GpuSlot& gpu : part.placed.gpus) {
    const GpuPlaces::Where& where = places.of(gpu);
    gpu.island = where.island;
    members.insert(where.member);
    islands.insert(where.island);
  }
  part.placed.members = static_cast<int>(members.size());
  part.spills = islands.size() > 1;
}

/// GPUs of every member: the largest number that all of them can be divided into.
int common_count(const JobPart& part) {
  return std::gcd(static_cast<int>(part.placed.gpus.size()), part.placed.members);
}

}  // namespace

GpuPlaces::GpuPlaces(const cluster::IslandLevel& level) {
  int member = 0;
  for (const cluster::Island& island : level.islands) {
    for (const cluster::IslandMember& m : island.members) {
      if (places_.size() <= m.node) places_.resize(m.node + 1);
      auto& node = places_[m.node];
      const auto end = static_cast<std::size_t>(m.first_gpu + m.count);
      if (node.size() < end) node.resize(end);
      for (auto g = static_cast<std::size_t>(m.first_gpu); g < end; ++g)
        node[g] = {island.id, island.island_class, member};
      ++member;
    }
  }
}

const GpuPlaces::Where& GpuPlaces::of(const plan::GpuSlot& gpu) const {
  return places_[gpu.node][static_cast<std::size_t>(gpu.gpu)];
}

std::vector<JobPart> parts_of(const JobStage& stage, const std::vector<ReplicaGpus>& replicas, const GpuPlaces& places,
                              const model::Model& model) {
  std::vector<JobPart> parts;
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    const Replica& replica = stage.replicas[r];
    const int island_class = places.of(replicas[r].front()).island_class;
    const bool alike = !parts.empty() && parts.back().island_class == island_class &&
                       parts.back().strategy.degrees.tp == replica.tp &&
                       parts.back().samples == replica.samples * parts.back().strategy.degrees.dp;
    if (!alike) {
      JobPart part;
      part.island_class = island_class;
      part.strategy = strategy_of(stage, replica, model);
      part.strategy.degrees.dp = 0;
      parts.push_back(std::move(part));
    }
    JobPart& part = parts.back();
    ++part.strategy.degrees.dp;
    part.samples += replica.samples;
    part.placed.gpus.insert(part.placed.gpus.end(), replicas[r].begin(), replicas[r].end());
  }
  for (JobPart& part : parts) locate(part, places);
  return parts;
}

cluster::DeviceShape shape_of(const JobPart& part, const cluster::IslandLevel& level) {
  cluster::IslandClass island_class = level.classes[static_cast<std::size_t>(part.island_class)];
  if (part.spills) island_class.between_members = island_class.between_islands;
  const auto gpus = static_cast<int>(part.placed.gpus.size());
  const int member = island_class.gpus_per_member;
  const bool inside = part.placed.members == 1 && gpus <= member && member % gpus == 0;
  const bool whole = part.placed.members > 1 && gpus == part.placed.members * member;
  if (inside || whole) return cluster::make_shape(island_class, gpus);
  cluster::DeviceShape shape;
  shape.device = island_class.device;
  shape.nodes = part.placed.members == 1 ? 1 : common_count(part);
  shape.per_node = gpus / shape.nodes;
  shape.intra = island_class.inside_member;
  shape.inter = island_class.between_members;
  shape.inter.bandwidth = shape.inter.bandwidth * std::min(1.0, static_cast<double>(shape.per_node) / member);
  return shape;
}

}  // namespace tangram::importing
