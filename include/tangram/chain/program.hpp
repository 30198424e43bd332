// One composition problem in plain numbers: fixed island level, replicas R and microbatch b. Goes in: frontiers per
// option and slice signature, boundary prices, units per class. Comes out: the best chains of stages. Knows nothing of
// GPUs or models, so that it can be tested against a brute force.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/base/deadline.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/chain/cut_yield.hpp"
#include "tangram/chain/interleaving.hpp"
#include "tangram/chain/solver_tuning.hpp"
#include "tangram/prune/frontier.hpp"

namespace tangram::chain {

using prune::Candidate;

struct Use {
  int island_class = 0;
  int units = 0;
  bool operator==(const Use&) const = default;
};

/// What one stage may run on: a shape of one class, or several for a mixed stage.
struct Option {
  std::vector<Use> uses;                   ///< distinct classes, ascending
  int key = 0;                             ///< options of equal key see equal boundary prices
  std::vector<std::int64_t> weights = {};  ///< what it adds to each of Program::placement; empty: nothing
};

/// What the first stage of a pipeline adds to the end of an iteration: A + o of a plan that holds n_max. The stages
/// before it in the backward pass have drained by then, so that none of it hides.
struct Drain {
  std::int64_t cost = 0;  ///< ns
  std::int64_t n_max = 0;
};

struct Program {
  int blocks = 0;  ///< of a model or, where it is cut at some places alone, what lies between two of these
  /// [cut] Blocks of the model in front of it, cuts 0 .. blocks; empty: as many as its number says.
  std::vector<int> blocks_before;
  std::int64_t microbatches = 1;  ///< M
  std::vector<int> inventory;     ///< units per class
  /// What the units of a chain may cost altogether, in any currency (GPUs, micro-dollars per hour), and one unit of
  /// each class. Empty: no limit beside the inventory.
  std::vector<std::int64_t> unit_spend;
  std::int64_t most_spend = INT64_MAX;
  /// Weights of the options of a chain add up to no more: its shapes can be placed. Bounds do not count on it.
  std::vector<std::int64_t> placement;
  std::vector<Option> options;
  int keys = 0;
  int signatures = 0;
  Grid<int> signature;                     ///< by first block and last, [first, last); -1: no slice
  Grid<std::vector<Candidate>> frontiers;  ///< by option and signature, each as prune::pareto gives it
  /// By option and signature: least F and least T - F of any plan. Only where frontiers are relaxed, as the next two.
  Grid<std::int64_t> least_forward;
  Grid<std::int64_t> least_backward;
  std::int64_t slowest = 0;  ///< largest T behind relaxed ones; whole frontiers say it themselves
  /// By option and last, of the slice [0, last), both components ascending. Only where frontiers are relaxed; whole
  /// frontiers say it themselves.
  Grid<std::vector<Drain>> drains;
  std::vector<int> cut_kind;  ///< [cut], cuts 0 .. blocks
  /// A stage of which d - 1 follow holds d microbatches and no more: 1F1B with warm-ups S - 1 - s. Without it, more
  /// hide the latency of boundaries.
  bool classic_warmup = false;
  /// Stages stop for what they hand over, as Megatron-LM's 1F1B does: a period holds T and the latencies of both
  /// boundaries of a stage. Asks for classic warm-ups: with others, stages would wait for each other for ever.
  bool blocking_transfers = false;
  /// Candidates may put weight gradients off (Candidate::W, 0 of all others): not with blocking transfers or several
  /// model chunks.
  bool zero_bubble = false;
  /// More than one model chunk a stage: numbers are then of passes of one chunk, see there. Asks for classic warm-ups.
  Interleaving interleaving;
  /// By option and block of the model, where chunks are interleaved: how long the blocks in front of it take there, in
  /// any unit; empty: all blocks take equally long.
  Grid<std::int64_t> work_before;
  std::vector<Grid<Price>> prices;  ///< [kind of cut], by the keys of the stages in front of it and behind

  [[nodiscard]] std::int64_t spend_of(const Option& option) const {
    std::int64_t spend = 0;
    for (const Use& use : option.uses) {
      if (!unit_spend.empty()) spend += at(unit_spend, use.island_class) * use.units;
    }
    return spend;
  }
  /// Units per class, then what may be spent where that is limited: all that options draw on.
  [[nodiscard]] std::vector<std::int64_t> resources() const {
    std::vector<std::int64_t> result(inventory.begin(), inventory.end());
    if (!unit_spend.empty()) result.push_back(most_spend);
    return result;
  }
  [[nodiscard]] bool is_interleaved() const { return interleaving.chunks > 1; }
  /// Microbatches (interleaved: passes) that the depth-th stage from the end holds at least; INT64_MAX: so long a
  /// pipeline has no group.
  [[nodiscard]] std::int64_t least_held(std::int64_t depth) const {
    if (!is_interleaved()) return std::min(depth, microbatches);
    const std::int64_t group = interleaving.least_group(depth);
    return group == 0 ? INT64_MAX : std::min(2 * depth - 1 + (interleaving.chunks - 1) * group, microbatches);
  }
  /// By how many microbatches (interleaved: passes) a classic warm-up is longer than that of the stage behind.
  [[nodiscard]] std::int64_t warmup_step() const { return is_interleaved() ? 2 : 1; }
  [[nodiscard]] int signature_of(int first, int last) const { return signature(first, last); }
  /// Of the model, in front of a cut and between two cuts.
  [[nodiscard]] int block_at(int cut) const { return blocks_before.empty() ? cut : at(blocks_before, cut); }
  [[nodiscard]] int blocks_between(int first, int last) const { return block_at(last) - block_at(first); }
  [[nodiscard]] const std::vector<Candidate>& frontier(int option, int signature_id) const {
    return frontiers(option, signature_id);
  }
  [[nodiscard]] const Price& price(int cut, int from_key, int to_key) const {
    return at(prices, at(cut_kind, cut))(from_key, to_key);
  }
};

struct ChainStage {
  int option = 0;
  int first = 0;  ///< blocks [first, last)
  int last = 0;
  Candidate candidate;
};

/// A complete pipeline of the program with its closed form.
struct Chain {
  std::vector<ChainStage> stages;
  std::vector<std::int64_t> in_flight;  ///< n_s, not capped
  std::int64_t period = 0;              ///< smallest feasible P
  std::int64_t time = 0;                ///< t = A + (M-1) P + max o; interleaved: and the wait for the way around
  std::int64_t group = 0;               ///< G of interleaved chains: microbatches that pass a chunk in a row
};

/// Between a stage of the chain and the next one.
[[nodiscard]] inline const Price& boundary_after(const Program& program, const Chain& chain, std::size_t stage) {
  const auto key = [&](std::size_t s) { return at(program.options, chain.stages[s].option).key; };
  return program.price(chain.stages[stage].last, key(stage), key(stage + 1));
}

/// Between the last stage of a chain and its first one, where chunks are interleaved.
[[nodiscard]] inline const Price& boundary_around(const Program& program, const Chain& chain) {
  const auto key = [&](const ChainStage& stage) { return at(program.options, stage.option).key; };
  return program.interleaving.around(key(chain.stages.back()), key(chain.stages.front()));
}

/// Microbatches (interleaved: passes) whose activations a stage holds.
[[nodiscard]] inline std::int64_t held_by(const Program& program, const Chain& chain, std::size_t stage) {
  const std::int64_t of_groups = (program.interleaving.chunks - 1) * chain.group;
  return std::min(chain.in_flight[stage] + of_groups, program.microbatches);
}

/// A chain with its iteration time under its schedule, pass by pass; at most its closed form where links are fast.
struct TimedChain {
  Chain chain;
  std::int64_t time = 0;
};

/// Closed form of a chain (src/chain/README.md): finds the smallest whole-nanosecond period at which every T and link
/// occupancy fits (where transfers block: T and both latencies) and every stage can hold its microbatches. False: no
/// period is feasible. O(S log P).
[[nodiscard]] bool evaluate(const Program& program, Chain& chain);

/// Whether its stages can all be had: units of each class, places for them and what may be spent.
[[nodiscard]] bool has_room(const Program& program, const Chain& chain);

/// An interleaved chain, as evaluate() leaves it, with microbatches in groups of another size; false: a stage does not
/// hold them, or the runtime does not take them.
[[nodiscard]] bool regroup(const Program& program, std::int64_t group, Chain& chain);

/// Makes the frontier of (option, signature) whole where a program holds a relaxed one: (T, n_max) staircases with the
/// same fastest plan for every number of microbatches in flight.
using Refine = std::function<std::vector<Candidate>(int option, int signature)>;

/// The times below which another plan is of interest to somebody who has one of `time` and does not mind if it is
/// slower than the best by this share.
[[nodiscard]] std::int64_t of_interest(std::int64_t time, double accepted_gap);

struct ProgramLimits {
  std::int64_t incumbent = INT64_MAX;  ///< only chains with time < incumbent are of interest
  double accepted_gap = 0;             ///< a chain is good enough when none is faster by more than this share
  std::int64_t label_budget = INT64_MAX;
  Deadline deadline;   ///< ends the search as a budget of labels does
  int keep = 8;        ///< chains returned
  bool timed = false;  ///< also look for chains that are faster pass by pass: ProgramResult::timed
  std::int64_t timed_incumbent = INT64_MAX;  ///< TimedChain::time from which on chains are not looked into
  /// Only looks for chains with time < incumbent that are fast pass by pass, and proves nothing: ProgramResult::timed.
  bool only_timetables = false;
  Refine refine;  ///< empty: the program's frontiers are whole
  SolverTuning tuning;
};

struct ProgramResult {
  std::vector<Chain> chains;       ///< ascending time, then canonical order; the first one is the best found
  std::vector<TimedChain> timed;   ///< of chains near those, the fastest pass by pass; at most as many
  bool finished = true;            ///< false: the label budget or the deadline ended the search
  std::int64_t bound = INT64_MAX;  ///< no chain of the program is faster than this, or than incumbent
  std::int64_t labels = 0;         ///< of relaxed frontiers and of the exact search: what label_budget counts
  std::int64_t beam_labels = 0;    ///< of the beam searches
  std::int64_t states = 0;
  std::int64_t windows = 0;
  CutYield cuts;
  std::int64_t frontier_plans = 0;  ///< of the frontiers that were made whole
};

/// The label-setting dynamic program of src/chain/README.md over windows of the period, best bound first. Exact when
/// it finishes and no gap is accepted: either chains.front().time is the minimum over the program, or there is no chain
/// faster than incumbent.
/// Time and memory are governed by the number of labels; each costs O(extensions kept by the completion bound).
[[nodiscard]] ProgramResult solve(const Program& program, const ProgramLimits& limits);

/// A lower bound on the time of any chain that takes no search: the Lagrangian relaxation of the unit budget over all
/// periods. INT64_MAX: infeasible even relaxed. With `interest`, the answer is only exact about whether it is below it:
/// the first window that is ends the computation.
[[nodiscard]] std::int64_t root_bound(const Program& program, std::int64_t interest = INT64_MAX,
                                      const SolverTuning& tuning = {});

}  // namespace tangram::chain
