// Branch and bound over the kernels in their order: exact, for few kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "../resources.hpp"
#include "tangram/disaggregate/solve.hpp"

namespace tangram::disaggregate {

struct BranchQuery {
  Objective objective = Objective::kThroughput;
  std::vector<double> prices;  ///< by row: no placement's value is below what it takes at these, less `credit`
  double credit = 0;
  std::int64_t most_nodes = 0;
};

/// Makes `best` the best placement of all, or leaves it. True: it has no better one.
[[nodiscard]] bool branch(const Resources& resources, const BranchQuery& query, Solution& best);

}  // namespace tangram::disaggregate
