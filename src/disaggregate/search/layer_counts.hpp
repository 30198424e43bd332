// Equal layers: how many of them run as which pattern. A pattern is the placement of one layer's kernels, a state where
// the kernels are that write to the next layer; what a layer takes depends on its pattern and the state before it. The
// best sequence of patterns is a resource-constrained shortest path, found by label setting with the completion bound
// of the prices. Labels of one state that took the same patterns in another order are one label: counts are what is
// searched.
#pragma once

#include <optional>
#include <vector>

#include "../prices/price_search.hpp"

namespace tangram::disaggregate {

struct LayerQuery {
  Repeat repeat;
  Placement incumbent;          ///< kernels outside of the repeat stay where it has them
  std::vector<Placement> seen;  ///< layers of these are patterns, where not all of them are
  int beam = 64;                ///< labels kept for each layer and state
  double most = 0;              ///< seconds: only shorter periods are of interest
};

/// The placement found with the shortest period of additive rows, if it is shorter than `most`. None as well where
/// layers read each other beyond the next one, or share weights.
[[nodiscard]] std::optional<Placement> best_counts(const Resources& resources, const Relaxation& relaxation,
                                                   const LayerQuery& query);

}  // namespace tangram::disaggregate
