// What a plan that was made with profiles rests on. Goes in: the plan. Comes out: a note where the times of some of its
// blocks are the model's, which may be kinder than what was measured: what the best plan of measured times takes.
#pragma once

#include <string>

#include "tangram/cluster/fleet.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::planner {

/// Whether such a note is made: profiles were given and do not know all that the plan runs.
[[nodiscard]] bool looks_at_measured(const plan::LaunchPlan& plan, const PlanOptions& options);

/// Searches once more, by cost::measured_alone() of the profiles. Empty where the deadline ended that.
[[nodiscard]] std::string measured_note(const plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                        const model::Model& model, const PlanOptions& options,
                                        const compose::ProgressCallback& progress);

}  // namespace tangram::planner
