// A placement as segments of a simulation. Goes in: a problem, a placement. Comes out: a schedule for streams, and the
// period that it takes with the micro-batches in flight that there are, which bounds by resources do not know.
#pragma once

#include "tangram/disaggregate/problem.hpp"
#include "tangram/streams/streams.hpp"

namespace tangram::disaggregate {

/// One kind of pass for each phase, `rounds` times its passes in a round. Resources are the classes, then the links by
/// sending and receiving class. Kernels that follow each other on a class, with no message in between, are one segment;
/// a message behind a pass (of a KV cache to decode) takes its share of the link and of both GPUs.
[[nodiscard]] streams::Schedule schedule_of(const Problem& problem, const Placement& placement, int rounds);

/// Seconds from round to round, simulated over so many rounds: of one phase once a third of them have passed, of
/// several the time of all divided by their number.
[[nodiscard]] double simulated_period(const Problem& problem, const Placement& placement, int rounds = 60);

}  // namespace tangram::disaggregate
