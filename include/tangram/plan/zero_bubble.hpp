// A plan under zero bubble (ZB-H1, Qi et al., arXiv 2401.10241, section 2). Goes in: a plan under 1F1B. Comes out: the
// same plan with what its stages may put off, or which stage has no memory for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

/// Weight gradients of every stage are put off, of as many microbatches as memory holds beside those in flight. What of
/// a backward pass they are follows from the cost model, and from the profiles that the plan has. The stage whose
/// memory does not even hold those that are in flight with their weight gradients put off; nullopt: it is done.
/// Requires 1F1B; a plan that is refused is left half-way.
[[nodiscard]] std::optional<int> put_off_weight_gradients(LaunchPlan& plan);

/// Of each stage by its id, no more microbatches than so many beyond those in flight.
void limit_put_off(LaunchPlan& plan, std::span<const std::int64_t> most);

}  // namespace tangram::plan
