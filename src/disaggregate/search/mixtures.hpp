// Placements out of a mixture of them: the front of the kernels as one has it, the rest as another.
#pragma once

#include <vector>

#include "../prices/price_search.hpp"

namespace tangram::disaggregate {

/// Those of the mixture, all of them one behind the other by their shares, and the best front and rest of each two.
[[nodiscard]] std::vector<Placement> whole_placements(const Resources& resources, const Relaxation& relaxation);

}  // namespace tangram::disaggregate
