#include "rule_costs.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "planning.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::planner {

namespace {

constexpr double kNegligible = 0.001;  // a rule that costs less costs nothing

std::vector<cost::Degrees> degrees_of(const plan::LaunchPlan& plan) {
  std::set<cost::Degrees> degrees;
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) degrees.insert(part.strategy.degrees);
  }
  return {degrees.begin(), degrees.end()};
}

/// Of a search for plans that are faster than the one at hand.
PlanOptions faster_than(const plan::LaunchPlan& now, PlanOptions options) {
  options.search.accepted_gap = std::max(options.search.accepted_gap, kNegligible);
  options.search.incumbent = now.predicted.closed_form;
  options.search.relaxed_bound = Nanoseconds(0);  // nobody asks how far it is from the best
  return options;
}

/// Of what such a search finds, as the runtime would run it.
std::optional<Nanoseconds> fastest(const Planning& planning, const runtime::Runtime& runtime) {
  std::optional<Nanoseconds> fastest;
  for (const compose::Composition& composition : planning.search_by_time().shortlist()) {
    const auto plan = planning.assemble(composition);
    if (!plan) continue;
    const runtime::Transfers transfers = runtime.semantics_of(plan->schedule()).transfers;
    const simulate::Result result = simulate::simulate(simulate::schedule_of(*plan, transfers));
    if (!result.deadlock) fastest = std::min(fastest.value_or(Nanoseconds::max()), result.iteration);
  }
  return fastest;
}

}  // namespace

std::optional<Nanoseconds> time_without(runtime::Rule rule, const plan::LaunchPlan& now, const cluster::Fleet& fleet,
                                        const PlanOptions& options, const compose::ProgressCallback& progress) {
  PlanOptions relaxed = faster_than(now, options);
  relaxed.search.near_degrees = degrees_of(now);
  relaxed.search.schedule = now.schedule();
  relaxed.search.lifted = rule;
  return fastest(Planning(fleet, now.model, relaxed, progress), runtime::runtime_of(options.target).without(rule));
}

std::optional<Nanoseconds> time_without_rules(const plan::LaunchPlan& now, const cluster::Fleet& fleet,
                                              const PlanOptions& options, const compose::ProgressCallback& progress) {
  PlanOptions relaxed = faster_than(now, options);
  relaxed.target = runtime::Target::kGeneric;
  relaxed.search.schedule.reset();
  return fastest(Planning(fleet, now.model, relaxed, progress), runtime::runtime_of(relaxed.target));
}

}  // namespace tangram::planner
