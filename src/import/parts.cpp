#include "parts.hpp"

#include <algorithm>

namespace tangram::importing {

namespace {

bool has_experts(const JobStage& stage, const model::Model& model) {
  for (const JobLayers& chunk : stage.all_chunks()) {
    for (std::int64_t b = chunk.first; b < std::min<std::int64_t>(chunk.last, model.block_count()); ++b) {
      if (model.block(static_cast<int>(b)).feed_forward.is_moe()) return true;
    }
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

}  // namespace

std::vector<JobPart> parts_of(const JobStage& stage, const std::vector<ReplicaGpus>& replicas,
                              const plan::GpuPlaces& places, const model::Model& model) {
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
  for (JobPart& part : parts) part.spills = plan::locate(part.placed, places).spills;
  return parts;
}

}  // namespace tangram::importing
