// A plan under zero bubble (ZB-H1, Qi et al., arXiv 2401.10241, section 2). Goes in: a plan under 1F1B. Comes out: the
// same plan with what its stages may put off, or that none has the memory for it.
#pragma once

#include <cstdint>
#include <span>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

/// Weight gradients are put off, of as many microbatches as memory holds beside those in flight. A stage whose memory
/// does not even hold those that are in flight with their weight gradients put off keeps whole backward passes. What of
/// them weight gradients are follows from the cost model, and from the profiles that the plan has; so does the closed
/// form. False: that is so of all stages, and the plan is still one of 1F1B. Requires 1F1B.
[[nodiscard]] bool put_off_weight_gradients(LaunchPlan& plan);

/// Of each stage by its id, no more microbatches than so many beyond those in flight.
void limit_put_off(LaunchPlan& plan, std::span<const std::int64_t> most);

}  // namespace tangram::plan
