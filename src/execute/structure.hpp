// What must hold before a plan can be executed at all, found from its written form: every block once, every sample
// once, every rank where its number says, every cell of an activation sent and received once.
#pragma once

#include <vector>

#include "tangram/execute/finding.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::execute {

/// The plan's references must lead somewhere (read_plan sees to that).
[[nodiscard]] std::vector<Finding> structure_findings(const plan::LaunchPlan& plan);

}  // namespace tangram::execute
