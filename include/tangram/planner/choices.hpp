// Plans to choose from. Goes in: a fleet, a model and options. Comes out: plans of which none is as good as another in
// time, money and GPUs, each complete and checked.
#pragma once

#include "tangram/planner/plan.hpp"

namespace tangram::planner {

struct Choices {
  std::vector<plan::LaunchPlan> plans;             ///< simulated, fastest first; never empty
  bool finished = false;                           ///< no budget of labels or seconds ended a search
  std::vector<parallelizer::Tally> parallelizers;  ///< what each did
};

/// Plans that are worth a choice (objective::pareto_plans). All have the execution options that are chosen for the
/// best, where the job leaves some free. Errors: as of make_plan.
[[nodiscard]] Expected<Choices> make_choices(const cluster::Fleet& fleet, const model::Model& model,
                                             const PlanOptions& options, std::size_t most,
                                             const compose::ProgressCallback& progress = {});

}  // namespace tangram::planner
