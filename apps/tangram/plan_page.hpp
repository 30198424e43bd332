// A launch plan as a page for browsers: what is said of it, its pipelines as boxes, one iteration as a timeline, and
// its stages in numbers. Goes in: the plan. Comes out: HTML that needs nothing else, at most about 1 MB whatever the
// plan.
#pragma once

#include <string>
#include <string_view>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::app {

/// The plan's references must lead somewhere. `warning`: what a reader must know first; empty: nothing.
[[nodiscard]] std::string plan_page(const plan::LaunchPlan& plan, std::string_view warning = {});

}  // namespace tangram::app
