// What the command line wants a plan for. Goes in: settings, the fleet, the model. Comes out: the wish in the
// composer's terms, or why it makes no sense.
#pragma once

#include <optional>

#include "settings.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/compose/objective.hpp"
#include "tangram/model/model.hpp"

namespace tangram::app {

/// What contradicts itself, whatever the inputs.
[[nodiscard]] std::optional<Diagnostics> wish_complaint(const Settings& settings);

/// Money needs prices: kInput names the GPU types without one.
[[nodiscard]] Expected<compose::Wish> wish_of(const Settings& settings, const cluster::Fleet& fleet,
                                              const model::Model& model);

}  // namespace tangram::app
