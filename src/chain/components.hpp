// Which options can serve the same pipeline at all. Goes in: a program and the time that only faster chains beat. Comes
// out: programs of some of its options each, such that every chain of interest is a chain of one of them.
//
// Why it matters: neighbours in a chain hand over every microbatch. A boundary with occupancy x and latency c makes
// t >= (M-1) x + 2c, so that shapes which only meet over links slower than that are never neighbours, and the options
// of a chain lie in one connected component. A bound that prices units does not see this: it would complete a pipeline
// with the units of an island that no link is quick enough to reach.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

struct Component {
  Program program;
  std::vector<int> options;  ///< of the whole program, by those of this one
};

/// Components in the order of their first options; options that cover nothing within reach are in none. Empty: all
/// options may meet, and the program is its own component.
[[nodiscard]] std::vector<Component> components_of(const Program& program, std::int64_t interest,
                                                   const SolverTuning& tuning = {});

}  // namespace tangram::chain
