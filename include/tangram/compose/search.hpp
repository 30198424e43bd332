// The search over a named space. Goes in: model, island hierarchy, parallelizers. Comes out: the best compositions by
// closed form, what was searched, and how far from the best possible the first one can be.
//
// For every island level, granularity, microbatch b and number of replicas R: query the parallelizers for slice
// signatures on every shape, price what crosses islands (replica and mixed-stage gradient reduction, tied embeddings,
// boundaries), prune exactly, solve the composition program. Programs whose relaxation is no better than the best plan
// so far are not solved; where slices of few lengths suffice to say so, no others are queried.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "tangram/base/deadline.hpp"
#include "tangram/base/diagnostic.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/compose/composition.hpp"
#include "tangram/compose/search_options.hpp"
#include "tangram/model/model.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::compose {

/// What the search is doing, for a progress line: done of total programs, and the best iteration time so far.
struct Progress {
  int done = 0;
  int total = 0;
  std::string phase;
  Nanoseconds best = Nanoseconds::max();
};
using ProgressCallback = std::function<void(const Progress&)>;

/// Frontiers are the union of what the parallelizers return; infeasibility is a result without compositions, and so is
/// a failure of all of them (result.parallelizers tells the two apart). Deterministic for any number of threads. The
/// model's job says batch, techniques and a fixed microbatch, if any.
[[nodiscard]] SearchResult search(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                  std::span<const parallelizer::Parallelizer* const> parallelizers,
                                  const SearchOptions& options, const ProgressCallback& progress = {});

/// One Diagnostic of kind kIncomplete: the deadline passed before any plan was found.
[[nodiscard]] Diagnostics out_of_time(const Deadline& deadline);

}  // namespace tangram::compose
