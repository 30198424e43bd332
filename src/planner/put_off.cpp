#include "put_off.hpp"

#include <algorithm>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/plan/zero_bubble.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::planner {

namespace {

simulate::Result simulated(simulate::Schedule schedule, std::int64_t limit) {
  for (simulate::SimPipeline& pipeline : schedule.pipelines) {
    for (simulate::SimStage& stage : pipeline.stages) stage.deferrable = std::min(stage.deferrable, limit);
  }
  return simulate::simulate(schedule);
}

/// 0, 1, 2, 4, ..., and the most that a stage puts off.
std::vector<std::int64_t> limits_of(const plan::LaunchPlan& plan) {
  std::int64_t most = 0;
  for (const plan::Stage& stage : plan.stages) most = std::max(most, stage.put_off);
  std::vector<std::int64_t> limits{0};
  for (std::int64_t limit = 1; limit < most; limit *= 2) limits.push_back(limit);
  if (most > 0) limits.push_back(most);
  return limits;
}

}  // namespace

void choose_put_off(plan::LaunchPlan& plan) {
  const simulate::Schedule schedule = simulate::schedule_of(plan);
  simulate::Result best;
  best.iteration = Nanoseconds::max();
  for (const std::int64_t limit : limits_of(plan)) {
    simulate::Result result = simulated(schedule, limit);
    if (!result.deadlock && result.iteration < best.iteration) best = std::move(result);
  }
  std::vector<std::int64_t> used(plan.stages.size(), 0);
  for (const simulate::StageUse& use : best.stages) {
    const plan::Stage& stage = plan.stage(at(at(plan.pipelines, use.pipeline).stages, use.stage));
    at(used, stage.id) = std::max<std::int64_t>(0, use.max_in_flight - stage.warmup - 1);
  }
  plan::limit_put_off(plan, used);
}

}  // namespace tangram::planner
