// Planning against a plan that runs already. Goes in: that plan, the fleet and the job as they are now. Comes out: keep
// it, or the plan to change to, and why.
#pragma once

#include <optional>
#include <vector>

#include "tangram/evolve/decision.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/evolve/switch.hpp"
#include "tangram/planner/plan.hpp"

namespace tangram::planner {

struct Replanned {
  bool change = false;
  plan::LaunchPlan old;                 ///< as it was written
  std::optional<plan::LaunchPlan> now;  ///< the old plan with today's times, where it could be priced
  plan::LaunchPlan next;                ///< to change to; where the old plan is kept, the best that was found
  bool spares = false;                  ///< `next` is the old plan with other hosts in place of those that are gone

  // The old plan on the fleet of now.
  bool fits = false;                                       ///< it can go on: nothing of what follows is against it
  std::vector<evolve::Gpu> gone;                           ///< GPUs of it that the fleet has not
  std::vector<evolve::Incompatibility> incompatibilities;  ///< what else is in its way
  std::vector<plan::TargetReason> refused;                 ///< rules of the target that it breaks
  std::optional<Diagnostic> deadlock;                      ///< why its schedule cannot finish
  bool slower = false;                      ///< it fits, and an iteration or a stage takes notably longer
  std::vector<evolve::Slowdown> slowdowns;  ///< stages that take longer, worst first

  double gain = 0;  ///< of `next` over the old plan; 0 where that does not fit
  double min_gain = 0;
  evolve::Switch moves;  ///< from the old plan to `next`
  bool search_finished = false;
  double time_limit = 0;  ///< seconds that ended the search (PlanProvenance::time_limit)
  std::vector<parallelizer::Tally> parallelizers;
};

/// What a plan is searched with where it is to be compared with one that runs already: more to choose from.
[[nodiscard]] PlanOptions replan_options(PlanOptions options);

/// Where the job leaves execution options free, the old plan keeps those that it has. Errors are those of make_plan,
/// where the old plan does not fit either.
[[nodiscard]] Expected<Replanned> replan(plan::LaunchPlan old, const cluster::Fleet& fleet, const model::Model& model,
                                         PlanOptions options, double min_gain,
                                         const compose::ProgressCallback& progress = {});

}  // namespace tangram::planner
