// Why GPUs are left out of a plan.
#pragma once

#include "tangram/compose/objective.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::app {

/// Fills plan.idle's reasons from what the search knows.
void explain_idle(plan::LaunchPlan& plan, const compose::Composition& composition, const cluster::IslandLevel& level,
                  const compose::Wish& wish, bool optimal);

}  // namespace tangram::app
