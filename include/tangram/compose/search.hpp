// The search over a named space. Goes in: model, island hierarchy, parallelizers. Comes out: the best compositions by
// closed form, what was searched, and how far from the best possible the first one can be.
//
// For every island level, granularity, microbatch b and number of replicas R: query the parallelizers for slice
// signatures on every shape, price what crosses islands (replica and mixed-stage gradient reduction, tied embeddings,
// boundaries), prune exactly, solve the composition program. Programs whose relaxation is no better than the best plan
// so far are not solved; where slices of few lengths suffice to say so, no others are queried.
#pragma once

#include <climits>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "tangram/cluster/islands.hpp"
#include "tangram/compose/composition.hpp"
#include "tangram/model/model.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

namespace tangram::compose {

/// What a target adds to the space (target.hpp).
struct Constraints {
  parallelizer::Demands demands;       ///< of every stage
  bool classic_warmup = false;         ///< Program::classic_warmup
  std::vector<std::string> gpu_types;  ///< of classes that stages may use; empty: all
};

using MicroDollarsPerHour = Quantity<struct MicroDollarsPerHourTag, std::int64_t>;

/// Of one GPU of the class; zero where it is not known.
[[nodiscard]] MicroDollarsPerHour price_of(const cluster::IslandClass& island_class);

enum class Currency : std::uint8_t { kGpus, kMicroDollarsPerHour };

/// What all GPUs of a plan may cost together.
struct SpendLimit {
  Currency currency = Currency::kGpus;
  std::int64_t most = 0;
};

/// Labels that finish the search on nearly all fleets of up to 256 GPUs. On larger ones a label takes longer and to
/// finish takes many times as many: these bring most within 2.5 % of the best.
[[nodiscard]] std::int64_t usual_label_budget(int gpus);

struct SearchOptions {
  bool timed = false;  ///< also look for plans that are faster pass by pass: SearchResult::timed
  int top = 4;         ///< compositions returned by closed form, and as many by timetable
  std::int64_t label_budget = usual_label_budget(INT_MAX);  ///< labels of the whole search; states, not seconds, decide
  int max_replicas = 1 << 20;                               ///< --max-pipelines
  int max_parts = 2;                                        ///< partial plans in a mixed stage; 1: none
  Constraints constraints;
  std::optional<SpendLimit> spend;
  Nanoseconds incumbent = Nanoseconds::max();  ///< only plans with a smaller closed form are of interest
  double accepted_gap = 0;                     ///< the search ends once no plan can be faster by more than this share
  const cost::ProfileSet* profiles = nullptr;  ///< what the parallelizers measure with; bounds stay below it
  std::optional<Nanoseconds> relaxed_bound;    ///< where another search of the job on the fleet has worked it out
};

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

}  // namespace tangram::compose
