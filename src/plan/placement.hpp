// Which GPUs run which part. Goes in: a composition in counted classes and the islands of its level. Comes out: named
// GPUs for every part of every replica.
#pragma once

#include <vector>

#include "tangram/plan/assemble.hpp"

namespace tangram::plan {

/// Indexed [replica][stage][part]. Parts that share a member lie side by side there. Larger shapes first, close to what
/// the replica has already; where that leaves one without a place, packed tightly (pack_bins.hpp).
[[nodiscard]] std::vector<std::vector<std::vector<PlacedPart>>> place(const compose::Composition& composition,
                                                                      const cluster::IslandLevel& level);

}  // namespace tangram::plan
