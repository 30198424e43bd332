#include "prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tangram/base/problem.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/planner/own_runs.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::planner {

namespace {

/// The search has the exchanges of a stage as of blocks in a row. Each chunk has its own, with latencies of its own:
/// where that shows, the plan says what these take.
void price_chunks_apart(plan::LaunchPlan& plan) {
  const plan::CheckReport checked = plan::check(plan);
  const bool differs = std::ranges::any_of(
      checked.violations, [](const plan::Violation& each) { return each.code == "closed-form-differs"; });
  if (differs) plan.predicted.closed_form = checked.closed_form;
}

}  // namespace

Expected<void> predict(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const PlanOptions& options) {
  if (plan.is_interleaved()) price_chunks_apart(plan);
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
  if (result.deadlock) return fail(bug("deadlock", "the schedule of a plan cannot finish"));
  simulate::predict(plan, result, cost::fleet_peak(fleet, plan.model.job.precision));
  expect(plan, options.own_runs);
  return {};
}

runtime::Target target_for(const plan::LaunchPlan& plan, const PlanOptions& options) {
  return options.target == runtime::Target::kGeneric ? plan.runtime : options.target;
}

std::optional<runtime::Schedule> schedule_for(const plan::LaunchPlan& plan, const PlanOptions& options) {
  const bool free = !options.search.schedule && target_for(plan, options) == runtime::Target::kGeneric;
  return free && plan.schedule() != runtime::Schedule::k1F1B ? plan.schedule() : options.search.schedule;
}

void price_for(runtime::Target target, plan::LaunchPlan& plan) {
  if (plan.runtime == target) return;
  plan.runtime = target;
  plan.predicted.closed_form = plan::check(plan).closed_form;
}

std::pair<double, double> rank_of(const plan::LaunchPlan& plan, objective::Objective objective) {
  const double seconds = to_seconds(plan.predicted.iteration);
  switch (objective) {
    case objective::Objective::kThroughput: return {seconds, 0};
    case objective::Objective::kCost: return {plan.predicted.cost_per_mtoken, seconds};
    case objective::Objective::kGpus: return {static_cast<double>(plan.ranks.size()), seconds};
  }
  return {seconds, 0};
}

Diagnostic bug(std::string code, std::string message) {
  return problem(ErrorKind::kInternal, std::move(code), std::move(message),
                 "this is a bug of tangram; please report it with the input files");
}

Diagnostic check_failure(std::string code, const std::string& where, const std::string& what) {
  return bug(std::move(code), fmt::format("the plan does not pass its check: {}: {}", where, what));
}

Diagnostics bugs_of(const plan::CheckReport& report) {
  Diagnostics bugs;
  for (const plan::Violation& v : report.violations) {
    bugs.push_back(check_failure(v.code, v.where, v.message));
  }
  return bugs;
}

}  // namespace tangram::planner
