// The order of all passes of a plan, without doing any. Goes in: a plan. Comes out: how many microbatches each stage
// holds at most, and whether the order can run to its end at all.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/execute/finding.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::execute {

struct Replay {
  std::vector<std::int64_t> most_in_flight;  ///< of each stage, by id
  std::vector<Finding> findings;             ///< deadlocks, named pass by pass; counts that are not the plan's
};

/// A pass waits for the one before it in its stage's order and for its input from the neighbouring stage; a transfer
/// never blocks its sender. These are the edges of a graph: passes are crossed out while one has nothing left to wait
/// for, and what is left in the end contains a cycle. O(stages x microbatches), as many microbatches as the deepest
/// warm-up needs to settle.
[[nodiscard]] Replay replay(const plan::LaunchPlan& plan);

}  // namespace tangram::execute
