// What a job meets that goes on with another plan. Goes in: both plans, and the fleet if it is known. Comes out: what
// differs, what moves, and how long that takes.
#pragma once

#include <optional>

#include "tangram/evolve/difference.hpp"
#include "tangram/evolve/resharding.hpp"

namespace tangram::evolve {

struct Switch {
  Difference difference;
  std::optional<Resharding> resharding;  ///< none between different models
  std::optional<Nanoseconds> time;       ///< where the fleet is known
};

[[nodiscard]] Switch switch_between(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                                    const cluster::Fleet* fleet);

}  // namespace tangram::evolve
