#include "tangram/planner/choices.hpp"

#include <fmt/format.h>

#include "options.hpp"
#include "planning.hpp"
#include "prediction.hpp"
#include "provenance.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"

namespace tangram::planner {

namespace {

/// A plan among others to choose from is a plan like any: what it was made by, and judged.
Expected<void> complete_choice(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model,
                               const objective::RequestResult& searched, const PlanOptions& options) {
  set_provenance(plan, fleet, model, searched, options);
  plan.provenance.note =
      fmt::format("one of several choices, the best for its GPUs or money of {} searches", searched.steps);
  set_time_limit(plan.provenance, options.search.deadline);
  for (plan::IdleGpus& idle : plan.idle) idle.reason = "this choice does without them";
  plan.targets = plan::target_verdicts(plan);
  const plan::CheckReport judged = plan::check(plan, fleet, &model);
  if (!judged.ok()) return fail(bugs_of(judged));
  return {};
}

}  // namespace

Expected<Choices> make_choices(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                               std::size_t most, const compose::ProgressCallback& progress) {
  if (const auto own = as_run(model, options)) return make_choices(fleet, own->model(), own->options(), most, progress);
  if (!model.job.free_options.empty()) {
    const ForModel chosen(choose_options(fleet, model, options, progress), options);
    auto choices = make_choices(fleet, chosen.model(), chosen.options(), most, progress);
    if (!choices) return choices;
    for (plan::LaunchPlan& plan : choices->plans) note_options(plan, model.job, fleet, options);
    return choices;
  }
  if (auto priced = check_prices(options.request, fleet); !priced) return fail(std::move(priced.error()));
  if (auto known = check_constraints(model, fleet); !known) return fail(std::move(known.error()));
  const Planning planning(fleet, model, options, progress);
  objective::ParetoPlans found = planning.search_choices(most);
  std::vector<parallelizer::Tally>& tallies = found.effort.parallelizers;
  if (found.plans.empty()) {
    return fail(parallelizer::any_failed(tallies) ? parallelizer::failures_of(tallies) : std::move(found.infeasible));
  }
  Choices choices;
  choices.finished = found.effort.finished;
  objective::RequestResult searched;
  searched.steps = found.steps;
  searched.found = std::move(found.effort);
  for (const objective::Shown& shown : found.plans) {
    auto candidate = planning.assemble(shown.plan);
    if (!candidate) continue;  // no memory for its schedule: it was not simulated either
    if (auto done = predict(*candidate, fleet, options); !done) return fail(std::move(done.error()));
    if (auto done = complete_choice(*candidate, fleet, model, searched, options); !done) {
      return fail(std::move(done.error()));
    }
    choices.plans.push_back(std::move(*candidate));
  }
  choices.parallelizers = std::move(searched.found.parallelizers);
  return choices;
}

}  // namespace tangram::planner
