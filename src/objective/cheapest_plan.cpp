#include "cheapest_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tangram/relax/relaxed_bound.hpp"

namespace tangram::objective {

namespace {

constexpr double kNoCost = std::numeric_limits<double>::infinity();

using Names = std::vector<std::string>;  // of GPU types; empty: all

double dollars_at(std::int64_t rate, Nanoseconds time) {
  return static_cast<double>(rate) * 1e-6 * to_seconds(time) / 3600;
}

class CheapestPlan {
 public:
  CheapestPlan(const Request& request, const model::Model& model, Walk& walk)
      : longest_(request.longest_iteration.value_or(Nanoseconds::max())),
        budget_(request.budget ? request.budget->value() : kNoLimit),
        model_(model),
        walk_(walk),
        tuning_(walk.options().tuning.objectives),
        money_(money_by_type(walk.hierarchy())) {}

  RequestResult run() {
    const Names types = cheapest_first();
    if (types.size() > 1) {
      for (const std::string& type : types) look_at({type});
    }
    search_all();
    if (!open_.empty() && types.size() > 2) look_at_pairs(types);
    look_at_choices();
    search_open();
    return conclude();
  }

 private:
  // Plans that spend more than `low` and at most `high`.
  struct Window {
    std::int64_t low = 0;
    std::int64_t high = 0;
    double bound = 0;  // dollars of an iteration: none of them is cheaper
  };

  struct Candidate {
    Shown shown;
    double dollars = 0;  // of an iteration, by closed form
  };

  [[nodiscard]] relax::SpeedOfMoney speed_of(const Names& types) const {
    return {model_, walk_.hierarchy().levels.front(), walk_.options().profiles, types};
  }

  [[nodiscard]] Names cheapest_first() const {
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, money] : money_) {
      const Nanoseconds least = speed_of({name}).least_time(MicroDollarsPerHour(money.all));
      order.emplace_back(dollars_at(money.all, least), name);
    }
    std::ranges::sort(order);
    Names names;
    for (auto& [dollars, name] : order) names.push_back(std::move(name));
    return names;
  }

  void look_at_pairs(const Names& types) {
    const std::size_t most = std::min(types.size(), static_cast<std::size_t>(tuning_.types_in_pairs));
    for (std::size_t b = 1; b < most; ++b) {
      for (std::size_t a = 0; a < b; ++a) look_at({types[a], types[b]});
    }
  }

  // In wide windows; what stays open is left.
  void look_at(const Names& types) {
    const relax::SpeedOfMoney speed = speed_of(types);
    std::vector<Window> ignored;
    walk_down(types, tuning_.look_window, [&](const Window& window) {
      return search_window(types, speed, window, walk_.options().label_budget / tuning_.look_share, ignored);
    });
  }

  // Half of the labels are kept for windows that stay open.
  void search_all() {
    const relax::SpeedOfMoney speed = speed_of({});
    const std::int64_t budget = walk_.options().label_budget;
    walk_down({}, tuning_.window, [&](const Window& window) {
      const std::int64_t labels = std::min(budget / tuning_.window_share, walk_.labels_left() - budget / 2);
      return search_window({}, speed, window, labels, open_);
    });
  }

  // From window to window: `search` says what the next may spend at most.
  template <typename Search>
  void walk_down(const Names& types, double step, const Search& search) {
    std::int64_t limit = money_to_spend(types);
    const std::int64_t least = cheapest_gpu(types);
    while (limit >= least) {
      const auto low = static_cast<std::int64_t>(static_cast<double>(limit) * step);
      limit = search({std::min(std::max(least - 1, low), limit - 1), limit, 0});
    }
  }

  // Returns the most that a cheaper plan may spend.
  std::int64_t search_window(const Names& types, const relax::SpeedOfMoney& speed, Window window, std::int64_t labels,
                             std::vector<Window>& open) {
    const Nanoseconds least_time = std::max(speed.least_time(MicroDollarsPerHour(window.high)), relaxed_);
    window.bound = dollars_at(window.low, least_time);
    const Nanoseconds longest = longest_above(window.low, least_);
    if (longest <= least_time) return window.low;
    if (labels <= 0 || walk_.is_spent()) {
      open.push_back(window);
      return window.low;
    }
    SearchResult found = walk_.step({.limit = SpendLimit{Currency::kMicroDollarsPerHour, window.high},
                                     .longest = longest,
                                     .labels = labels,
                                     .gpu_types = types,
                                     .timed = true});
    take(found);
    const std::int64_t next = found.best.empty() ? below_nothing(found, window, open) : below(found, window, open);
    if (types.empty()) result_.found = std::move(found);
    return next;
  }

  static std::int64_t below_nothing(const SearchResult& found, const Window& window, std::vector<Window>& open) {
    if (found.is_out_of_budget()) open.push_back(window);
    return window.low;
  }

  std::int64_t below(const SearchResult& found, Window window, std::vector<Window>& open) {
    const Composition& front = found.best.front();
    if (!found.optimal) {
      window.bound = std::max(window.bound, dollars_at(window.low, found.search_bound));
      if (window.bound < least_) open.push_back(window);
      return window.low;
    }
    // Where the plan itself is none that is wanted, those that are no faster may be.
    refused_ = std::min(refused_, dollars_of(front, walk_.hierarchy()));
    const double worth = least_ / to_seconds(front.closed_form) * 3600e6;
    const auto cheaper = static_cast<std::int64_t>(std::ceil(std::min(worth, 9e18))) - 1;
    return std::min({cheaper, rate_of(front, walk_.hierarchy()).value() - 1, window.high - 1});
  }

  // Simulated times may be so much shorter that one of the fastest plans under the limits of --pareto is cheaper.
  void look_at_choices() {
    const relax::SpeedOfMoney speed = speed_of({});
    const std::int64_t all = money_to_spend({});
    for (std::size_t i = 0; i < static_cast<std::size_t>(tuning_.choices) && !candidates_.empty() && !walk_.is_spent();
         ++i) {
      const std::int64_t high = choice_limit(all, i);
      const std::int64_t low = choice_limit(all, i + 1);
      if (high < cheapest_gpu({})) break;
      const Nanoseconds longest = longest_above(low, least_shown_);
      if (longest <= std::max(speed.least_time(MicroDollarsPerHour(high)), relaxed_)) continue;
      take(walk_.step({.limit = SpendLimit{Currency::kMicroDollarsPerHour, high},
                       .longest = with_slack(longest),
                       .labels = walk_.options().label_budget / tuning_.window_share,
                       .timed = true}));
    }
  }

  // By what was found since, the most promising first, in halves that are easier to search.
  void search_open() {
    const relax::SpeedOfMoney speed = speed_of({});
    while (!open_.empty() && !walk_.is_spent()) {
      const auto first = std::ranges::min_element(open_, {}, &Window::bound);
      const Window window = *first;
      if (window.bound >= least_) break;
      open_.erase(first);
      const auto middle = static_cast<std::int64_t>(
          std::sqrt(static_cast<double>(std::max<std::int64_t>(1, window.low)) * static_cast<double>(window.high)));
      const std::int64_t labels = std::max<std::int64_t>(1, walk_.labels_left() / 4);
      std::int64_t limit = window.high;
      if (middle > window.low && middle < window.high) {
        while (limit > middle) limit = search_window({}, speed, {middle, limit, 0}, labels, open_);
      }
      while (limit > window.low) limit = search_window({}, speed, {window.low, limit, 0}, labels, open_);
    }
  }

  void take(const SearchResult& found) {
    relaxed_ = std::max(relaxed_, found.relaxed_bound);
    for (const Composition& plan : found.shortlist()) {
      const double dollars = dollars_of(plan, walk_.hierarchy());
      if (dollars > least_ * kSimulatedSlack) continue;
      auto shown = walk_.show(plan);
      if (!shown || shown->time > longest_) continue;
      least_ = std::min(least_, dollars);
      least_shown_ = std::min(least_shown_, shown->dollars());
      candidates_.push_back({std::move(*shown), dollars});
    }
  }

  // A plan that spends more than `low` costs less than so much only within this time.
  [[nodiscard]] Nanoseconds longest_above(std::int64_t low, double dollars) const {
    const Nanoseconds wanted = with_slack(longest_);
    if (low <= 0 || candidates_.empty()) return wanted;
    return std::min(wanted, ceil_to_nanoseconds(dollars / (static_cast<double>(low) * 1e-6 / 3600)));
  }

  [[nodiscard]] static bool has(const Names& types, const std::string& name) {
    return types.empty() || std::ranges::find(types, name) != types.end();
  }

  [[nodiscard]] std::int64_t money_to_spend(const Names& types) const {
    std::int64_t sum = 0;
    for (const auto& [name, money] : money_) sum += has(types, name) ? money.all : 0;
    return std::min(sum, budget_);
  }

  [[nodiscard]] std::int64_t cheapest_gpu(const Names& types) const {
    std::int64_t least = kNoLimit;
    for (const auto& [name, money] : money_) least = std::min(least, has(types, name) ? money.one : kNoLimit);
    return std::max<std::int64_t>(1, least);
  }

  // The cheapest by closed form, and as many of the cheapest when simulated; none of them twice.
  [[nodiscard]] std::vector<Candidate> best_candidates() {
    const auto top = static_cast<std::size_t>(walk_.options().top);
    std::vector<Candidate> kept;
    const auto keep_cheapest = [&](const auto& worth) {
      std::ranges::stable_sort(candidates_, {}, worth);
      const std::size_t most = kept.size() + top;
      for (const Candidate& candidate : candidates_) {
        const bool twice = std::ranges::any_of(
            kept, [&](const Candidate& other) { return is_twin(other.shown.plan, candidate.shown.plan); });
        if (!twice) kept.push_back(candidate);
        if (kept.size() == most) break;
      }
    };
    const auto by_closed_form = [](const Candidate& c) { return std::pair(c.dollars, c.shown.plan.closed_form); };
    keep_cheapest([](const Candidate& c) { return std::pair(c.shown.dollars(), c.shown.time); });
    keep_cheapest(by_closed_form);
    std::ranges::stable_sort(kept, {}, by_closed_form);
    return kept;
  }

  RequestResult conclude() {
    SearchResult& found = result_.found;
    if (candidates_.empty()) {
      if (longest_ != Nanoseconds::max()) found.best.clear();
      return std::move(result_);
    }
    found.best.clear();
    found.timed.clear();
    for (Candidate& candidate : best_candidates()) found.best.push_back(std::move(candidate.shown.plan));
    // What single searches proved speaks of their limits.
    for (compose::LevelReport& level : found.levels) level.best = level.bound = Nanoseconds::max();
    found.search_bound = found.relaxed_bound = relaxed_;
    found.infeasible.clear();
    double bound = refused_;
    for (const Window& window : open_) bound = std::min(bound, window.bound);
    result_.value = least_;
    result_.bound = std::min(bound, least_);
    found.optimal = found.finished = bound >= least_;
    return std::move(result_);
  }

  Nanoseconds longest_;
  std::int64_t budget_;
  const model::Model& model_;
  Walk& walk_;
  const compose::ObjectiveTuning& tuning_;
  std::map<std::string, TypeMoney> money_;
  Nanoseconds relaxed_{0};        // no plan is faster
  double least_ = kNoCost;        // dollars of an iteration, by closed form
  double least_shown_ = kNoCost;  // and simulated
  double refused_ = kNoCost;      // by closed form, of plans that ended windows
  std::vector<Window> open_;
  std::vector<Candidate> candidates_;
  RequestResult result_;
};

}  // namespace

RequestResult cheapest_plan(const Request& request, const model::Model& model, Walk& walk) {
  return CheapestPlan(request, model, walk).run();
}

}  // namespace tangram::objective
