#include <algorithm>
#include <tuple>
#include <utility>

#include "cheapest_plan.hpp"
#include "tangram/objective/objective.hpp"
#include "walk.hpp"

namespace tangram::objective {

namespace {

// Looks for plans that are worth a choice, and keeps what no other beats in the figures shown.
class ParetoSearch {
 public:
  ParetoSearch(const Request& limits, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
               const SearchOptions& options, const LimitedSearch& search, const Timing& timing)
      : limits_(limits),
        model_(model),
        hierarchy_(hierarchy),
        options_(options),
        search_(search),
        timing_(timing),
        types_(money_by_type(hierarchy)) {}

  ParetoPlans run(std::size_t most) {
    const bool priced = std::ranges::all_of(types_, [](const auto& type) { return type.second.one > 0; });
    std::int64_t gpus = 0;
    for (const cluster::IslandClass& c : hierarchy_.levels.front().classes) gpus += c.gpu_count();
    if (priced) walk_down(Currency::kMicroDollarsPerHour, money_to_spend(), most);
    walk_down(Currency::kGpus, gpus, most);
    if (types_.size() > 1) take_each_type(priced);
    if (priced && !found_.empty()) take_cheapest();
    result_.plans = unbeaten();
    result_.effort.search_bound = result_.effort.relaxed_bound;
    result_.effort.finished = finished_;
    if (!result_.plans.empty()) result_.infeasible.clear();
    if (result_.plans.empty() && options_.deadline.is_missed())
      result_.infeasible = compose::out_of_time(options_.deadline);
    return std::move(result_);
  }

 private:
  [[nodiscard]] Nanoseconds longest() const { return limits_.longest_iteration.value_or(Nanoseconds::max()); }

  [[nodiscard]] std::int64_t budget() const { return limits_.budget ? limits_.budget->value() : kNoLimit; }

  [[nodiscard]] std::int64_t money_to_spend() const {
    std::int64_t all = 0;
    for (const auto& [name, money] : types_) all += money.all;
    return std::min(all, budget());
  }

  [[nodiscard]] std::int64_t spent(Currency currency, const Composition& plan) const {
    return currency == Currency::kGpus ? gpus_of(plan) : rate_of(plan, hierarchy_).value();
  }

  void walk_down(Currency currency, std::int64_t all, std::size_t most) {
    Walk walk(hierarchy_, options_, search_, timing_);
    std::size_t steps = 0;
    std::int64_t least = all + 1;  // what the plan before spends
    for (std::size_t i = 0; steps < most && !walk.is_spent(); ++i) {
      const std::int64_t limit = choice_limit(all, i);
      if (limit <= 0) break;
      if (limit >= least) continue;
      ++steps;
      const SearchResult found =
          walk.step({.limit = SpendLimit{currency, limit}, .longest = with_slack(longest()), .timed = true});
      take(walk, found);
      if (found.best.empty()) break;
      least = spent(currency, found.best.front());
    }
    end(walk);
  }

  // And what is faster for the same money, or on as many GPUs where prices are not known.
  void take_each_type(bool priced) {
    const Currency currency = priced ? Currency::kMicroDollarsPerHour : Currency::kGpus;
    Walk walk(hierarchy_, options_, search_, timing_);
    for (const auto& [name, money] : types_) {
      Walk::Step step{.longest = with_slack(longest()), .gpu_types = {name}, .timed = true};
      if (priced) step.limit = SpendLimit{currency, std::min(budget(), money.all)};
      const SearchResult alone = walk.step(step);
      if (alone.best.empty()) continue;
      take(walk, alone);
      const Composition& best = alone.best.front();
      take(walk,
           walk.step(
               {.limit = SpendLimit{currency, spent(currency, best)}, .longest = best.closed_form, .timed = true}));
    }
    end(walk);
  }

  void take_cheapest() {
    Walk walk(hierarchy_, options_, search_, timing_);
    const RequestResult cheapest = cheapest_plan(limits_, model_, walk);
    std::optional<Shown> best;
    for (const Composition& plan : cheapest.found.best) {
      auto shown = walk.show(plan);
      if (shown && (!best || shown->dollars() < best->dollars())) best = std::move(shown);
    }
    if (best) found_.push_back(std::move(*best));
    if (!cheapest.found.best.empty() && !cheapest.found.finished) finished_ = false;
    add_effort_of(walk);
  }

  void add_effort_of(const Walk& walk) {
    result_.effort.add_effort_of(walk.effort());
    result_.steps += walk.steps();
  }

  // The fastest when simulated, and of those the one that uses least.
  void take(const Walk& walk, const SearchResult& found) {
    if (result_.effort.space.levels.empty()) {
      result_.effort.space = found.space;
      result_.effort.relaxed_bound = found.relaxed_bound;
    }
    if (found.best.empty()) {
      if (result_.infeasible.empty()) result_.infeasible = found.infeasible;
      if (found.is_out_of_budget()) finished_ = false;
      return;
    }
    if (!found.finished) finished_ = false;
    std::vector<Shown> plans = walk.shown_within(found, longest());
    std::erase_if(plans, [&](const Shown& shown) { return shown.rate.value() > budget(); });
    if (plans.empty()) return;
    found_.push_back(std::move(*std::ranges::min_element(plans, {}, by_time)));
  }

  void end(const Walk& walk) {
    if (walk.is_spent()) finished_ = false;
    add_effort_of(walk);
  }

  static std::tuple<Nanoseconds, std::int64_t, std::int64_t> by_time(const Shown& shown) {
    return {shown.time, money(shown), shown.gpus};
  }

  // What is not known may be any amount.
  static std::int64_t money(const Shown& shown) { return shown.rate.value() > 0 ? shown.rate.value() : kNoLimit; }

  std::vector<Shown> unbeaten() {
    std::ranges::stable_sort(found_, {}, by_time);
    std::vector<Shown> kept;
    for (Shown& plan : found_) {
      const bool beaten = std::ranges::any_of(kept, [&](const Shown& other) {
        return other.time <= plan.time && other.gpus <= plan.gpus && money(other) <= money(plan);
      });
      if (!beaten) kept.push_back(std::move(plan));
    }
    return kept;
  }

  const Request& limits_;
  const model::Model& model_;
  const cluster::IslandHierarchy& hierarchy_;
  const SearchOptions& options_;
  const LimitedSearch& search_;
  const Timing& timing_;
  std::map<std::string, TypeMoney> types_;
  std::vector<Shown> found_;
  bool finished_ = true;
  ParetoPlans result_;
};

}  // namespace

ParetoPlans pareto_plans(const Request& limits, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                         const SearchOptions& options, std::size_t most, const LimitedSearch& search,
                         const Timing& timing) {
  return ParetoSearch(limits, model, hierarchy, options, search, timing).run(most);
}

}  // namespace tangram::objective
