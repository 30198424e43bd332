// A launch plan for people. Goes in: the plan. Comes out: text of at most 100 columns that says at a glance what runs
// where, what it costs, where the bottleneck is and how far from the best possible it is.
#pragma once

#include <string>
#include <vector>

#include "tangram/plan/check.hpp"
#include "tangram/plan/launch_plan.hpp"
#include "terminal.hpp"

namespace tangram::app {

[[nodiscard]] std::string plan_for_people(const plan::LaunchPlan& plan, const Terminal& terminal);

/// "tp8+sp dp2 zero1 rc-full:4": degrees of one are left out; "-" when nothing is left. "dp16 zero3/8": ZeRO shards
/// over 8 of the 16.
[[nodiscard]] std::string strategy_text(const cost::Strategy& strategy);

/// "16 x A100-80GB-SXM"
[[nodiscard]] std::string gpus_text(const plan::LaunchPlan& plan, const plan::Part& part);

/// "0-12 (13)": first, last, count.
[[nodiscard]] std::string layers_text(const plan::Stage& stage);

/// "64+134": milliseconds forward and backward.
[[nodiscard]] std::string pass_text(const plan::PartPrediction& predicted);

/// Forward and backward of one microbatch.
[[nodiscard]] Nanoseconds pass_time(const plan::Part& part);
/// The longest of all parts: what the load of the others is measured against.
[[nodiscard]] Nanoseconds slowest_pass(const plan::LaunchPlan& plan);

/// Pipelines [first, last] whose stages are alike: they are shown once.
struct PipelineGroup {
  int first = 0;
  int last = 0;
};
[[nodiscard]] std::vector<PipelineGroup> pipeline_groups(const plan::LaunchPlan& plan);
/// "pipelines 0 to 3, each"
[[nodiscard]] std::string pipelines_text(const PipelineGroup& group);

/// Of a plan that does not pass its check: the first violation, and how many more there are. Empty where it does.
[[nodiscard]] std::string failed_check_text(const plan::CheckReport& judged);

}  // namespace tangram::app
