// How long a schedule takes. Goes in: a schedule with its seconds. Comes out: its resources and segments for `streams`,
// and the period from round to round: what resources allow, and what is left in a simulation.
#pragma once

#include "tangram/dispatch/schedule.hpp"
#include "tangram/streams/streams.hpp"

namespace tangram::dispatch {

/// Resources are the devices, then the links by sending and receiving device; kinds the phases.
[[nodiscard]] streams::Schedule timeline_of(const Schedule& schedule, int rounds);

/// Seconds of one round.
struct Periods {
  double allowed = 0;    ///< the most that a device, a link or (by passes in flight) the latency of a pass takes
  double simulated = 0;  ///< at least `allowed`
};

/// With so many micro-batches of every phase in flight; 0: those of the schedule. Simulated over so many rounds, or
/// more where many are in flight.
[[nodiscard]] Periods periods_of(Schedule schedule, int in_flight = 0, int least_rounds = 60);

}  // namespace tangram::dispatch
