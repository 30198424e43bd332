// What placements take by definition, worked out anew, and the best of all of them.
#pragma once

#include <functional>

#include "tangram/disaggregate/problem.hpp"
#include "tangram/disaggregate/solve.hpp"

namespace tangram::tests {

struct Taken {
  double period = 0;
  double latency = 0;  ///< of all passes of a round, one after the other
  bool fits = true;
};

[[nodiscard]] Taken taken_by(const disaggregate::Problem& problem, const disaggregate::Placement& placement);

/// Calls `look` with every placement.
void each_placement(const disaggregate::Problem& problem,
                    const std::function<void(const disaggregate::Placement&)>& look);

/// The least value of any placement that fits; infinite: there is none.
[[nodiscard]] double least_value(const disaggregate::Problem& problem, disaggregate::Objective objective);

}  // namespace tangram::tests
