// Execution options that a job leaves free, chosen. Goes in: fleet, model, what is asked for. Comes out: the model with
// values for them, and plans that say so. What may be chosen is what the target takes as arguments.
//
// Coordinate ascent from the values that the job has: plans at hand are priced with other values, one option at a time,
// and the best of these jobs is searched for plans of its own. Where pricing gains nothing, short searches look for
// plans that are better by a thousandth: under each other value, and under each with an option that saves memory. Most
// of them are spared: nothing is looked for where all options together, or memory without limit, make no better plan.
// By objectives other than time options are priced alone.
#pragma once

#include <memory>
#include <vector>

#include "tangram/planner/plan.hpp"

namespace tangram::planner {

/// A model, and options whose built-in parallelizers are made for it. They refer to it: it stays where it is.
class ForModel {
 public:
  ForModel(model::Model model, PlanOptions options);
  ForModel(const ForModel&) = delete;
  ForModel& operator=(const ForModel&) = delete;

  [[nodiscard]] const model::Model& model() const { return model_; }
  [[nodiscard]] const PlanOptions& options() const { return options_; }

 private:
  const model::Model model_;
  PlanOptions options_;
  std::vector<std::unique_ptr<parallelizer::Parallelizer>> owned_;
};

/// The model with its job as the target of the options runs it; nullptr: it is given so.
[[nodiscard]] std::unique_ptr<const ForModel> as_run(const model::Model& model, const PlanOptions& options);

/// Of the options that the job leaves free, those that the target has and that bear on the model.
[[nodiscard]] model::OptionSet choosable_options(const model::Model& model, runtime::Target target);

/// No option is free in it. Where nothing helps, no plan was found with any values, or plugins plan, which know the
/// job as it is, its job has those that it had.
[[nodiscard]] model::Model choose_options(const cluster::Fleet& fleet, const model::Model& model,
                                          const PlanOptions& options, const compose::ProgressCallback& progress);

/// Says in the plan's provenance which options are not as `given` has them, what each gains and what they need.
void note_options(plan::LaunchPlan& plan, const model::Job& given, const cluster::Fleet& fleet,
                  const PlanOptions& options);

/// What make_plan gives for a model with free options: never a plan that is worse than with the values that the job
/// has.
[[nodiscard]] Expected<Planned> plan_with_free_options(const cluster::Fleet& fleet, const model::Model& model,
                                                       const PlanOptions& options,
                                                       const compose::ProgressCallback& progress);

}  // namespace tangram::planner
