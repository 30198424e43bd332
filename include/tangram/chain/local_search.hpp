// Local search by timetable. Goes in: a chain that is near the best by closed form, what it may be made of. Comes out:
// a chain that none of the small changes tried makes faster. The closed form is what can be proven over all chains; the
// timetable is nearer to the truth where later stages drain faster than the period.
#pragma once

#include <cstdint>

#include "tangram/chain/frontiers.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

enum class Changes : std::uint8_t {
  /// Another plan of a stage, a boundary moved by one or two blocks, the options of two neighbours exchanged, another
  /// option of one class with units that are left, more in flight. Stages that change get the fastest plan that holds
  /// as much as was in flight.
  kFew,
  /// Those, any two stages exchanged, a stage split or two merged, fewer in flight; and stages that change get any of
  /// their plans. Where nothing of that helps: a stage moved along the chain or two exchanged, with their blocks, two
  /// given as many units that lie otherwise, and a block moved from a stage to any other. And where that does not
  /// either: two changes at once, from the chains that were nearly as fast.
  kAll,
};

/// Tries the changes over and over while any helps. `start` is evaluated, and is what comes back when nothing helps.
/// `effort` counts passes of timetables. Deterministic, unless the deadline ends it.
[[nodiscard]] TimedChain local_search(const Program& program, Frontiers& frontiers, Chain start, Changes changes,
                                      std::int64_t effort, const SolverTuning& tuning = {},
                                      const Deadline& deadline = {});

}  // namespace tangram::chain
