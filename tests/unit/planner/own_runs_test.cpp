// Plans beside one's own runs: what is written of them, and when they change what is taken.
#include "tangram/planner/own_runs.hpp"

#include <algorithm>
#include <random>

#include "inputs.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/planner/plan.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

namespace {

Planned planned_with(const discrepancy::Discrepancy* own_runs, std::size_t top = 16) {
  PlanOptions options;
  options.search.top = static_cast<int>(top);
  options.own_runs = own_runs;
  auto planned = make_plan(tiny_fleet(), mini_model(), options);
  REQUIRE(planned);
  return *std::move(planned);
}

/// Of all plans that are simulated.
std::vector<plan::LaunchPlan> simulated_plans() {
  PlanOptions options;
  options.search.top = 16;
  std::vector<plan::LaunchPlan> plans;
  options.choose = [&](const std::vector<plan::LaunchPlan>& all, std::size_t best) {
    plans = all;
    return best;
  };
  REQUIRE(make_plan(tiny_fleet(), mini_model(), options));
  return plans;
}

discrepancy::Run ran(const plan::LaunchPlan& plan, double times_longer) {
  return run_of(plan, "", "", to_seconds(plan.predicted.iteration) * times_longer);
}

}  // namespace

TEST_CASE("a plan says what own runs expect of it, and passes its check", "[planner]") {
  const plan::LaunchPlan first = planned_with(nullptr).plan;
  CHECK_FALSE(first.predicted.own_runs);
  CHECK(first.predicted.expected_s() == to_seconds(first.predicted.iteration));
  const discrepancy::Discrepancy own_runs({ran(first, 1.2), ran(first, 1.2)});
  const plan::LaunchPlan plan = planned_with(&own_runs).plan;
  REQUIRE(plan.predicted.own_runs);
  CHECK(plan.predicted.own_runs->ratio == Approx(1.2).epsilon(0.01));
  CHECK(plan.predicted.own_runs->runs == 2);
  CHECK(plan.predicted.own_runs->deviation < 0.05);
  CHECK(plan.predicted.expected_s() == Approx(1.2 * to_seconds(plan.predicted.iteration)).epsilon(0.01));
  CHECK(plan::check(plan).ok());
}

TEST_CASE("runs that took what was predicted change no plan", "[planner]") {
  const Planned before = planned_with(nullptr);
  std::vector<discrepancy::Run> runs;
  for (const plan::LaunchPlan& plan : simulated_plans()) runs.push_back(ran(plan, 1));
  const discrepancy::Discrepancy own_runs(runs);
  const Planned after = planned_with(&own_runs);
  CHECK(after.chosen == before.chosen);
  CHECK(after.plan.predicted.own_runs->ratio == Approx(1));
}

TEST_CASE("a plan that took far longer than predicted makes way for one that did not", "[planner]") {
  const std::vector<plan::LaunchPlan> plans = simulated_plans();
  const plan::LaunchPlan first = planned_with(nullptr).plan;
  const auto degrees = [](const plan::LaunchPlan& plan) { return plan.stages.front().parts.front().strategy.degrees; };
  const auto other =
      std::ranges::find_if(plans, [&](const plan::LaunchPlan& p) { return degrees(p) != degrees(first); });
  REQUIRE(other != plans.end());
  std::vector<discrepancy::Run> runs(4, ran(first, 2));
  runs.insert(runs.end(), 4, ran(*other, 1));
  const discrepancy::Discrepancy own_runs(runs);
  const Planned planned = planned_with(&own_runs);
  CHECK(degrees(planned.plan) != degrees(first));
  CHECK_THAT(planned.plan.provenance.note, ContainsSubstring("which own runs expect to be"));
}

TEST_CASE("own runs favour a plan only if its lead is surer than chance", "[planner]") {
  const std::vector<plan::LaunchPlan> plans = simulated_plans();
  const auto seconds = [](const plan::LaunchPlan& p) { return to_seconds(p.predicted.iteration); };
  const auto best = static_cast<std::size_t>(std::ranges::min_element(plans, {}, seconds) - plans.begin());
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> factor(0.8, 1.3);
  for (int i = 0; i < 200; ++i) {
    std::vector<discrepancy::Run> runs;
    for (const plan::LaunchPlan& plan : plans) {
      if (random() % 2 == 0) runs.push_back(ran(plan, factor(random)));
    }
    const discrepancy::Discrepancy own_runs(runs);
    const std::size_t taken = favoured(plans, best, &own_runs, objective::Objective::kThroughput);
    CHECK(favoured(plans, best, &own_runs, objective::Objective::kGpus) == best);
    if (taken == best) continue;
    plan::LaunchPlan now = plans[taken];
    plan::LaunchPlan before = plans[best];
    expect(now, &own_runs);
    expect(before, &own_runs);
    CHECK(now.predicted.expected_s() < before.predicted.expected_s());
  }
}
