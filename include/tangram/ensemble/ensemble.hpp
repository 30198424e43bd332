// Pipelines that are not alike: other islands, cuts and shares of the batch, which finish together. Goes in: model,
// islands, parallelizers, the time to beat. Comes out: an ensemble that beats it, or none.
//
// An improvement search beside the named space: it allocates the islands of a level to groups of pipelines, searches
// what each group has for its share of the batch as search() does, and shifts the shares until all finish together;
// then islands change hands as long as that helps. Nothing it finds or does not find is a proof of anything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tangram/compose/composition.hpp"
#include "tangram/compose/search.hpp"

namespace tangram::ensemble {

struct EnsembleSearch {
  std::optional<compose::Ensemble> best;  ///< faster than what was to beat
  compose::SearchStatistics statistics;
  std::vector<parallelizer::Tally> parallelizers;  ///< what each did, in the order given; empty: nobody was asked
  std::int64_t allocations = 0;                    ///< allocations of the islands that were tried
};

/// How far to look.
enum class EnsembleEffort : std::uint8_t {
  kLook,  ///< a few allocations, of each what single pipelines without mixed stages make of it at once
  kFull,
};

/// `options.incumbent` is the closed form to beat, `options.label_budget` for all searches together,
/// `options.max_replicas` for the pipelines of all groups. Deterministic for any number of threads.
[[nodiscard]] EnsembleSearch search_ensemble(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                             std::span<const parallelizer::Parallelizer* const> parallelizers,
                                             const compose::SearchOptions& options,
                                             const compose::ProgressCallback& progress = {},
                                             EnsembleEffort effort = EnsembleEffort::kFull);

}  // namespace tangram::ensemble
