// What planners would claim for a plan that is not theirs. Goes in: a launch plan of whatever origin, and what planners
// read. Comes out: seconds of an iteration by the cost formula of one of them, as published.
#pragma once

#include <optional>
#include <string_view>

#include "tangram/baseline/input.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::baseline {

/// Those of "metis" and "sailor" are known.
[[nodiscard]] bool has_formula(std::string_view planner);

/// None where there is no formula, or where it has no words for the plan: both know tp and dp of each stage alone (no
/// recompute, ep, cp; several pipelines count as dp where their cuts are alike), Metis one tp in a stage, Sailor one dp
/// and equally many samples of every replica in all of the plan. Sequence parallelism and ZeRO cost nothing there.
[[nodiscard]] std::optional<double> claim_of(std::string_view planner, const plan::LaunchPlan& plan,
                                             const PlannerInput& input);

}  // namespace tangram::baseline
