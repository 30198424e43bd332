// What the chunks of an interleaved stage take. Goes in: a stage that is priced as blocks in a row, and what it
// synchronises beside its own gradients. Comes out: the times of each chunk, their sums, and the memory that they hold
// at their peak.
#pragma once

#include "tangram/cost/profile.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

/// How a stage's microbatches come: M of its pipeline, in groups.
struct Grouping {
  std::int64_t microbatches = 1;
  std::int64_t group = 1;
};

/// `plan` has the stage's islands and its model. `profiles`: what the stage was priced with, if any.
void price_chunks(const LaunchPlan& plan, const cost::ProfileSet* profiles, const Grouping& grouping,
                  Nanoseconds crossing, Stage& stage);

}  // namespace tangram::plan
