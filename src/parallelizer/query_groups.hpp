// Queries that share their degrees. Goes in: a batch of queries. Comes out: groups of them, each with the unit costs of
// its degrees and the strategies that are to be tried.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "strategy_space.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::parallelizer {

/// Queries of equal shape, samples, techniques, demands and slice traits.
struct QueryGroup {
  const Query* example = nullptr;
  SliceTraits traits;
  StrategySpace space;
};

/// The groups in the order of their first queries, and the group of each query.
struct Grouping {
  std::vector<QueryGroup> groups;
  std::vector<std::size_t> group_of;
};

/// Costs degrees on the caller's oneTBB threads. The queries must outlive what is returned.
[[nodiscard]] Grouping group_queries(const model::Model& model, const cost::ProfileSet* profiles,
                                     std::span<const Query> queries);

}  // namespace tangram::parallelizer
