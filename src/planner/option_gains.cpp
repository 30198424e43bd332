#include "tangram/planner/option_gains.hpp"

#include <optional>
#include <utility>

#include "pricer.hpp"

namespace tangram::planner {

std::vector<plan::ChosenOption> option_gains(const plan::LaunchPlan& plan, const model::Job& given,
                                             const cluster::Fleet& fleet, const PlanOptions& options) {
  const Pricer pricer(fleet, options);
  std::vector<plan::ChosenOption> all;
  for (const model::OptionName& each : model::option_names()) {
    model::Job job = plan.model.job;
    model::copy_option(each.option, given, job);
    if (job == plan.model.job) continue;
    plan::ChosenOption chosen{each.option, model::value_of(each.option, plan.model.job), std::nullopt};
    if (const auto without = pricer.priced(plan, job)) {
      chosen.gain = 1 - plan.predicted.iteration.as_double() / without->predicted.iteration.as_double();
    }
    all.push_back(std::move(chosen));
  }
  return all;
}

}  // namespace tangram::planner
