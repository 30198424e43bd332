// The search over periods. G(P) = min { A + max o : chains that P allows } never grows with P, because a longer period
// only relaxes what a stage must hold. So the minimum of G(P) + (M-1) P is found by windows [lo, hi]: a relaxation of
// G(hi) plus (M-1) lo bounds all of a window; narrow windows are solved by label searches at falling hi. Its parts, in
// windows/: the windows by their bounds (window_queue.hpp), the periods ruled out before (period_floor.hpp), the beam
// searches (beam_pass.hpp), the best chains so far (incumbent.hpp), and the label searches (label_searches.hpp).
#pragma once

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// solve() for a program whose options may all meet.
[[nodiscard]] ProgramResult search_periods(const Program& program, const ProgramLimits& limits);

}  // namespace tangram::chain
