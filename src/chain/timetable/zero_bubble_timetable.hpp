// Timetables under zero bubble (ZB-H1, arXiv 2401.10241, section 2): forward passes and gradients of inputs in the
// order of 1F1B, weight gradients while a stage waits. Goes in: a chain whose closed form is known. Comes out: when its
// stages have finished.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// [stage] when its last backward pass or weight gradient ends; ns. O(S M).
[[nodiscard]] std::vector<std::int64_t> zero_bubble_ends(const Program& program, const Chain& chain);

}  // namespace tangram::chain
