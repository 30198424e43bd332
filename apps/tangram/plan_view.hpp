// A launch plan for people. Goes in: the plan. Comes out: text of at most 100 columns that says at a glance what runs
// where, what it costs, where the bottleneck is and how far from the best possible it is.
#pragma once

#include <string>

#include "tangram/plan/launch_plan.hpp"
#include "terminal.hpp"

namespace tangram::app {

[[nodiscard]] std::string plan_for_people(const plan::LaunchPlan& plan, const Terminal& terminal);

/// "tp8+sp dp2 zero1 rc-full:4": degrees of one are left out; "-" when nothing is left.
[[nodiscard]] std::string strategy_text(const cost::Strategy& strategy);

/// "16 x A100-80GB-SXM"
[[nodiscard]] std::string gpus_text(const plan::LaunchPlan& plan, const plan::Part& part);

/// "0-12 (13)": first, last, count.
[[nodiscard]] std::string layers_text(const plan::Stage& stage);

}  // namespace tangram::app
