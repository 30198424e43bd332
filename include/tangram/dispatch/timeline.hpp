// How long a schedule takes. Goes in: a schedule with its seconds. Comes out: the period from round to round: what
// resources allow, and what is left in a simulation by `streams`.
#pragma once

#include "tangram/dispatch/schedule.hpp"

namespace tangram::dispatch {

/// Seconds of one round.
struct Periods {
  double allowed = 0;    ///< the most that a device, a link or (by passes in flight) the latency of a pass takes
  double simulated = 0;  ///< at least `allowed`
};

/// With so many micro-batches of every phase in flight; 0: those of the schedule. Simulated over so many rounds, or
/// more where many are in flight.
[[nodiscard]] Periods periods_of(Schedule schedule, int in_flight = 0, int least_rounds = 60);

}  // namespace tangram::dispatch
