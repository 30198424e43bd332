// What is tried, and why the rest is not needed.
//
// Dominance. A stage's sync is only exposed once the gradients of R replicas are added, which the composer does later:
//     A = T + max(0, g + x - rho w),   w = T - F   =>   A = max( T , (1 - rho) T + g + x + rho F )
// with the whole sync g inside the stage, x >= 0 that of the replicas (it depends on the gradients of the slice and on
// the shape, hence is the same for all plans of a query) and rho = kSyncOverlap in [0, 1]. A never falls when T, F or g
// grows, whatever x is. A plan that is no better in (T, F, g, o, n_max) is therefore no better in (T, F, A, o, n_max)
// for any x either, and plans are compared by the former.
//
// Recompute. Full recompute of r blocks changes T and memory alone. T grows with r; a recomputed block brings back at
// most what it did not keep for one microbatch, so that n_max never falls. Of all r with equal n_max the smallest is
// the best, and only these are looked for, in one run of equal blocks after the other: inside a run the transient
// buffers stay the same and each further block saves as much as the last. Once a plan that is no worse otherwise holds
// `max_in_flight`, more recompute brings nothing. (n_max itself is never capped.)
#include "search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tangram/prune/frontier.hpp"

namespace tangram::parallelizer {
namespace {

using cost::RecomputeMode;

struct Trial {
  cost::MemoryPolicy policy;
  cost::StageCost cost;
  std::int64_t n_max = 0;
};

class Search {
 public:
  Search(const StrategySpace& space, const Query& query)
      : space_(space), query_(query), usable_(query.shape.device.usable()), satisfied_(space.chains, false) {
    tried_.reserve(space.families.size() * 4);
    candidates_.reserve(space.families.size() * 4);
  }

  Outcome run(const std::string& name) {
    for (const Family& family : space_.families) {
      if (satisfied_[family.chain]) continue;
      if (family.recompute == RecomputeMode::kFull) {
        try_full(family);
      } else {
        try_uniform(family);
      }
    }
    return candidates_.empty() ? infeasible() : frontier(name);
  }

 private:
  Trial evaluate(const Family& family, int layers) {
    Trial trial;
    trial.policy = {family.zero, family.recompute, layers};
    trial.cost = cost::stage_cost(space_.units[family.units], query_.slice, trial.policy);
    trial.n_max = cost::max_in_flight(trial.cost, usable_);
    if (trial.cost.peak(1) < leanest_peak_) {
      leanest_peak_ = trial.cost.peak(1);
      leanest_ = {space_.units[family.units].degrees, trial.policy};
    }
    return trial;
  }

  static prune::Candidate candidate(const cost::StageCost& cost, std::int64_t n_max) {
    return {.T = (cost.forward + cost.backward).value(),
            .F = cost.forward.value(),
            .A = cost.gradient_sync.value(),
            .o = cost.optimizer_step.value(),
            .n_max = n_max,
            .source = 0};
  }

  void keep(const Family& family, const Trial& trial) {
    if (trial.n_max < 1) return;
    prune::Candidate entry = candidate(trial.cost, trial.n_max);
    if (dominated(entry)) return;
    std::erase_if(candidates_, [&entry](const prune::Candidate& old) { return prune::dominates(entry, old); });
    entry.source = static_cast<std::int32_t>(tried_.size());
    candidates_.push_back(entry);
    tried_.push_back({family.units, trial});
  }

  /// By a strategy tried before, hence a simpler one.
  bool dominated(const prune::Candidate& entry) {
    if (last_winner_ < candidates_.size() && prune::dominates(candidates_[last_winner_], entry)) return true;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!prune::dominates(candidates_[i], entry)) continue;
      last_winner_ = i;
      return true;
    }
    return false;
  }

  void try_uniform(const Family& family) {
    const Trial trial = evaluate(family, 0);
    keep(family, trial);
    if (family.recompute == RecomputeMode::kNone) satisfied_[family.chain] = trial.n_max >= query_.max_in_flight;
  }

  void try_full(const Family& family) {
    const Trial leanest = evaluate(family, query_.slice.block_count());
    int before = 0;
    for (const auto& [type, count] : query_.slice.runs) {
      if (!try_run(family, before + 1, before + count, leanest)) break;
      before += count;
    }
  }

  /// Full recompute of `fewest` to `most` blocks, all inside one run. `leanest` recomputes all blocks of the slice.
  /// False: more blocks than these are of no use.
  bool try_run(const Family& family, int fewest, int most, const Trial& leanest) {
    const auto with = [&](int layers) {
      return layers == leanest.policy.recompute_layers ? leanest : evaluate(family, layers);
    };
    Trial current = with(fewest);
    keep(family, current);
    if (!worth_more(current, leanest)) return false;
    const Trial last = most == fewest ? current : with(most);
    while (worth_more(current, last)) {
      current = next_step(family, current, last);
      keep(family, current);
    }
    return true;
  }

  /// Plans with more recompute than `current`, up to that of `last`, are no faster than the former and hold no more
  /// than the latter; what they hold beyond max_in_flight is of no use.
  bool worth_more(const Trial& current, const Trial& last) {
    const std::int64_t goal = std::min(last.n_max, query_.max_in_flight);
    return current.n_max < goal && !dominated(candidate(current.cost, goal));
  }

  /// The fewest recomputed blocks that hold more microbatches than `current`. Activations fall nearly linearly (they
  /// are rounded to bytes) from `current` to `leanest`: a guess, put right by looking at its neighbours.
  Trial next_step(const Family& family, const Trial& current, const Trial& leanest) {
    const int first = current.policy.recompute_layers + 1;
    const int last = leanest.policy.recompute_layers;
    int layers = std::clamp(guess_layers(current, leanest), first, last);
    Trial found = evaluate(family, layers);
    while (found.n_max <= current.n_max && layers < last) found = evaluate(family, ++layers);
    while (layers > first) {
      Trial fewer = evaluate(family, layers - 1);
      if (fewer.n_max <= current.n_max) break;
      found = fewer;
      --layers;
    }
    return found;
  }

  int guess_layers(const Trial& current, const Trial& leanest) const {
    const Bytes room = usable_ - current.cost.static_memory() - current.cost.transient;
    const double wanted = room.as_double() / static_cast<double>(current.n_max + 1);
    const double surplus = current.cost.activation.as_double() - wanted;
    const double range = (current.cost.activation - leanest.cost.activation).as_double();
    const int span = leanest.policy.recompute_layers - current.policy.recompute_layers;
    if (!(range > 0)) return leanest.policy.recompute_layers;
    const double steps = std::clamp(std::ceil(surplus / range * span), 0.0, static_cast<double>(span));
    return current.policy.recompute_layers + static_cast<int>(steps);
  }

  Outcome frontier(const std::string& name) const {
    Outcome outcome;
    for (const prune::Candidate& kept : prune::pareto(candidates_)) {
      const auto& [units, trial] = tried_[static_cast<std::size_t>(kept.source)];
      outcome.plans.push_back(
          {{space_.units[units].degrees, trial.policy}, trial.cost, trial.n_max, name, /*opaque=*/""});
    }
    return outcome;
  }

  Outcome infeasible() const;

  const StrategySpace& space_;
  const Query& query_;
  const Bytes usable_;
  std::vector<bool> satisfied_;                       ///< by chain: no recompute holds max_in_flight
  std::vector<std::pair<std::size_t, Trial>> tried_;  ///< with the index of their units
  std::vector<prune::Candidate> candidates_;  ///< those of `tried_` not dominated so far; A stands for the whole sync
  std::size_t last_winner_ = 0;
  Bytes leanest_peak_ = Bytes::max();
  cost::Strategy leanest_;
};

std::string describe(const cost::Strategy& strategy) {
  const cost::Degrees& d = strategy.degrees;
  std::string text = fmt::format("tp {}{}, cp {}, dp {}", d.tp, d.sequence_parallel ? " with sp" : "", d.cp, d.dp);
  if (d.ep > 1 || d.etp > 1) text += fmt::format(", ep {}, etp {}", d.ep, d.etp);
  text += fmt::format(", ZeRO-{}", strategy.policy.zero);
  switch (strategy.policy.recompute) {
    case RecomputeMode::kNone: return text + ", no recompute";
    case RecomputeMode::kSelective: return text + ", selective recompute";
    case RecomputeMode::kFull: break;
  }
  return text + fmt::format(", full recompute of {} blocks", strategy.policy.recompute_layers);
}

Outcome Search::infeasible() const {
  constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
  Outcome outcome;
  outcome.status = OutcomeStatus::kInfeasible;
  outcome.shortage = leanest_peak_ - usable_;
  outcome.message =
      fmt::format("the leanest way ({}) needs {:.2f} GiB per GPU for one microbatch, {:.2f} GiB are usable",
                  describe(leanest_), leanest_peak_.as_double() / kGiB, usable_.as_double() / kGiB);
  return outcome;
}

}  // namespace

Outcome search(const StrategySpace& space, const Query& query, const std::string& name) {
  if (!space.units.empty()) return Search(space, query).run(name);
  Outcome outcome;
  outcome.status = OutcomeStatus::kUnsupported;
  outcome.message = space.unsupported;
  return outcome;
}

}  // namespace tangram::parallelizer
