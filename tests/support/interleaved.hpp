// Plans of interleaved model chunks for tests. Goes in: a plan for Megatron-LM with one range of blocks a stage. Comes
// out: the same stages with several chunks each, priced anew.
#pragma once

#include <cstdint>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::test {

/// Bytes that a part's chunks hold at their peak, pass by pass, as the schedule table of Megatron-LM has them.
[[nodiscard]] std::int64_t held_at_peak(const plan::PartPrediction& part, std::int64_t microbatches, std::int64_t group,
                                        std::int64_t warmup);

/// Blocks are dealt out evenly over all places, earlier ones get what is left; microbatches take turns in groups. Each
/// stage keeps its GPUs and strategy (one for all blocks); times and memory are those of its chunks, the warm-up is
/// Megatron-LM's. The way from the last stage round to the first has the slowest link of the plan. Predictions are
/// those that the judge makes: the iteration is the closed form.
[[nodiscard]] plan::LaunchPlan interleaved(plan::LaunchPlan plan, std::size_t chunks, std::int64_t group);

}  // namespace tangram::test
