// Plans next to a plan: the same but for one thing, to be priced by refit(). Goes in: a plan. Comes out: another with
// one cut moved, or one stage divided otherwise. Pipelines that are alike change alike.
#pragma once

#include <optional>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::evolve {

/// The cut behind stage `before` moved by one block, to the back (+1) or the front (-1); none where a stage would be
/// left without blocks, or `before` is the last stage of its pipeline.
[[nodiscard]] std::optional<plan::LaunchPlan> with_cut_moved(const plan::LaunchPlan& plan, int before, int blocks);

/// The part of the stage with another strategy on as many GPUs.
[[nodiscard]] plan::LaunchPlan with_strategy(const plan::LaunchPlan& plan, int stage, std::size_t part,
                                             const cost::Strategy& strategy);

}  // namespace tangram::evolve
