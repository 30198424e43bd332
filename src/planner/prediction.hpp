// What the judges say of one plan. Goes in: an assembled plan. Comes out: predictions of the simulator, what a target
// runtime refuses, what the plan is worth, and mistakes of ours that its check found.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/objective/objective.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "tangram/planner/plan.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::planner {

/// Adds what the simulator says of the whole, and what own runs say of that. Fails on a schedule that cannot finish.
[[nodiscard]] Expected<void> predict(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const PlanOptions& options);

/// What a plan that is there already is judged for: its own runtime, where none in particular is asked for.
[[nodiscard]] runtime::Target target_for(const plan::LaunchPlan& plan, const PlanOptions& options);

/// The schedule that plans beside it are sought for: where none in particular is asked for and it puts weight gradients
/// off, they do.
[[nodiscard]] std::optional<runtime::Schedule> schedule_for(const plan::LaunchPlan& plan, const PlanOptions& options);

/// The plan under the semantics of a runtime that does not refuse it.
void price_for(runtime::Target target, plan::LaunchPlan& plan);

/// What plans are ranked by, less is better: what is asked for, then seconds.
[[nodiscard]] std::pair<double, double> rank_of(const plan::LaunchPlan& plan, objective::Objective objective);

/// A bug of ours, as a diagnostic.
[[nodiscard]] Diagnostic bug(std::string code, std::string message);
/// That a plan of ours does not pass its check.
[[nodiscard]] Diagnostic check_failure(std::string code, const std::string& where, const std::string& what);
[[nodiscard]] Diagnostics bugs_of(const plan::CheckReport& report);

}  // namespace tangram::planner
