#include "tangram/planner/own_runs.hpp"

#include <cmath>

#include "tangram/base/at.hpp"

namespace tangram::planner {

namespace {

discrepancy::Traits traits_of(const plan::LaunchPlan& plan) {
  discrepancy::TraitsOfRun traits(plan.model, std::string(to_string(plan.runtime)));
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      traits.add(at(plan.islands, part.island).device.name, part.strategy.degrees, part.samples);
    }
  }
  const double stages = static_cast<double>(plan.stages.size()) / static_cast<double>(plan.pipelines.size());
  return traits.of_pipelines(stages, plan.pipelines.front().microbatches);
}

double wanted_of(const plan::LaunchPlan& plan, objective::Objective objective) {
  return objective == objective::Objective::kCost ? plan.predicted.cost_per_mtoken
                                                  : to_seconds(plan.predicted.iteration);
}

}  // namespace

std::size_t favoured(std::span<const plan::LaunchPlan> plans, std::size_t best,
                     const discrepancy::Discrepancy* own_runs, objective::Objective objective) {
  if (own_runs == nullptr || objective == objective::Objective::kGpus) return best;
  const discrepancy::Traits first = traits_of(plans[best]);
  std::size_t taken = best;
  double least = 1;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const discrepancy::Correction over_best = own_runs->between(traits_of(plans[i]), first);
    const double share = over_best.ratio * wanted_of(plans[i], objective) / wanted_of(plans[best], objective);
    if (share < least && -std::log(share) > over_best.deviation) {
      taken = i;
      least = share;
    }
  }
  return taken;
}

discrepancy::Run run_of(const plan::LaunchPlan& plan, std::string name, std::string family, double measured_s) {
  return {std::move(name), std::move(family), traits_of(plan), to_seconds(plan.predicted.iteration), measured_s};
}

void expect(plan::LaunchPlan& plan, const discrepancy::Discrepancy* own_runs) {
  plan.predicted.own_runs.reset();
  if (own_runs == nullptr || own_runs->runs() == 0) return;
  const discrepancy::Correction correction = own_runs->at(traits_of(plan));
  plan.predicted.own_runs = {correction.ratio, correction.deviation, static_cast<std::int64_t>(own_runs->runs())};
}

}  // namespace tangram::planner
