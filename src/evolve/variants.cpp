#include "tangram/evolve/variants.hpp"

#include <utility>

namespace tangram::evolve {

std::optional<plan::LaunchPlan> with_cut_moved(const plan::LaunchPlan& plan, int before, int blocks) {
  const int cut = plan.stage(before).last();
  if (cut == plan.model.block_count()) return std::nullopt;
  plan::LaunchPlan variant = plan;
  for (plan::Stage& stage : variant.stages) {
    for (model::BlockRange& chunk : stage.chunks) {
      if (chunk.last == cut) chunk.last += blocks;
      if (chunk.first == cut) chunk.first += blocks;
      if (chunk.count() < 1) return std::nullopt;
    }
    for (plan::Part& part : stage.parts) {
      part.strategy.policy = cost::fitted(std::move(part.strategy.policy), stage.block_count());
    }
  }
  return variant;
}

plan::LaunchPlan with_strategy(const plan::LaunchPlan& plan, int stage, std::size_t part,
                               const cost::Strategy& strategy) {
  const plan::Stage& model = plan.stage(stage);
  plan::LaunchPlan variant = plan;
  for (plan::Stage& other : variant.stages) {
    if (other.chunks != model.chunks || other.parts.size() != model.parts.size()) continue;
    if (other.parts[part].strategy == model.parts[part].strategy) other.parts[part].strategy = strategy;
  }
  return variant;
}

}  // namespace tangram::evolve
