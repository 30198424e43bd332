#include "tangram/disaggregate/solve.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "prices/cut.hpp"
#include "prices/frontier.hpp"
#include "prices/price_search.hpp"
#include "prices/priced.hpp"
#include "resources.hpp"
#include "search/branch.hpp"
#include "search/descent.hpp"
#include "search/layer_counts.hpp"
#include "search/mixtures.hpp"

namespace tangram::disaggregate {

namespace {

PriceSearch price_search(const SolverEffort& effort) {
  PriceSearch search;
  search.most_steps = effort.price_steps;
  search.state_bits = effort.state_bits;
  return search;
}

class Search {
 public:
  Search(const Problem& problem, Objective objective, const SolverEffort& effort)
      : problem_(problem), objective_(objective), effort_(effort), resources_(problem) {}

  Solution run() {
    if (objective_ == Objective::kThroughput) {
      for_throughput();
    } else {
      for_latency();
    }
    return std::move(best_);
  }

 private:
  void for_throughput() {
    const Relaxation relaxation = relax(resources_, price_search(effort_));
    best_.bound = relaxation.bound;
    best_.proven = std::isinf(best_.bound);
    if (best_.proven) return;
    search_with(problem_, resources_, relaxation);
    leave_room_for_messages();
    close_gap(relaxation.prices, resources_.memory_worth(relaxation.prices));
  }

  // Placements of `tighter`, which is the problem but for its memory.
  void search_with(const Problem& tighter, const Resources& resources, const Relaxation& relaxation) {
    std::vector<Placement> starts = whole_placements(resources, relaxation);
    std::ranges::move(on_one_class(tighter), std::back_inserter(starts));
    std::vector<Placement> seen = starts;
    for (Placement& placement : best_of(resources, relaxation, std::move(starts))) {
      placement = descend(resources, relaxation.prices, std::move(placement));
      seen.push_back(placement);
      try_placement(placement);
      for (const Repeat& repeat : tighter.repeats) {
        const LayerQuery query{repeat, placement, seen, effort_.beam, best_.value};
        if (auto better = best_counts(resources, relaxation, query)) {
          placement = descend(resources, relaxation.prices, std::move(*better));
        }
      }
      try_placement(placement);
    }
  }

  // Different ones, first those that overstep the mixture's period or memory least.
  [[nodiscard]] static std::vector<Placement> best_of(const Resources& resources, const Relaxation& relaxation,
                                                      std::vector<Placement> placements) {
    constexpr std::size_t kMostStarts = 3;
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < placements.size(); ++i) {
      const Ledger ledger(resources, placements[i]);
      order.emplace_back(ledger.period() / relaxation.bound + kOverdraftWeight * ledger.overdraft(), i);
    }
    std::ranges::sort(order);
    std::vector<Placement> best;
    for (const auto& [merit, i] : order) {
      if (best.size() == kMostStarts) break;
      if (std::ranges::find(best, placements[i]) == best.end()) best.push_back(std::move(placements[i]));
    }
    return best;
  }

  // Rows of memory do not count messages alive in a pass: where a better placement does not fit because of these, room
  // is set aside for them.
  void leave_room_for_messages() {
    constexpr int kMostTries = 3;
    Problem tighter = problem_;
    for (int i = 0; i < kMostTries && overfull_ < best_.value; ++i) {
      bool is_possible = true;
      for (int c = 0; c < problem_.class_count(); ++c) {
        double& memory = at(tighter.classes, c).memory;
        memory = std::min(memory, at(problem_.classes, c).memory - at(messages_, c));
        is_possible = is_possible && memory > 0;
      }
      if (!is_possible) return;
      overfull_ = kNever;
      const Resources resources(tighter);
      const Relaxation relaxation = relax(resources, price_search(effort_));
      if (std::isinf(relaxation.bound)) return;
      search_with(tighter, resources, relaxation);
    }
  }

  void for_latency() {
    std::vector<double> prices(static_cast<std::size_t>(resources_.rows()), 0);
    for (int f = 0; f < static_cast<int>(problem_.phases.size()); ++f) {
      at(prices, resources_.path_row(f)) = at(problem_.phases, f).in_flight;
    }
    PricedProblem priced(resources_);
    priced.set_prices(prices);
    const Cheapest cheapest =
        problem_.class_count() == 2 ? cheapest_by_cut(priced) : Frontier(priced, effort_.state_bits).cheapest(priced);
    best_.bound = cheapest.bound;
    std::vector<Placement> starts = on_one_class(problem_);
    starts.push_back(cheapest.placement);
    for (const Placement& start : starts) try_placement(start);
    if (!best_.found) {
      for (const Placement& start : starts) try_placement(descend(resources_, prices, start));
    }
    constexpr double kClosed = 1e-9;
    constexpr int kMostKernels = 600;  // each move of a descent is worked out whole
    if (best_.found && best_.gap() > kClosed && problem_.kernel_count() <= kMostKernels) {
      try_placement(descend_latency(problem_, best_.placement));
    }
    close_gap(std::move(prices), 0);
  }

  void close_gap(std::vector<double> prices, double credit) {
    if (problem_.kernel_count() > effort_.most_exact) return;
    const BranchQuery query{objective_, std::move(prices), credit, effort_.most_nodes};
    best_.proven = branch(resources_, query, best_);
    if (best_.proven && !best_.found) best_.bound = kNever;
  }

  void try_placement(const Placement& placement) {
    Usage usage = usage_of(problem_, placement);
    const double value = value_of(problem_, usage, objective_);
    if (!usage.fits) {
      if (value < overfull_) note_messages(placement, usage, value);
      return;
    }
    if (value >= best_.value) return;
    best_.found = true;
    best_.placement = placement;
    best_.usage = std::move(usage);
    best_.value = value;
  }

  // Of a placement that may fit but for its messages.
  void note_messages(const Placement& placement, const Usage& usage, double value) {
    const Ledger ledger(resources_, placement);
    if (ledger.overdraft() > 0) return;
    overfull_ = value;
    messages_.assign(problem_.classes.size(), 0);
    for (int c = 0; c < problem_.class_count(); ++c) {
      const double memory = at(problem_.classes, c).memory;
      if (!std::isinf(memory)) {
        at(messages_, c) = at(usage.memory, c) - at(ledger.rows(), resources_.memory_row(c)) * memory;
      }
    }
  }

  const Problem& problem_;
  const Objective objective_;
  const SolverEffort& effort_;
  const Resources resources_;
  Solution best_;
  double overfull_ = kNever;      // value of the best placement that fits but for its messages
  std::vector<double> messages_;  // bytes of these, by class
};

}  // namespace

double value_of(const Problem& problem, const Usage& usage, Objective objective) {
  if (objective == Objective::kThroughput) return usage.period;
  double sum = 0;
  for (std::size_t f = 0; f < problem.phases.size(); ++f) sum += problem.phases[f].passes * usage.latency[f];
  return sum;
}

Solution solve(const Problem& problem, Objective objective, const SolverEffort& effort) {
  return Search(problem, objective, effort).run();
}

double period_bound(const Problem& problem, const SolverEffort& effort) {
  return relax(Resources(problem), price_search(effort)).bound;
}

}  // namespace tangram::disaggregate
