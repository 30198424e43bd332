// A placement as segments of a simulation. Goes in: a problem, a placement. Comes out: a schedule for streams, and the
// period that it takes with the micro-batches in flight that there are, which bounds by resources do not know.
#pragma once

#include <vector>

#include "tangram/disaggregate/problem.hpp"
#include "tangram/disaggregate/solve.hpp"
#include "tangram/streams/streams.hpp"

namespace tangram::disaggregate {

/// A share of the requests, and where its kernels run.
struct Share {
  double share = 0;
  Placement placement;
};

/// One kind of pass for each phase, `rounds` times its passes in a round; passes take turns by the shares. Resources
/// are the classes, then the links by sending and receiving class. Kernels that follow each other on a class, with no
/// message in between, are one segment; a message behind a pass (of a KV cache to decode) takes its share of the link
/// and of both GPUs.
[[nodiscard]] streams::Schedule schedule_of(const Problem& problem, const std::vector<Share>& placements, int rounds);

/// Seconds from round to round, simulated over so many rounds, or more where many are in flight: of one phase while all
/// places in flight are taken, of several the time of all divided by their number.
[[nodiscard]] double simulated_period(const Problem& problem, const std::vector<Share>& placements, int rounds = 60);

/// The placement with the shortest simulated period of several: with few micro-batches in flight, kernels that follow
/// each other on one GPU are worth more than resources know. Each further one is solved as if messages cost more.
struct SimulatedSolution {
  Solution solution;  ///< its bound is that of the problem
  double simulated = kNever;
};
[[nodiscard]] SimulatedSolution solve_simulated(const Problem& problem, const SolverEffort& effort = {},
                                                int rounds = 60);

}  // namespace tangram::disaggregate
