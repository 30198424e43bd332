// A program without what no chain of interest can use. Goes in: a program and the time that is of interest. Comes out:
// the same program with fewer relaxed frontiers.
//
//   the longest period P of interest: at longer ones, (M - 1) P and the bound of the rest come to the time, or more
//   a slice on an option is out where it takes longer than P, or where the units that the option leaves can not hold
//   the other blocks in whole stages within P (capacity.hpp)
//
// A large shape with few blocks wastes units that are needed elsewhere: it need not even be asked for.
#pragma once

#include <cstdint>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// Empties the frontiers of what is in no chain faster than `interest`, and drops plans slower than any period of such
/// a chain. Returns how many frontiers are empty now that were not. O(windows x signatures x options).
std::int64_t presolve(Program& program, std::int64_t interest, const SolverTuning& tuning = {});

}  // namespace tangram::chain
