#include "tangram/compose/objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "relaxed_bound.hpp"

namespace tangram::compose {

namespace {

constexpr std::int64_t kNoLimit = INT64_MAX;
constexpr double kRounding = 1e-9;         // of sums in doubles, relative
constexpr double kCostStep = 0.9;          // of the limit: plans that spend more are looked for together
constexpr double kParetoStep = 6.0 / 7.0;  // of the limit, from one plan of the list to the next

const cluster::IslandClass& class_of(const Composition& composition, const PartChoice& part,
                                     const cluster::IslandHierarchy& hierarchy) {
  const cluster::IslandLevel& level = hierarchy.levels[static_cast<std::size_t>(composition.level)];
  return level.classes[static_cast<std::size_t>(part.island_class)];
}

bool prices_are_known(const cluster::IslandHierarchy& hierarchy) {
  const std::vector<cluster::IslandClass>& classes = hierarchy.levels.front().classes;
  return std::ranges::all_of(classes, [](const cluster::IslandClass& c) { return price_of(c).value() > 0; });
}

std::int64_t cheapest_gpu(const cluster::IslandHierarchy& hierarchy) {
  std::int64_t least = kNoLimit;
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    for (const cluster::IslandClass& c : level.classes) least = std::min(least, price_of(c).value());
  }
  return std::max<std::int64_t>(1, least);
}

// Searches one after the other, under limits, from one label budget.
class Walk {
 public:
  Walk(const SearchOptions& options, const LimitedSearch& search) : options_(options), search_(search) {}

  SearchResult step(const std::optional<SpendLimit>& limit, Nanoseconds longest) {
    SearchOptions options = options_;
    options.spend = limit;
    options.label_budget = std::max<std::int64_t>(1, options_.label_budget - effort_.statistics.labels);
    if (longest != Nanoseconds::max()) options.incumbent = std::min(options.incumbent, longest + Nanoseconds(1));
    options.relaxed_bound = relaxed_;
    SearchResult found = search_(options);
    relaxed_ = found.relaxed_bound;
    ++steps_;
    effort_.add_effort_of(found);
    return found;
  }
  [[nodiscard]] bool is_spent() const { return effort_.statistics.labels >= options_.label_budget; }
  [[nodiscard]] const SearchResult& effort() const { return effort_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

 private:
  const SearchOptions& options_;
  const LimitedSearch& search_;
  SearchResult effort_;  // statistics and parallelizers alone
  std::optional<Nanoseconds> relaxed_;
  std::int64_t steps_ = 0;
};

std::optional<SpendLimit> money(std::int64_t most) {
  if (most == kNoLimit) return std::nullopt;
  return SpendLimit{Currency::kMicroDollarsPerHour, most};
}

std::optional<SpendLimit> gpus(std::int64_t most) {
  if (most == kNoLimit) return std::nullopt;
  return SpendLimit{Currency::kGpus, most};
}

std::int64_t budget_of(const Wish& wish) { return wish.budget ? wish.budget->value() : kNoLimit; }

Nanoseconds longest_of(const Wish& wish) { return wish.longest_iteration.value_or(Nanoseconds::max()); }

// Nothing keeps both limits: what is the fastest without the time limit, and what without any?
Diagnostics out_of_reach(const Wish& wish, Walk& walk) {
  const auto affordable = walk.step(money(budget_of(wish)), Nanoseconds::max());
  Diagnostic d;
  d.kind = ErrorKind::kInfeasible;
  if (!affordable.best.empty()) {
    d.code = "throughput-out-of-reach";
    d.message = fmt::format("no plan takes {:.4g} s an iteration or less; the fastest that was found takes {:.4g} s",
                            to_seconds(longest_of(wish)), to_seconds(affordable.best.front().closed_form));
    d.hint = "lower --min-throughput, raise --budget, or add GPUs";
    return Diagnostics{d};
  }
  if (!wish.budget || affordable.is_out_of_budget()) return affordable.infeasible;
  const auto any = walk.step(std::nullopt, Nanoseconds::max());
  if (any.best.empty()) return any.infeasible;
  d.code = "budget-too-small";
  d.message = fmt::format("no plan runs on GPUs for {:.2f} $ an hour or less", wish.budget->as_double() * 1e-6);
  d.hint = "raise --budget, or find the cheapest plan per token with --objective cost";
  return Diagnostics{d};
}

WishResult fastest(const Wish& wish, Walk& walk) {
  WishResult result;
  result.found = walk.step(money(budget_of(wish)), longest_of(wish));
  if (!result.found.best.empty()) {
    result.value = to_seconds(result.found.best.front().closed_form);
    result.bound = to_seconds(result.found.search_bound);
  }
  return result;
}

class CheapestPlan {
 public:
  CheapestPlan(const Wish& wish, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
               const SearchOptions& options, Walk& walk)
      : wish_(wish), model_(model), hierarchy_(hierarchy), options_(options), walk_(walk) {}

  WishResult run() {
    const double least = relaxed_dollars(model_, hierarchy_.levels.front(), options_.profiles);
    bool finished = true;
    const std::int64_t one_gpu = cheapest_gpu(hierarchy_);
    for (std::int64_t limit = budget_of(wish_); limit >= one_gpu;) {
      const std::int64_t low = low_end(limit);
      SearchResult found = walk_.step(money(limit), longest_between(low, limit));
      finished = finished && (found.best.empty() ? !found.is_out_of_budget() : found.optimal);
      if (!found.best.empty()) {
        limit = take(std::move(found), limit);
      } else if (result_.found.best.empty()) {
        result_.found = std::move(found);
        break;
      } else {
        limit = low;
      }
      if (walk_.is_spent()) finished = false;
      if (walk_.is_spent() || cost_of(result_.found.best.front()) <= least) break;
    }
    if (result_.found.best.empty()) return std::move(result_);
    result_.value = cost_of(result_.found.best.front());
    result_.found.optimal = result_.found.finished = finished;
    result_.bound = finished ? result_.value : std::min(result_.value, least);
    return std::move(result_);
  }

 private:
  [[nodiscard]] double cost_of(const Composition& composition) const { return dollars_of(composition, hierarchy_); }

  // Plans that spend more than this and at most the limit are looked for together.
  [[nodiscard]] std::int64_t low_end(std::int64_t limit) const {
    if (result_.found.best.empty()) return 0;
    return static_cast<std::int64_t>(static_cast<double>(limit) * kCostStep);
  }

  // A plan that spends more than `low` is cheaper than the best so far only within this time.
  [[nodiscard]] Nanoseconds longest_between(std::int64_t low, std::int64_t limit) const {
    const Nanoseconds wanted = longest_of(wish_);
    if (low <= 0 || limit == kNoLimit) return wanted;
    const double seconds = cost_of(result_.found.best.front()) / (static_cast<double>(low) * 1e-6 / 3600);
    return std::min(wanted, ceil_to_nanoseconds(seconds));
  }

  // Keeps what is cheaper; returns below what the next plan has to spend to be cheaper still.
  std::int64_t take(SearchResult found, std::int64_t limit) {
    const Composition front = found.best.front();
    std::vector<Composition>& best = result_.found.best;
    const bool is_cheaper = best.empty() || cost_of(front) < cost_of(best.front());
    std::vector<Composition> all = std::move(best);
    std::ranges::move(found.best, std::back_inserter(all));
    if (is_cheaper) result_.found = std::move(found);
    std::ranges::stable_sort(all, [&](const Composition& a, const Composition& b) {
      return std::pair(cost_of(a), a.closed_form) < std::pair(cost_of(b), b.closed_form);
    });
    if (all.size() > static_cast<std::size_t>(options_.top)) all.resize(static_cast<std::size_t>(options_.top));
    result_.found.best = std::move(all);
    const double worth = cost_of(result_.found.best.front()) / to_seconds(front.closed_form) * 3600e6;
    const auto below = static_cast<std::int64_t>(std::ceil(std::min(worth, 9e18))) - 1;
    return std::min({below, rate_of(front, hierarchy_).value() - 1, limit - 1});
  }

  const Wish& wish_;
  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  const SearchOptions& options_;
  Walk& walk_;
  WishResult result_;
};

// More GPUs than `none` are needed, and `some` are enough: halves what lies between.
WishResult fewest_gpus(const Wish& wish, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                       const SearchOptions& options, Walk& walk) {
  WishResult result;
  result.found = walk.step(std::nullopt, longest_of(wish));
  if (result.found.best.empty()) return result;
  std::int64_t some = gpus_of(result.found.best.front());
  const double least = relaxed_gpus(model, hierarchy.levels.front(), longest_of(wish), options.profiles);
  const double sure = std::min(least * (1 - kRounding), static_cast<double>(some));
  std::int64_t none = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(sure)) - 1);
  std::int64_t proven = none;  // the largest number shown to be too few
  bool optimal = true;
  while (none + 1 < some) {
    const std::int64_t middle = none + (some - none) / 2;
    SearchResult found = walk.step(gpus(middle), longest_of(wish));
    if (found.best.empty()) {
      none = middle;
      if (found.is_out_of_budget()) optimal = false;
      if (optimal) proven = none;
      continue;
    }
    result.found = std::move(found);
    some = gpus_of(result.found.best.front());
  }
  result.value = static_cast<double>(some);
  result.bound = static_cast<double>(proven + 1);
  result.found.optimal = result.found.finished = optimal;
  return result;
}

bool dominates(const Composition& a, const Composition& b, const cluster::IslandHierarchy& hierarchy) {
  return a.closed_form <= b.closed_form && gpus_of(a) <= gpus_of(b) && rate_of(a, hierarchy) <= rate_of(b, hierarchy);
}

}  // namespace

std::int64_t gpus_of(const Composition& composition) {
  std::int64_t total = 0;
  for (const StageChoice& stage : composition.stages) {
    for (const PartChoice& part : stage.parts) total += part.gpus;
  }
  return total * composition.replicas;
}

MicroDollarsPerHour rate_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy) {
  MicroDollarsPerHour total{0};
  for (const StageChoice& stage : composition.stages) {
    for (const PartChoice& part : stage.parts) {
      total += price_of(class_of(composition, part, hierarchy)) * (std::int64_t{part.gpus} * composition.replicas);
    }
  }
  return total;
}

double dollars_of(const Composition& composition, const cluster::IslandHierarchy& hierarchy) {
  return rate_of(composition, hierarchy).as_double() * 1e-6 * to_seconds(composition.closed_form) / 3600;
}

WishResult search_wish(const Wish& wish, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                       const SearchOptions& options, const LimitedSearch& search) {
  Walk walk(options, search);
  WishResult result;
  switch (wish.objective) {
    case Objective::kThroughput: result = fastest(wish, walk); break;
    case Objective::kCost: result = CheapestPlan(wish, model, hierarchy, options, walk).run(); break;
    case Objective::kGpus: result = fewest_gpus(wish, model, hierarchy, options, walk); break;
  }
  const bool limited = wish.budget || wish.longest_iteration;
  if (result.found.best.empty() && limited && !result.found.is_out_of_budget()) {
    result.found.infeasible = out_of_reach(wish, walk);
  }
  result.found.statistics = walk.effort().statistics;
  result.found.parallelizers = walk.effort().parallelizers;
  result.steps = walk.steps();
  return result;
}

std::vector<Composition> pareto_plans(const cluster::IslandHierarchy& hierarchy, const SearchOptions& options,
                                      std::size_t most, const LimitedSearch& search) {
  std::vector<Composition> all;
  const auto walk_down = [&](const auto& limit_of, const auto& spend_of) {
    Walk walk(options, search);
    std::int64_t limit = kNoLimit;
    for (std::size_t i = 0; i < most && limit > 0 && !walk.is_spent(); ++i) {
      SearchResult found = walk.step(limit_of(limit), Nanoseconds::max());
      if (found.best.empty()) break;
      const std::int64_t spent = spend_of(found.best.front());
      const std::int64_t next = limit == kNoLimit ? spent : limit;
      limit = std::min(spent - 1, static_cast<std::int64_t>(static_cast<double>(next) * kParetoStep));
      all.push_back(std::move(found.best.front()));
    }
  };
  if (prices_are_known(hierarchy)) {
    walk_down(money, [&](const Composition& c) { return rate_of(c, hierarchy).value(); });
  }
  walk_down(gpus, gpus_of);
  std::ranges::stable_sort(all, [&](const Composition& a, const Composition& b) {
    return std::tuple(a.closed_form, rate_of(a, hierarchy), gpus_of(a)) <
           std::tuple(b.closed_form, rate_of(b, hierarchy), gpus_of(b));
  });
  std::vector<Composition> kept;
  for (Composition& plan : all) {
    const bool beaten = std::ranges::any_of(kept, [&](const Composition& k) { return dominates(k, plan, hierarchy); });
    if (!beaten) kept.push_back(std::move(plan));
  }
  return kept;
}

}  // namespace tangram::compose
