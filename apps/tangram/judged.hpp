// The judge at the door: what is written passes its check, and what is read passes it where the command counts on that.
#pragma once

#include <string>

#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"
#include "tangram/plan/check.hpp"

namespace tangram::app {

/// All violations of a plan: those of plan::check, and predictions that its simulation does not give.
[[nodiscard]] plan::CheckReport judge_file(const plan::LaunchPlan& plan);
[[nodiscard]] plan::CheckReport judge_file(const plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                           const model::Model* model);

/// The text of one of our own plans, read back and judged as `check` does; a bug where it does not pass.
[[nodiscard]] Expected<std::string> judged_text(plan::LaunchPlan& plan, const cluster::Fleet& fleet,
                                                const model::Model& model);

/// What is wrong with a plan that somebody wants to go on with; empty: nothing. A plan that nobody changed may have
/// figures that are worked out otherwise today.
[[nodiscard]] Diagnostics mistakes_in(const plan::LaunchPlan& plan, const std::string& file);

}  // namespace tangram::app
