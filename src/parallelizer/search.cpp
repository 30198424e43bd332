// What is tried, and why the rest is not needed.
//
// Dominance. A stage's sync is only exposed once the gradients of R replicas are added, which the composer does later:
//     A = T + max(l s, s - r w),   s = g + x,   w = T - F   =>   A = max( T + l s, (1 - r) T + s + r F )
// with the whole sync g inside the stage, x >= 0 that of the replicas (it depends on the gradients of the slice and on
// the shape, hence is the same for all plans of a query), l = kOverlapLoss and r = (1 - l) kSyncOverlap in [0, 1]. A
// never falls when T, F or g grows, whatever x is. A plan that is no better in (T, F, g, o, n_max) is therefore no
// better in (T, F, A, o, n_max) for any x either, and plans are compared by the former.
//
// Recompute. Full recompute of r blocks changes T and memory alone. T grows with r; a recomputed block brings back at
// most what it did not keep for one microbatch, so that n_max never falls. Of all r with equal n_max the smallest is
// the best, and only these are looked for, between one block of a new type and the next: the transient buffers, which
// are the largest of any recomputed block, stay the same there.
//
// In flight. What a plan holds beyond `max_in_flight` is of no use: plans are compared by min(n_max, max_in_flight),
// and once one that is no worse otherwise holds so many, more recompute brings nothing. Returned is n_max, uncapped.
//
// Known answers. What is found below a higher upper bound contains what is found below a lower one, as no plan is
// beaten by a slower one: the same members are told to a query that wants fewer of them.
//
// Chains. Strategies of equal degrees and ZeRO stage have all but T and n_max in common. What is no slower than the
// chain without recompute, and holds what full recompute of all blocks would next to the buffers of none, makes the
// whole chain superfluous. So does a chain tried before that costs no more on any slice (StrategySpace::better).
#include "search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "skyline.hpp"
#include "tangram/base/at.hpp"

namespace tangram::parallelizer {
namespace {

using cost::RecomputeMode;

/// One strategy on the query's slice.
struct Trial {
  int layers = 0;
  cost::RecomputeCost cost;
  prune::Candidate vector;  ///< A stands for the whole sync, n_max for what is of use
};

/// Strategies of equal degrees and ZeRO stage on the query's slice.
struct ChainState {
  const cost::StageCoster* coster = nullptr;  ///< as soon as it is needed
  Bytes room;                                 ///< next to the static memory
  bool none_tried = false;
  bool enough = false;     ///< no recompute holds max_in_flight: nothing else in it is of use
  bool selective = false;  ///< nothing with selective recompute beats the skyline
  bool full = false;       ///< nor with full recompute
};

/// Whether degrees are fast enough without ZeRO and recompute.
enum class Speed : std::uint8_t { kUnknown, kTooSlow, kOfUse };

/// Blocks before each that is the first of its type, the slice's first left out, and all blocks.
std::vector<int> ends_of_types(const model::SliceSignature& slice) {
  std::vector<int> ends;
  std::vector<int> seen;
  int before = 0;
  for (const auto& [type, count] : slice.runs) {
    if (std::ranges::find(seen, type) == seen.end()) {
      if (before > 0) ends.push_back(before);
      seen.push_back(type);
    }
    before += count;
  }
  ends.push_back(before);
  return ends;
}

class Search {
 public:
  Search(const StrategySpace& space, const Query& query)
      : space_(space),
        query_(query),
        blocks_(query.slice.block_count()),
        ends_of_types_(ends_of_types(query.slice)),
        speeds_(space.units.size(), Speed::kUnknown),
        chains_(space.chains) {
    constexpr std::size_t kUsualPlans = 256;  // of many families
    const std::size_t plans = std::min(kUsualPlans, 4 * space.families.size());
    costers_.reserve(space.chains);  // so that none ever moves
    tried_.reserve(plans);
    skyline_.reserve(plans);
  }

  Outcome run(const std::string& name) {
    try_all();
    if (skyline_.empty()) return too_slow_ ? Outcome{} : infeasible();
    std::vector<Member> found;
    found.reserve(skyline_.held().size());
    for (const prune::Candidate& kept : skyline_.held()) found.push_back(at(tried_, kept.source));
    Outcome outcome = tell(found, name);
    space_.known->remember(query_, std::move(found), !too_slow_);
    return outcome;
  }

  /// The plans of what is found, but those that are slower than wanted.
  Outcome tell(const std::vector<Member>& found, const std::string& name) {
    Outcome outcome;
    outcome.plans.reserve(found.size());
    for (const auto& [family, layers] : found) {
      const cost::StageCost cost = chain_of(family).coster->cost(family.recompute, layers);
      if (cost.forward + cost.backward > query_.upper_bound) break;  // the rest is no faster
      const std::int64_t n_max = cost::max_in_flight(cost, query_.shape.device.usable());
      outcome.plans.push_back({strategy(family, layers), cost, n_max, name, /*opaque=*/""});
    }
    return outcome;
  }

 private:
  void try_all() {
    for (const Family& family : space_.families) {
      if (!space_.supports(family, query_.slice)) continue;
      if (query_.demands.recompute) {
        try_demanded(family);
        continue;
      }
      const ChainState& better = chains_[space_.better[family.chain]];
      switch (family.recompute) {
        case RecomputeMode::kNone:
          if (space_.better[family.chain] == family.chain) try_none(family);
          break;
        case RecomputeMode::kSelective:
          if (!better.selective && !is_settled(family)) try_selective(family);
          break;
        case RecomputeMode::kFull:
          if (better.full || is_settled(family)) break;
          if (query_.demands.whole_recompute) {
            try_demanded(family);
          } else {
            try_full(family);
          }
          break;
      }
    }
  }

  ChainState& chain_of(const Family& family) {
    ChainState& chain = chains_[family.chain];
    if (!chain.coster) {
      chain.coster = &costers_.emplace_back(space_.units[family.units], query_.slice, family.zero);
      chain.room = query_.shape.device.usable() - chain.coster->fixed().static_memory();
    }
    return chain;
  }

  Trial evaluate(const Family& family, int layers) {
    return trial_of(family, layers, chain_of(family).coster->recompute(family.recompute, layers));
  }

  Trial trial_of(const Family& family, int layers, const cost::RecomputeCost& recompute) {
    const ChainState& chain = chains_[family.chain];
    const cost::StageCost& fixed = chain.coster->fixed();
    Trial trial{.layers = layers, .cost = recompute, .vector = {}};
    trial.vector = {.T = (fixed.forward + trial.cost.backward).value(),
                    .F = fixed.forward.value(),
                    .A = fixed.gradient_sync.value(),
                    .o = fixed.optimizer_step.value(),
                    .n_max = useful(cost::max_in_flight(chain.room - trial.cost.transient, trial.cost.activation)),
                    .source = 0};
    if (skyline_.empty()) {
      shortage_ = std::min(shortage_, trial.cost.transient + trial.cost.activation - chain.room);
    }
    return trial;
  }

  std::int64_t useful(std::int64_t in_flight) const { return std::min(in_flight, query_.max_in_flight); }

  cost::Strategy strategy(const Family& family, int layers) const {
    return {space_.units[family.units].degrees, {family.zero, family.recompute, layers}};
  }

  bool dominated(const Trial& trial) {
    return skyline_.cover(trial.vector, std::max<std::int64_t>(0, trial.vector.n_max - 1), trial.vector.n_max) >=
           trial.vector.n_max;
  }

  void keep(const Family& family, const Trial& trial) {
    prune::Candidate entry = trial.vector;
    entry.source = static_cast<std::int32_t>(tried_.size());
    skyline_.insert(entry);
    tried_.push_back({family, static_cast<std::uint16_t>(trial.layers)});
  }

  void try_demanded(const Family& family) {
    const Trial trial = evaluate(family, family.recompute == RecomputeMode::kFull ? blocks_ : 0);
    if (!dominated(trial)) keep(family, trial);
  }

  void try_none(const Family& family) {
    ChainState& chain = chains_[family.chain];
    chain.none_tried = true;
    const std::optional<Trial> tried = evaluate_in_time(family);
    if (!tried) {  // recompute takes longer still
      chain.selective = chain.full = true;
      too_slow_ = true;
      return;
    }
    const Trial& trial = *tried;
    chain.enough = trial.vector.n_max >= query_.max_in_flight;
    if (!dominated(trial)) {
      keep(family, trial);
    } else if (!chain.enough) {
      chain.selective = chain.full = is_of_no_use(chain, trial);
    }
  }

  /// Without recompute; none where that is too slow. Most degrees that are need nothing but their times.
  std::optional<Trial> evaluate_in_time(const Family& family) {
    Speed& speed = speeds_[family.units];
    if (speed == Speed::kUnknown) {
      const Nanoseconds least = cost::least_time(space_.units[family.units], query_.slice);
      speed = least > query_.upper_bound ? Speed::kTooSlow : Speed::kOfUse;
    }
    if (speed == Speed::kTooSlow) return std::nullopt;
    const Trial trial = evaluate(family, 0);
    if (trial.vector.T > query_.upper_bound.value()) return std::nullopt;
    return trial;
  }

  /// Whether recompute brings nothing in this chain. No recompute is tried only now where a better chain, which the
  /// skyline already covers, made that superfluous.
  bool is_settled(const Family& family) {
    const ChainState& chain = chains_[family.chain];
    if (!chain.none_tried) {
      Family none = family;
      none.recompute = RecomputeMode::kNone;
      try_none(none);
    }
    return chain.enough || (family.recompute == RecomputeMode::kSelective ? chain.selective : chain.full);
  }

  /// `none` is dominated: is it still with the most that any recompute can have in flight?
  bool is_of_no_use(const ChainState& chain, const Trial& none) {
    if (skyline_.empty()) return false;
    const std::int64_t most = std::max(none.vector.n_max, most_with_recompute(chain, none));
    return most < 1 || skyline_.cover(none.vector, most - 1, most) >= most;
  }

  /// What any recompute of a chain can have in flight: its buffers are no smaller than those of none.
  std::int64_t most_with_recompute(const ChainState& chain, const Trial& none) const {
    if (chain.room < none.cost.transient) return 0;
    const Bytes full = chain.coster->recompute(RecomputeMode::kFull, blocks_).activation;
    const Bytes selective = chain.coster->recompute(RecomputeMode::kSelective, 0).activation;
    return most_in_flight(chain, none, std::min(full, selective));
  }

  /// The most that fits next to the buffers of `trial` if a microbatch keeps `activation` or more.
  std::int64_t most_in_flight(const ChainState& chain, const Trial& trial, Bytes activation) const {
    // Sums over fewer and over more recomputed blocks may differ by the last bit of a double: at most a byte.
    return useful(cost::max_in_flight(chain.room - trial.cost.transient, std::max(Bytes(0), activation - Bytes(1))));
  }

  void try_selective(const Family& family) {
    const Trial trial = evaluate(family, 0);
    if (!dominated(trial)) keep(family, trial);
    chains_[family.chain].selective = true;
  }

  /// Full recompute of more and more blocks: first `current`, in the end `leanest`.
  struct Sweep {
    const Family& family;
    Trial leanest = {};
    Trial current = {};
    std::int64_t most = 0;     ///< no number of recomputed blocks holds more
    std::int64_t covered = 0;  ///< what the skyline has in flight with no worse times than `current`
  };

  void try_full(const Family& family) {
    recompute_.become(*chain_of(family).coster);
    Sweep sweep{.family = family};
    sweep.leanest = trial_of(family, blocks_, recompute_.at(blocks_));
    sweep.current = evaluate_in(sweep, 1);
    // Each recomputed block takes time, and adds to the buffers or leaves them.
    sweep.most = most_in_flight(chains_[family.chain], sweep.current, sweep.leanest.cost.activation);
    look_and_keep(sweep, std::numeric_limits<std::int64_t>::min());
    int before = 0;
    for (const int until : ends_of_types_) {
      if (before > 0) advance(sweep, evaluate_in(sweep, before + 1));
      if (!worth_more(sweep, sweep.leanest)) break;
      before = until;
      const Trial last = evaluate_in(sweep, before);
      // What holds no more than the skyline with no worse times is dominated: steps up to there are left out.
      while (worth_more(sweep, last)) advance(sweep, fewest(sweep, last, sweep.covered));
    }
    chains_[family.chain].full = sweep.covered >= sweep.leanest.vector.n_max;
  }

  Trial evaluate_in(const Sweep& sweep, int layers) {
    if (layers == sweep.leanest.layers) return sweep.leanest;
    if (layers == sweep.current.layers) return sweep.current;
    return trial_of(sweep.family, layers, recompute_.at(layers));
  }

  /// What was no slower than fewer recomputed blocks need not be looked at again.
  void advance(Sweep& sweep, const Trial& next) {
    const std::int64_t after = sweep.current.vector.T;
    sweep.current = next;
    look_and_keep(sweep, after);
  }

  void look_and_keep(Sweep& sweep, std::int64_t after) {
    const std::int64_t holds = sweep.current.vector.n_max;
    const std::int64_t least = std::max({std::int64_t{0}, sweep.covered, holds - 1});
    sweep.covered = skyline_.cover(sweep.current.vector, least, sweep.most, after);
    if (sweep.covered >= holds) return;
    keep(sweep.family, sweep.current);
    sweep.covered = holds;
  }

  /// Plans with more recompute than the current one, up to that of `last`, are no faster than the former and hold no
  /// more than the latter.
  static bool worth_more(const Sweep& sweep, const Trial& last) { return sweep.covered < last.vector.n_max; }

  /// The fewest recomputed blocks that hold more than `holds` microbatches. Activations fall from the current ones to
  /// those of `last`, linearly where blocks are equal (but for rounding to bytes): a guess, put right by looking ever
  /// farther to the side where the answer is, and by bisection from there. O(log of the guess's error) evaluations.
  Trial fewest(const Sweep& sweep, const Trial& last, std::int64_t holds) {
    const auto holds_more = [&](const Trial& trial) { return trial.vector.n_max > holds; };
    int too_few = sweep.current.layers;  // as the current ones are
    Trial found = evaluate_in(sweep, std::clamp(guess_layers(sweep, last, holds), too_few + 1, last.layers));
    for (int step = 1; !holds_more(found) && found.layers < last.layers; step *= 2) {
      too_few = found.layers;
      found = evaluate_in(sweep, std::min(found.layers + step, last.layers));
    }
    for (int step = 1; found.layers - too_few > 1; step *= 2) {
      const Trial fewer = evaluate_in(sweep, std::max(found.layers - step, too_few + 1));
      if (!holds_more(fewer)) {
        too_few = fewer.layers;
        break;
      }
      found = fewer;
    }
    while (found.layers - too_few > 1) {
      const Trial middle = evaluate_in(sweep, too_few + (found.layers - too_few) / 2);
      if (holds_more(middle)) {
        found = middle;
      } else {
        too_few = middle.layers;
      }
    }
    return found;
  }

  int guess_layers(const Sweep& sweep, const Trial& last, std::int64_t holds) const {
    const Trial& current = sweep.current;
    const Bytes room = chains_[sweep.family.chain].room - current.cost.transient;
    const double wanted = room.as_double() / static_cast<double>(holds + 1);
    const double surplus = current.cost.activation.as_double() - wanted;
    const double range = (current.cost.activation - last.cost.activation).as_double();
    const int span = last.layers - current.layers;
    if (!(range > 0)) return last.layers;
    const double steps = std::clamp(std::ceil(surplus / range * span), 0.0, static_cast<double>(span));
    return current.layers + static_cast<int>(steps);
  }

  Outcome infeasible() const;

  const StrategySpace& space_;
  const Query& query_;
  const int blocks_;
  const std::vector<int> ends_of_types_;
  std::vector<Speed> speeds_;  ///< by units
  std::vector<ChainState> chains_;
  std::vector<cost::StageCoster> costers_;
  cost::FullRecompute recompute_;  ///< of the chain that is being swept
  std::vector<Member> tried_;
  Skyline skyline_;                ///< of `tried_`
  bool too_slow_ = false;          ///< some strategy takes longer than is of use, whether it fits or not
  Bytes shortage_ = Bytes::max();  ///< of the leanest strategy, as long as nothing fits
};

Outcome Search::infeasible() const {
  Outcome outcome;
  outcome.status = OutcomeStatus::kInfeasible;
  outcome.shortage = shortage_;
  return outcome;
}

}  // namespace

Outcome search(const StrategySpace& space, const Query& query, const std::string& name) {
  Outcome outcome;
  outcome.message = space.why_unsupported(query.slice);
  if (!outcome.message.empty()) {
    outcome.status = OutcomeStatus::kUnsupported;
    return outcome;
  }
  Search search(space, query);
  const auto known = space.known->recall(query);
  return known ? search.tell(*known, name) : search.run(name);
}

}  // namespace tangram::parallelizer
