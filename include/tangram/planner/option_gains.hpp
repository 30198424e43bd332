// What execution options bring. Goes in: a plan, and the job without them. Comes out: each that differs, and the share
// of the plan's time that it saves, by pricing the plan without it.
#pragma once

#include <vector>

#include "tangram/planner/plan.hpp"

namespace tangram::planner {

/// Options of the plan's job that are not as `given` has them. `options`: whom the plan is for.
[[nodiscard]] std::vector<plan::ChosenOption> option_gains(const plan::LaunchPlan& plan, const model::Job& given,
                                                           const cluster::Fleet& fleet, const PlanOptions& options);

}  // namespace tangram::planner
