// What the threads of a warp do together. Goes in: those that stand before the same step. Comes out: its results in the
// registers of each.
#pragma once

#include <vector>

#include "thread.hpp"

namespace tangram::interpret {

/// The lanes that a step waits for; all where it names none.
[[nodiscard]] Bits member_mask(const Thread& thread);

/// shfl, vote, activemask, mma, ldmatrix, stmatrix, bar.warp.sync. All members stand before the same step.
void exchange(const std::vector<Thread*>& members);

}  // namespace tangram::interpret
