// Searches for fleets that today's may become. Goes in: a fleet, a model, options with a place to keep searches. Comes
// out: the searches for fleets with any one node less, and with one more like any node, kept, so that planning for
// them is looking them up. Nodes whose coming and going leaves islands that are alike share a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "planning.hpp"

namespace tangram::app {

struct Ahead {
  std::size_t nodes = 0;   ///< of the fleet, any of which may go
  std::size_t fewer = 0;   ///< kinds of fleets that are left
  std::size_t more = 0;    ///< kinds of fleets with one more
  std::int64_t made = 0;   ///< searches
  std::int64_t found = 0;  ///< searches that were kept before
};

/// In the order of the nodes, those that are gone first. Requires options.kept and parallelizers that are known.
[[nodiscard]] Ahead search_ahead(const cluster::Fleet& fleet, const model::Model& model, const PlanningOptions& options,
                                 const compose::ProgressCallback& progress);

[[nodiscard]] std::string ahead_text(const Ahead& ahead);

}  // namespace tangram::app
