#include "idle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tangram::app {

namespace {

const cluster::IslandClass* class_named(const cluster::IslandLevel& level, const std::string& alias) {
  const auto found = std::find_if(level.classes.begin(), level.classes.end(),
                                  [&](const cluster::IslandClass& c) { return c.alias == alias; });
  return found == level.classes.end() ? nullptr : &*found;
}

bool is_used(const compose::Composition& composition, int island_class) {
  return std::any_of(composition.stages.begin(), composition.stages.end(), [&](const compose::StageChoice& stage) {
    return std::any_of(stage.parts.begin(), stage.parts.end(),
                       [&](const compose::PartChoice& part) { return part.island_class == island_class; });
  });
}

std::string reason_of(const plan::IdleGpus& idle, const compose::Composition& composition,
                      const cluster::IslandClass& island_class, const compose::Wish& wish, bool optimal) {
  if (idle.gpus < composition.replicas) {
    return fmt::format("{} equal pipelines cannot share them", composition.replicas);
  }
  const char* more = is_used(composition, island_class.id) ? " more of" : "";
  if (wish.objective == compose::Objective::kCost) {
    return optimal ? fmt::format("every searched plan with{} them costs more per token", more)
                   : fmt::format("no cheaper plan with{} them was found", more);
  }
  if (wish.objective == compose::Objective::kGpus) return "the throughput is reached without them";
  if (wish.budget) return fmt::format("no faster plan with{} them keeps the budget", more);
  return optimal ? fmt::format("every searched plan with{} them takes longer", more)
                 : fmt::format("no faster plan with{} them was found", more);
}

}  // namespace

void explain_idle(plan::LaunchPlan& plan, const compose::Composition& composition, const cluster::IslandLevel& level,
                  const compose::Wish& wish, bool optimal) {
  for (plan::IdleGpus& idle : plan.idle) {
    const cluster::IslandClass* island_class = class_named(level, idle.island_class);
    if (island_class != nullptr) idle.reason = reason_of(idle, composition, *island_class, wish, optimal);
  }
}

}  // namespace tangram::app
