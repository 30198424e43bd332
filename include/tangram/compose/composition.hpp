// What the composer found. Goes in: nothing (values only). Comes out: pipelines in terms of island classes, counted and
// not yet named; the plan module gives them nodes and ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tangram/chain/cut_yield.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/cost/colocated.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/parallelizer/tally.hpp"

namespace tangram::compose {

using chain::CutYield;

/// One partial plan inside a stage.
struct PartChoice {
  int island_class = 0;  ///< index into the level's classes
  int gpus = 0;          ///< of the shape, see cluster::make_shape
  int samples = 0;       ///< of the stage's microbatch
  parallelizer::PartialPlan plan;
  int member = kAnyMember;  ///< parts of a pipeline on the class with equal numbers share a member: links count on it

  static constexpr int kAnyMember = -1;
};

struct StageChoice {
  int first = 0;  ///< blocks [first, last); interleaved: as many, and those at the model's ends
  int last = 0;
  std::vector<model::BlockRange> chunks = {};  ///< where its blocks are, interleaved
  std::vector<PartChoice> parts;               ///< one, or several for a mixed stage
  Nanoseconds T;                               ///< max over parts of forward + backward
  Nanoseconds F;                               ///< max over parts of forward
  Nanoseconds A;  ///< T plus the exposed gradient synchronisation, replicas and mixed parts included
  Nanoseconds o;
  Nanoseconds crossing;  ///< gradient synchronisation beside each part's own: replicas, parts, tied ends
  std::int64_t in_flight =
      1;  ///< n of src/chain/README.md, capped at M; interleaved: passes of one chunk that it holds
  cost::BoundaryCost to_next;  ///< zero for the last stage; interleaved: of that to the first
  /// Link to the next stage, per member and already reduced to the shapes' shares, so that cost::boundary_cost of the
  /// microbatch's bytes, this link and the two shapes' members and GPUs gives to_next. Between mixed stages: of the
  /// pair of parts with the largest price, counting the members and GPUs of `link_source` and `link_target` (part
  /// indices).
  cluster::Link link_to_next;
  int link_source = 0;
  int link_target = 0;
};

/// Encoders on all GPUs of the pipelines, whose stages then have the blocks of the language model alone.
struct ColocatedEncoders {
  cost::EncoderTurns turns = cost::EncoderTurns::kThreePhases;
  std::vector<cost::EncoderLayout> layouts;  ///< of each encoder
  cluster::Link handover_link;               ///< slowest between the GPUs of a pipeline (cost::EncoderHandover)
  cluster::Link sync_link;                   ///< slowest between any two members that the plan uses
  Nanoseconds gather;                        ///< of one round: what encoders made, to the first stage
  Nanoseconds broadcast;                     ///< of its gradients
  Bytes embeddings;                          ///< that a GPU of the first stage holds of a round, with their gradients
  std::vector<cost::EncoderCost> costs;      ///< on a GPU of each stage

  [[nodiscard]] bool each_microbatch() const { return turns == cost::EncoderTurns::kPerMicrobatch; }
};

/// R equal pipelines with aligned cuts.
struct Composition {
  int level = 0;  ///< index into IslandHierarchy::levels
  int replicas = 1;
  std::int64_t microbatch = 1;    ///< samples, global to one pipeline
  std::int64_t microbatches = 1;  ///< M of one pipeline; of one with fewer samples than others it may be one less
  std::int64_t samples = 0;       ///< of all pipelines, in shares that differ by no more than one; 0: M R b
  int chunks = 1;                 ///< model chunks of a stage; more than one: interleaved
  std::int64_t group = 0;         ///< microbatches that pass a chunk in a row, interleaved
  std::vector<StageChoice> stages;
  std::optional<ColocatedEncoders> colocated = {};
  Nanoseconds period;       ///< from one microbatch to the next; interleaved: from one pass to the next
  Nanoseconds closed_form;  ///< t of src/chain/README.md; colocated: of src/multimodal/README.md
};

/// Equal pipelines on GPUs of their own. Its gradients are reduced with those of all other groups, so that the stages'
/// A counts all of them.
struct PipelineGroup {
  Composition composition;
  cluster::IslandLevel level;  ///< with the islands and members that the group has; all classes, all links
};

/// Groups of pipelines that need not be alike and train one model together.
struct Ensemble {
  int level = 0;  ///< index into IslandHierarchy::levels
  std::vector<PipelineGroup> groups;
  Nanoseconds closed_form;  ///< of the group that is last
};

/// Whether no schedule tells them apart.
[[nodiscard]] bool is_twin(const Composition& a, const Composition& b);

/// Sorts by closed form, then by what is simpler, and keeps the first `most`.
void keep_best(std::vector<Composition>& compositions, int most);

/// A composition with its iteration time under its schedule, pass by pass (src/chain/README.md).
struct TimedComposition {
  Nanoseconds time;
  Composition composition;
};

/// Sorts by time and keeps the first `most`, none of them twice.
void keep_fastest(std::vector<TimedComposition>& compositions, int most);

/// The named space that `optimal` speaks of (src/compose/README.md), as printed in the plan.
struct Space {
  std::string name = "tangram/space-2";
  std::vector<std::string> levels;
  std::vector<int> replicas;
  std::vector<std::int64_t> microbatches;                        ///< sizes b
  std::vector<std::pair<std::string, std::vector<int>>> shapes;  ///< class alias, GPUs of its shapes
  std::vector<std::string> rules;  ///< what else belongs to the space: mixed stages, units
};

/// What the plans of one island level can give.
struct LevelReport {
  std::string name;
  int classes = 0;
  int islands = 0;
  Nanoseconds best = Nanoseconds::max();   ///< fastest plan that was found on it; max: none that was of interest
  Nanoseconds bound = Nanoseconds::max();  ///< none of its plans is faster; max: it has none
};

struct SearchStatistics {
  std::int64_t queries = 0;
  std::int64_t partial_plans = 0;   ///< returned by the parallelizers
  std::int64_t frontier_plans = 0;  ///< left after exact dominance
  std::int64_t programs = 0;        ///< (level, R, b) combinations solved
  std::int64_t programs_cut = 0;    ///< left out because their bound was no better than the incumbent
  std::int64_t labels = 0;
  std::int64_t states = 0;
  CutYield cuts;

  SearchStatistics& operator+=(const SearchStatistics& other);
};

struct SearchResult {
  std::vector<Composition> best;        ///< by closed form, at most `top`; empty: infeasible
  std::vector<TimedComposition> timed;  ///< of plans near those, the fastest pass by pass, at most `top`
  Space space;
  bool optimal = false;       ///< best.front() attains the minimum of t over the space, of the frontiers returned
  bool finished = false;      ///< the budget did not end it: `optimal`, or within the gap that was accepted
  Nanoseconds search_bound;   ///< no plan of the space is faster than this
  Nanoseconds relaxed_bound;  ///< valid for all granularities, pipelines and techniques
  SearchStatistics statistics;
  std::vector<parallelizer::Tally> parallelizers;  ///< what each did, in the order given
  std::vector<LevelReport> levels;                 ///< finest first
  Diagnostics infeasible;  ///< when best is empty: the shortage and the nearest feasible change, or that the
                           ///< budget (kIncomplete) ended before any plan was found

  /// The budget ended before any plan was found.
  [[nodiscard]] bool is_out_of_budget() const;

  /// What is worth simulating: `best`, in its order, or with `timed` by closed form; none of them twice.
  [[nodiscard]] std::vector<Composition> shortlist() const;

  /// Counts in what another search, by the same parallelizers, took.
  void add_effort_of(const SearchResult& other);
};

}  // namespace tangram::compose
