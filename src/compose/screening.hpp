// Programs that are too slow however their blocks are cut. Goes in: options, and the time of one block on each. Comes
// out: how many blocks stages of no more than a given time can hold. It takes a question per shape where a relaxation
// takes one per slice, and drops nine programs of ten that a relaxation would.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "pricing.hpp"
#include "space.hpp"

namespace tangram::compose {

/// ns of one block on an entry of the store; 0: none fits.
using BlockTimes = std::function<double(int entry)>;

/// At least the blocks that the stages of a pipeline hold in which none has T above `slowest` (ns): the linear
/// relaxation of filling units with stages, bounded by weak duality. Counts on T being a sum over blocks, and ignores
/// memory for more than one block. Infinite where blocks fit in mixed stages alone. O(options).
[[nodiscard]] double most_blocks(const std::vector<ClassShare>& shares,
                                 const std::vector<std::vector<OptionPart>>& options, std::int64_t slowest,
                                 const BlockTimes& times);

}  // namespace tangram::compose
