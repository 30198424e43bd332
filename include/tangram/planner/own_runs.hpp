// Launch plans as runs. Goes in: a plan that ran, and how long an iteration took; or plans that have not run yet. Comes
// out: the run; or what own runs say of the plan's time, written into it.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tangram/discrepancy/discrepancy.hpp"
#include "tangram/objective/objective.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::planner {

/// With own runs so many plans are simulated at least: what they say may change the order.
inline constexpr int kCandidatesBesideRuns = 32;

/// `measured_s` above 0. The plan's prediction is that of its own runtime and profiles.
[[nodiscard]] discrepancy::Run run_of(const plan::LaunchPlan& plan, std::string name, std::string family,
                                      double measured_s);

/// Which of these plans to take where `best` is the best by prediction: the one that own runs expect to be fastest, if
/// its lead over `best` is more than a standard deviation of what is known of their difference; else `best`. Without
/// runs, or where fewest GPUs are wanted, it is `best`.
[[nodiscard]] std::size_t favoured(std::span<const plan::LaunchPlan> plans, std::size_t best,
                                   const discrepancy::Discrepancy* own_runs, objective::Objective objective);

/// Sets `predicted.own_runs`. Without any runs it is empty.
void expect(plan::LaunchPlan& plan, const discrepancy::Discrepancy* own_runs);

}  // namespace tangram::planner
