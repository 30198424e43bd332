// What stages of whole blocks add to rate_bound.hpp. Goes in: the same problem, and a time that no plan beats. Comes
// out: a longer one where whole blocks, the optimizer's gathers and memory prove it. README.md, "Whole blocks", has the
// argument.
#pragma once

#include "rate_bound.hpp"

namespace tangram::relax {

/// Seconds, at least `proven`. Speaks of the blocks that are most of the work; all others cost it nothing.
[[nodiscard]] double whole_blocks_bound(const RateProblem& problem, double proven);

}  // namespace tangram::relax
