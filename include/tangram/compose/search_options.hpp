// What a search is asked for beside the job and the fleet: how far to look, what a target allows, what may be spent.
#pragma once

#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tangram/base/deadline.hpp"
#include "tangram/base/units.hpp"
#include "tangram/cluster/price.hpp"
#include "tangram/compose/encoder_placement.hpp"
#include "tangram/compose/search_tuning.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/parallelizer/parallelizer.hpp"
#include "tangram/runtime/runtime.hpp"

namespace tangram::compose {

/// What a target adds to the space (target.hpp).
struct Constraints {
  parallelizer::Demands demands;       ///< of every stage
  runtime::Semantics semantics;        ///< of the schedule that plans are made for
  std::vector<std::string> gpu_types;  ///< of classes that stages may use; empty: all
  int max_replicas = 0;                ///< equal pipelines at most; 0: as many as the search looks at
  bool expert_parallel = true;         ///< where the job has it
  bool pipeline = true;                ///< where the job has it; else one stage
  std::vector<int> chunks{1};          ///< numbers of model chunks that a stage may have
  std::vector<int> later_chunks;       ///< the same of a case like this one that is searched after it
  bool put_off = false;                ///< zero bubble: stages may put weight gradients off
};

using cluster::MicroDollarsPerHour;

enum class Currency : std::uint8_t { kGpus, kMicroDollarsPerHour };

/// What all GPUs of a plan may cost together.
struct SpendLimit {
  Currency currency = Currency::kGpus;
  std::int64_t most = 0;
};

/// Labels that finish the search on nearly all fleets of up to 256 GPUs. On larger ones a label takes longer and to
/// finish takes many times as many: these bring most within 2.5 % of the best.
[[nodiscard]] std::int64_t usual_label_budget(int gpus, const ProgramTuning& tuning = {});

/// How finely a model is cut. What a search takes grows with the square of the places where a stage may end.
struct CutLimits {
  int blocks = 256;    ///< models of up to so many may be cut between any two: seconds to a minute on 64 GPUs
  int segments = 128;  ///< that deeper ones are cut into, at most
};

struct SearchOptions {
  bool timed = false;  ///< also look for plans that are faster pass by pass: SearchResult::timed
  int top = 4;         ///< compositions returned by closed form, and as many by timetable
  std::int64_t label_budget = usual_label_budget(INT_MAX);  ///< labels of the whole search; states, not seconds, decide
  Deadline deadline;  ///< ends the search wherever it is, as if its labels were spent; it passes for all copies
  int max_replicas = 1 << 20;  ///< --max-pipelines
  int max_parts = 2;           ///< partial plans in a mixed stage; 1: none
  Constraints constraints;
  CutLimits cuts;
  std::optional<SpendLimit> spend;
  Nanoseconds incumbent = Nanoseconds::max();  ///< only plans with a smaller closed form are of interest
  double accepted_gap = 0;                     ///< the search ends once no plan can be faster by more than this share
  /// Of a runtime with one set of degrees for all stages, only those that are as wide (tp, GPUs) as one of these;
  /// empty: all.
  std::vector<cost::Degrees> near_degrees;
  std::optional<runtime::Schedule> schedule;  ///< that plans must have; none: any of the target's; of generic 1F1B
  EncoderPlacement placement = EncoderPlacement::kAny;  ///< of encoders; search_target() sees to it
  std::optional<runtime::Rule> lifted;                  ///< of the target's, to see what it costs
  const cost::ProfileSet* profiles = nullptr;           ///< what the parallelizers measure with; bounds stay below it
  std::optional<Nanoseconds> relaxed_bound;             ///< where it is known, or 0 where nobody asks for it
  SearchTuning tuning;
};

}  // namespace tangram::compose
