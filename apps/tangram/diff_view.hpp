// What changes between two plans. Goes in: both plans and the switch from one to the other. Comes out: text for people,
// or JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tangram/evolve/switch.hpp"
#include "terminal.hpp"

namespace tangram::app {

[[nodiscard]] std::string switch_for_people(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                                            const evolve::Switch& change, const Terminal& terminal);

/// Members of tangram.diff/1, without schema and status.
[[nodiscard]] nlohmann::ordered_json switch_json(const plan::LaunchPlan& before, const plan::LaunchPlan& after,
                                                 const evolve::Switch& change);

}  // namespace tangram::app
