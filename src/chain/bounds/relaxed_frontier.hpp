// What a program says of its plans without their whole frontiers: the fastest plan for every number of microbatches in
// flight, and the least that a first stage adds to the end. Goes in: a program, of relaxed frontiers or of whole
// frontiers. Comes out: lower bounds on what any plan takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// A lower bound on A + o of [0, last) as the first stage, with so many in flight.
[[nodiscard]] std::int64_t least_drain(const Program& program, int option, int last, int depth);

/// The least passage of a plan of a frontier, and of all slower ones behind it; ns.
[[nodiscard]] std::int64_t least_passage(const Program& program, const std::vector<Candidate>& frontier,
                                         std::size_t fastest);

/// Puts the (T, n_max) staircase of a slice, ascending, in the place of `steps`. Every plan of it is no faster than the
/// first step that holds as many, so that a chain of steps takes no longer than one of plans: A is T, o and F are zero,
/// and under zero bubble T - W is the least of all plans that it stands for.
void relaxed_frontier_of(const Program& program, int option, int signature, std::vector<Candidate>& steps);

/// The same of [0, last) as the first stage at a depth: A is at least what it adds to the end.
void first_relaxed_frontier_of(const Program& program, int option, int last, int depth, std::vector<Candidate>& steps);

}  // namespace tangram::chain
