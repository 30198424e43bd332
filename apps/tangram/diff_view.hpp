// What changes between two plans. Goes in: both plans, and the fleet if it is known. Comes out: text for people, or
// JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "tangram/evolve/difference.hpp"
#include "tangram/evolve/resharding.hpp"
#include "terminal.hpp"

namespace tangram::app {

struct Switch {
  evolve::Difference difference;
  std::optional<evolve::Resharding> resharding;  ///< none between different models
  std::optional<Nanoseconds> time;               ///< where the fleet is known
};

[[nodiscard]] Switch compare_plans(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                                   const cluster::Fleet* fleet);

[[nodiscard]] std::string switch_for_people(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                                            const Switch& change, const Terminal& terminal);

/// Members of tangram.diff/1, without schema and status.
[[nodiscard]] nlohmann::ordered_json switch_json(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                                                 const Switch& change);

}  // namespace tangram::app
