// The last step of a search: its fastest plans are changed as long as that makes them faster. Goes in: what the search
// has found. Comes out: the same, with a faster plan where there is one.
#pragma once

#include <cstdint>
#include <span>

#include "batch.hpp"
#include "search_record.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/model/model.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::compose {

class FinalLocalSearch {
 public:
  FinalLocalSearch(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                   std::span<const parallelizer::Parallelizer* const> parallelizers, const BatchMaker& batches,
                   const SearchOptions& options, SearchRecord& record)
      : model_(model),
        hierarchy_(hierarchy),
        parallelizers_(parallelizers),
        batches_(batches),
        options_(options),
        record_(record) {}

  void run();

 private:
  /// A setting beside its own, where that is faster.
  [[nodiscard]] bool take_other_setting(PlacedChain& fastest);
  /// In the program of its setting. Time kNoTime: that has no such plan.
  [[nodiscard]] PlacedChain among_all_shapes(const PlacedChain& chain) const;
  /// Of a model that is not cut between any two blocks: the same search in a corridor of cuts around those of the
  /// plan, on its shapes. What comes of it is no plan of the space.
  void move_single_blocks(const PlacedChain& fastest);
  /// Passes of timetables: a few hundredths of what the search took.
  [[nodiscard]] std::int64_t effort() const;

  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  std::span<const parallelizer::Parallelizer* const> parallelizers_;
  const BatchMaker& batches_;
  const SearchOptions& options_;
  SearchRecord& record_;
};

}  // namespace tangram::compose
