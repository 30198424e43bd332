// Searches for fleets that today's may become. Goes in: a fleet, a model, options with a cache of searches. Comes out:
// the searches for fleets with any one node less, and with one more like any node, in the cache, so that planning for
// them is looking them up. Nodes whose coming and going leaves islands that are alike share a search.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tangram/planner/plan.hpp"

namespace tangram::planner {

struct Ahead {
  std::size_t nodes = 0;   ///< of the fleet, any of which may go
  std::size_t fewer = 0;   ///< kinds of fleets that are left
  std::size_t more = 0;    ///< kinds of fleets with one more
  std::int64_t made = 0;   ///< searches
  std::int64_t found = 0;  ///< searches that the cache had before
};

/// In the order of the nodes, those that are gone first, until the deadline of the search. Requires options.cache and
/// parallelizers that are known.
[[nodiscard]] Ahead search_ahead(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                                 const compose::ProgressCallback& progress);

}  // namespace tangram::planner
