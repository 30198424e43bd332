// The objective and its limits on the command line. Goes in: settings, the fleet, the model. Comes out: the request
// that they make, or why they make none.
#pragma once

#include <optional>

#include "settings.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"
#include "tangram/objective/objective.hpp"

namespace tangram::app {

/// Settings that contradict each other, whatever the inputs.
[[nodiscard]] std::optional<Diagnostics> request_conflict(const Settings& settings);

/// Errors: as of planner::check_prices.
[[nodiscard]] Expected<objective::Request> request_of_settings(const Settings& settings, const cluster::Fleet& fleet,
                                                               const model::Model& model);

}  // namespace tangram::app
