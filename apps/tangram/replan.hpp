// Planning against a plan that runs already. Goes in: that plan, the fleet and the job as they are now. Comes out: keep
// it, or the plan to change to, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "diff_view.hpp"
#include "planning.hpp"
#include "tangram/evolve/decision.hpp"
#include "terminal.hpp"

namespace tangram::app {

struct Reason {
  std::string code;  ///< stable: "gpus-gone", "memory-exceeded", "slower", "faster-plan", "no-gain", ...
  std::string text;
};

struct Replanned {
  bool change = false;
  plan::LaunchPlan old;                 ///< as it was written
  std::optional<plan::LaunchPlan> now;  ///< the old plan with today's times, where it could be priced
  plan::LaunchPlan next;                ///< to change to; where the old plan is kept, the best that was found
  std::vector<Reason> reasons;
  double gain = 0;  ///< of `next` over the old plan; 0 where that does not fit
  Switch moves;     ///< from the old plan to `next`
  double min_gain = 0;
  bool search_finished = false;
  std::vector<parallelizer::Tally> parallelizers;
};

/// Errors are those of make_plan, where the old plan does not fit either.
/// What a plan is searched with where it is to be compared with one that runs already: more to choose from.
[[nodiscard]] PlanningOptions replan_options(PlanningOptions options);

[[nodiscard]] Expected<Replanned> replan(plan::LaunchPlan old, const cluster::Fleet& fleet, const model::Model& model,
                                         PlanningOptions options, double min_gain,
                                         const compose::ProgressCallback& progress);

[[nodiscard]] std::string replanned_for_people(const Replanned& replanned, const Terminal& terminal);

/// tangram.replan/1
[[nodiscard]] nlohmann::ordered_json replanned_json(const Replanned& replanned);

}  // namespace tangram::app
