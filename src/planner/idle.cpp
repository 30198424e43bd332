#include "idle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tangram::planner {

namespace {

std::string reason_of(const plan::IdleGpus& idle, const plan::LaunchPlan& plan, int equal_pipelines,
                      const objective::Request& request) {
  if (idle.gpus < equal_pipelines) return fmt::format("{} equal pipelines cannot share them", equal_pipelines);
  const bool is_used = std::ranges::any_of(
      plan.islands, [&](const plan::PlanIsland& island) { return island.island_class == idle.island_class; });
  const char* more = is_used ? " more of" : "";
  const bool optimal = plan.provenance.optimal;
  if (request.objective == objective::Objective::kCost) {
    return optimal ? fmt::format("every searched plan with{} them costs more per token", more)
                   : fmt::format("no cheaper plan with{} them was found", more);
  }
  if (request.objective == objective::Objective::kGpus) return "the throughput is reached without them";
  if (request.budget) return fmt::format("no faster plan with{} them keeps the budget", more);
  return optimal ? fmt::format("every searched plan with{} them takes longer", more)
                 : fmt::format("no faster plan with{} them was found", more);
}

}  // namespace

void explain_idle(plan::LaunchPlan& plan, int equal_pipelines, const objective::Request& request) {
  for (plan::IdleGpus& idle : plan.idle) idle.reason = reason_of(idle, plan, equal_pipelines, request);
}

}  // namespace tangram::planner
