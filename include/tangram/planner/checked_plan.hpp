// Checks around plans that are written and read. Goes in: a plan, as made or as read from a file. Comes out: all that
// is wrong with it; the text of one of our own, only if that is nothing.
#pragma once

#include <string>

#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"
#include "tangram/plan/check.hpp"

namespace tangram::planner {

/// All violations of a plan: those of plan::check, and predictions that its simulation does not give. Without a fleet
/// what a plan says of the whole fleet is believed; without a model what it says of the model is.
[[nodiscard]] plan::CheckReport full_check(const plan::LaunchPlan& plan);
[[nodiscard]] plan::CheckReport full_check(const plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                           const model::Model* model);

/// The text of one of our own plans, read back and checked as a file is; a bug where it does not pass. The plan gets
/// its digest.
[[nodiscard]] Expected<std::string> checked_text(plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                                 const model::Model& model);

/// What is wrong with a plan that somebody wants to go on with; empty: nothing. A plan that nobody changed may have
/// figures that are worked out otherwise today.
[[nodiscard]] Diagnostics mistakes_in(const plan::LaunchPlan& plan, const std::string& file);

}  // namespace tangram::planner
