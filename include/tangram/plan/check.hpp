// The judge of a written plan. Goes in: the plan alone (a fleet and a model too, if given). Comes out: violations.
// Shares no code with the composer: structure, memory and cost are worked out anew from what the file says. What
// follows from the simulated time (tokens/s, MFU, cost, breakdown) is for simulate::differences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

struct Violation {
  std::string code;   ///< stable: "ranks-overlap", "memory-exceeded", "cost-differs", ...
  std::string where;  ///< "stage 3", "rank 17", "boundary 2->3"
  std::string message;
};

struct CheckReport {
  std::vector<Violation> violations;
  int ranks = 0;
  int stages = 0;
  int transfers = 0;
  Nanoseconds closed_form;     ///< recomputed from the stages' recomputed times
  double tightest_memory = 0;  ///< largest peak / usable
  int tightest_stage = 0;
  bool followable = false;  ///< every reference leads somewhere, so that the plan can be simulated
  [[nodiscard]] bool ok() const { return violations.empty(); }
};

[[nodiscard]] CheckReport check(const LaunchPlan& plan);

/// Also: every host and GPU exists in the fleet with that type, links are not better and prices not lower than the
/// fleet's, and the model is the one the plan was made for.
[[nodiscard]] CheckReport check(const LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model* model);

}  // namespace tangram::plan
