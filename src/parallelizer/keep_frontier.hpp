// Many plans for one query become what an Outcome promises.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

/// Keeps the plans that no other beats, in the order and to the extent that an Outcome promises. Of equal plans the
/// first stays.
void keep_frontier(std::vector<PartialPlan>& plans, std::int64_t max_in_flight);

}  // namespace tangram::parallelizer
