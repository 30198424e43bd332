// When the passes of a chain run under its schedule. Goes in: a chain whose closed form is known. Comes out: its
// iteration time, without the closed form's pessimism about stages behind the last bottleneck, which drain faster than
// the period.
#pragma once

#include <cstdint>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// Passes in the order of 1F1B, each as early as its input and its stage allow, transfers on a link one after the
/// other; where transfers block, as early as both stages of a boundary can stop for it. Under zero bubble weight
/// gradients fill the time that a stage waits, and are first where it holds n_max microbatches. Mixed stages count as
/// one executor, by their largest times. `chain.in_flight` is that of evaluate(), or more where no stage holds more
/// than the one in front of it. Where the time is not below `cutoff`, anything from there to the truth. ns; O(S M),
/// less where passes repeat themselves.
[[nodiscard]] std::int64_t timetable(const Program& program, const Chain& chain, std::int64_t cutoff = INT64_MAX);

/// What no timetable of the chain is below: all microbatches on one stage, and the way of the first one there and of
/// the last one back (zero bubble: not back, as weight gradients may be last); INT64_MAX where a boundary has no price.
/// ns; O(S).
[[nodiscard]] std::int64_t least_time(const Program& program, const Chain& chain);

}  // namespace tangram::chain
