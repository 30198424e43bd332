// Which GPUs run which part. Goes in: a composition in counted classes and the islands of its level. Comes out: named
// GPUs for every part of every replica.
#pragma once

#include <vector>

#include "tangram/plan/assemble.hpp"

namespace tangram::plan {

/// Indexed [replica][stage][part]. Larger shapes first: as sizes divide each other, what is left of a member always
/// holds a whole number of the next smaller shape, so any composition that counts right can be placed.
[[nodiscard]] std::vector<std::vector<std::vector<PlacedPart>>> place(const compose::Composition& composition,
                                                                      const cluster::IslandLevel& level);

}  // namespace tangram::plan
