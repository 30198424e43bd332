// One query answered by trying a strategy space.
#pragma once

#include "strategy_space.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

/// The non-dominated plans of `space` for the query's slice, each marked with `name`.
[[nodiscard]] Outcome search(const StrategySpace& space, const Query& query, const std::string& name);

}  // namespace tangram::parallelizer
