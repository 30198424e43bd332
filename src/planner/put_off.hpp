// How many weight gradients the stages of a plan put off. Goes in: a plan under zero bubble whose stages put off as
// many as memory holds. Comes out: the same plan with no more than it needs to be as fast.
#pragma once

#include "tangram/plan/launch_plan.hpp"

namespace tangram::planner {

/// One limit for all stages: of 0, 1, 2, 4, ... and none, the least of those with which the plan is fastest, as
/// simulated. What a stage then never holds is taken off.
void choose_put_off(plan::LaunchPlan& plan);

}  // namespace tangram::planner
