// What one stage asks of the period.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

[[nodiscard]] constexpr std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The least period that a boundary and the stage in front of it allow. A frozen stage is `prefetch` passes ahead of
/// who reads it, which has begun a pass F + c after the stage did: in the meantime it works on no more than those.
[[nodiscard]] inline std::int64_t least_period(const Stage& stage, const Price& behind, std::int64_t microbatches) {
  std::int64_t period = behind.occupancy;
  if (stage.is_frozen() && stage.prefetch < microbatches) {
    period = std::max(period, ceil_divide(stage.plan.F + behind.latency, stage.prefetch));
  }
  return period;
}

}  // namespace tangram::multimodal
