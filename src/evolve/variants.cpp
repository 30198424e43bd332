#include "tangram/evolve/variants.hpp"

#include <utility>

namespace tangram::evolve {

std::optional<plan::LaunchPlan> with_cut_moved(const plan::LaunchPlan& plan, int before, int blocks) {
  const int cut = plan.stage(before).last;
  if (cut == plan.model.block_count()) return std::nullopt;
  plan::LaunchPlan variant = plan;
  for (plan::Stage& stage : variant.stages) {
    if (stage.last == cut) stage.last += blocks;
    if (stage.first == cut) stage.first += blocks;
    if (stage.first >= stage.last) return std::nullopt;
    for (plan::Part& part : stage.parts) {
      part.strategy.policy = cost::fitted(std::move(part.strategy.policy), stage.last - stage.first);
    }
  }
  return variant;
}

plan::LaunchPlan with_strategy(const plan::LaunchPlan& plan, int stage, std::size_t part,
                               const cost::Strategy& strategy) {
  const plan::Stage& model = plan.stage(stage);
  plan::LaunchPlan variant = plan;
  for (plan::Stage& other : variant.stages) {
    if (other.first != model.first || other.last != model.last || other.parts.size() != model.parts.size()) continue;
    if (other.parts[part].strategy == model.parts[part].strategy) other.parts[part].strategy = strategy;
  }
  return variant;
}

}  // namespace tangram::evolve
