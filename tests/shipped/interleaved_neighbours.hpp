// All plans that differ in one thing from a plan of interleaved model chunks. Goes in: a composition. Comes out: the
// fastest of them that Megatron-LM runs, by the simulator. Blocks are dealt out to chunks anew for each.
#pragma once

#include <optional>

#include "shipped/neighbours.hpp"

namespace tangram::shipped {

/// The fastest interleaved plan of the shortlist for Megatron-LM, and its fastest neighbour: a block or two over a cut,
/// two stages exchanged, another group, another number of chunks, microbatches of twice or half the size. Degrees and
/// recompute stay. Of models whose blocks are alike. Empty: there is no interleaved plan.
[[nodiscard]] std::optional<BestNeighbour> neighbour_of_best_interleaved(const cluster::Fleet& fleet,
                                                                         const model::Model& model);

}  // namespace tangram::shipped
