// Small plans that runtimes take, for the tests of the export module. With two microbatches every warm-up is the
// classic one, S - 1 - s.
#pragma once

#include "unit/plan/example.hpp"

namespace tangram::exporting::example {

/// Two equal stages on a0 and a1: tp 2 with sequence parallelism, dp 4, ZeRO-1.
[[nodiscard]] plan::LaunchPlan equal_stages();

/// Two pipelines of two stages of 4 GPUs: ranks 0-3 and 4-7 on a0, 8-11 and 12-15 on a1.
[[nodiscard]] plan::LaunchPlan replicas();

/// Three stages, on a0, b0 and b1: tp 2 dp 4, tp 4 dp 1 with experts over all of it, tp 1 dp 4 likewise.
[[nodiscard]] plan::LaunchPlan unequal_stages();

/// Two stages of 4 GPUs, tp 2 without sequence parallelism, dp 2, no ZeRO: what Sailor and Galvatron say.
[[nodiscard]] plan::LaunchPlan plain_stages();

/// Two pipelines of dense blocks, tp 2 then tp 4, without dp: what FlashFlex says.
[[nodiscard]] plan::LaunchPlan llama_pipelines();

}  // namespace tangram::exporting::example
