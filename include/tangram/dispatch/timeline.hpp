// How long a schedule takes. Goes in: a schedule with its seconds. Comes out: the period from round to round: what
// resources allow, and what is left in a simulation by `streams`; and what ran when.
#pragma once

#include <cstdint>
#include <vector>

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

/// A segment on its stream, or a copy on its link, as it ran.
struct Work {
  int segment = -1;       ///< of the schedule; -1: a copy
  int copy = -1;          ///< of the schedule; -1: a segment
  std::int64_t pass = 0;  ///< of its phase
  int server = 0;         ///< which of the devices, or of the links, that are alike
  double begin = 0;       ///< seconds
  double end = 0;
};

struct Recording {
  std::vector<Work> work;  ///< in the order in which it began
  double end = 0;          ///< of the last of it
};

/// So many rounds with the micro-batches in flight that the schedule has.
[[nodiscard]] Recording recorded(const Schedule& schedule, double rounds);

}  // namespace tangram::dispatch
