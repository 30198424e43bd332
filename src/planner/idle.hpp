// Why GPUs are left out of a plan.
#pragma once

#include "tangram/objective/objective.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::planner {

/// Fills plan.idle's reasons from what the search knows. `equal_pipelines`: so many aligned ones share all GPUs.
void explain_idle(plan::LaunchPlan& plan, int equal_pipelines, const objective::Request& request);

}  // namespace tangram::planner
