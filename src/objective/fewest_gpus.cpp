#include "fewest_gpus.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tangram/cost/stage.hpp"
#include "tangram/relax/relaxed_bound.hpp"

namespace tangram::objective {

namespace {

using TypeNames = std::vector<std::string>;  // empty: all

// By what one GPU makes of a block.
TypeNames fastest_first(const model::Model& model, const cluster::IslandLevel& level) {
  std::map<std::string, double> seconds;
  for (const cluster::IslandClass& c : level.classes) {
    seconds[c.device.name] = cost::least_gpu_seconds(model, model.types.front(), c.device);
  }
  TypeNames names;
  for (const auto& [name, least] : seconds) names.push_back(name);
  std::ranges::stable_sort(names, {}, [&](const std::string& name) { return seconds.at(name); });
  return names;
}

class FewestGpus {
 public:
  FewestGpus(const Request& request, const model::Model& model, Walk& walk)
      : longest_(request.longest_iteration.value_or(Nanoseconds::max())),
        model_(model),
        walk_(walk),
        tuning_(walk.options().tuning.objectives),
        too_few_(too_few_gpus(model, walk, longest_)) {}

  RequestResult run() {
    look_at_types();
    if (plans_.empty() && !take(search(kNoLimit, kSimulatedSlack, kNoLimit), kNoLimit)) return nothing();
    proven_ = std::min(too_few_, some_ - 1);
    halve_all();
    try_fewer();
    if (limit_ != some_) take_fastest();
    return conclude();
  }

 private:
  SearchResult search(std::int64_t most, double slack, std::int64_t labels, const TypeNames& types = {}) {
    return walk_.step({.limit = limit_of(Currency::kGpus, most),
                       .longest = with_slack(longest_, slack),
                       .labels = std::max<std::int64_t>(1, labels),
                       .gpu_types = types,
                       .top = tuning_.plans_to_show,
                       .timed = true});
  }

  [[nodiscard]] std::int64_t labels_of_look() const { return walk_.options().label_budget / tuning_.look_share; }

  // Of all types together no more than half.
  [[nodiscard]] std::int64_t labels_of_type(std::size_t types) const {
    return walk_.options().label_budget / std::max(tuning_.window_share, 2 * static_cast<std::int64_t>(types));
  }

  // Twice what simulation has gained on closed forms so far. The less slack, the less a search has to rule out: plans
  // that are near each other are many.
  [[nodiscard]] double likely_slack() const {
    return gain_ ? std::min(kSimulatedSlack, 1 + 2 * *gain_) : kSimulatedSlack;
  }

  void note_gain(const std::vector<Shown>& plans) {
    if (plans.empty()) return;
    const auto closed_form = [](const Shown& shown) { return shown.plan.closed_form; };
    const Nanoseconds best = std::ranges::min(plans, {}, closed_form).plan.closed_form;
    const Nanoseconds fastest = std::ranges::min(plans, {}, &Shown::time).time;
    const double gain = best.as_double() / fastest.as_double() - 1;
    gain_ = std::max(gain_.value_or(0), gain);
  }

  // Whether a search under the limit has plans that make the time.
  bool take(SearchResult found, std::int64_t limit, bool all_types = true) {
    std::vector<Shown> plans = walk_.shown_within(found, Nanoseconds::max());
    note_gain(plans);
    std::erase_if(plans, [&](const Shown& plan) { return plan.time > longest_; });
    const bool enough = !plans.empty();
    if (enough) {
      plans_ = std::move(plans);
      some_ = std::ranges::min(plans_, {}, &Shown::gpus).gpus;
      limit_ = all_types ? limit : kNoLimit;
    }
    if (all_types && (enough || !has_found_)) {
      found_ = std::move(found);
      has_found_ = true;
    }
    return enough;
  }

  // Each alone, then pairs: few types are a small fleet, which more is looked at of (compose/space.cpp).
  void look_at_types() {
    const TypeNames types = fastest_first(model_, walk_.hierarchy().levels.front());
    if (types.size() < 2) return;
    // What simulation gains on one says little of the others.
    for (const std::string& type : types) look_at({type}, kSimulatedSlack, labels_of_type(types.size()));
    const std::size_t most = types.size() > 2 ? std::min(types.size(), most_in_pairs()) : 0;
    for (std::size_t b = 1; b < most; ++b) {
      for (std::size_t a = 0; a < b; ++a) look_at({types[a], types[b]}, likely_slack(), labels_of_look());
    }
  }

  [[nodiscard]] std::size_t most_in_pairs() const { return static_cast<std::size_t>(tuning_.types_in_pairs); }

  // The labels are for its first search and the bisection behind it together.
  void look_at(const TypeNames& types, double slack, std::int64_t labels) {
    const std::int64_t fewer = plans_.empty() ? kNoLimit : some_ - 1;
    const std::int64_t before = walk_.labels_left();
    if (fewer <= too_few_ || !take(search(fewer, slack, labels, types), fewer, /*all_types=*/false)) return;
    halve([&](std::int64_t middle) {
      const std::int64_t left = labels - (before - walk_.labels_left());
      const std::int64_t own = std::max(left, labels_of_look());
      return take(search(middle, likely_slack(), own, types), middle, /*all_types=*/false);
    });
  }

  // Bisection.
  void halve(const std::function<bool(std::int64_t)>& is_enough) {
    std::int64_t none = std::min(too_few_, some_ - 1);
    while (none + 1 < some_) {
      const std::int64_t middle = none + (some_ - none) / 2;
      if (!is_enough(middle)) none = middle;
    }
  }

  // A search that is hard leaves labels for those after it.
  void halve_all() {
    halve([&](std::int64_t middle) {
      if (makes_it(middle, likely_slack(), walk_.labels_left() / 4)) return true;
      optimal_ = optimal_ && bound_ > longest_;
      if (optimal_) proven_ = middle;
      return false;
    });
  }

  // Fewer may be enough where a search was not finished, or where simulation gains more than it has so far. Plans that
  // are not among the fastest of a number may be among those of fewer.
  void try_fewer() {
    std::int64_t tries = tuning_.more_tries;
    for (std::int64_t fewer = some_ - 1; fewer > too_few_ && tries > 0; --tries) {
      const bool found = (!is_ruled_out(fewer) && makes_it(fewer, likely_slack(), walk_.labels_left() * 2 / 3)) ||
                         makes_it(fewer, kSimulatedSlack, walk_.labels_left() / 4);
      if (!found && (is_ruled_out(fewer) || !is_finished_)) return;
      fewer = std::min(fewer, some_) - 1;
    }
  }

  bool makes_it(std::int64_t most, double slack, std::int64_t labels) {
    SearchResult found = search(most, slack, labels);
    const Nanoseconds bound = bound_of(found);
    if (bound == Nanoseconds::max()) ruled_out_ = {most, slack};
    is_finished_ = found.finished || bound == Nanoseconds::max();
    bound_ = bound;
    return take(std::move(found), most);
  }

  [[nodiscard]] bool is_ruled_out(std::int64_t most) const {
    return most <= ruled_out_.gpus && ruled_out_.slack >= likely_slack();
  }

  // No plan under the limits of the search is faster, by closed form.
  static Nanoseconds bound_of(const SearchResult& found) {
    return found.best.empty() && !found.is_out_of_budget() ? Nanoseconds::max() : found.search_bound;
  }

  // Of those that need so few; what the result says of all others is said of these.
  void take_fastest() {
    std::vector<Shown> before = plans_;
    has_found_ = false;
    if (!take(search(some_, likely_slack(), walk_.labels_left() / 4), some_)) plans_ = std::move(before);
  }

  RequestResult nothing() {
    RequestResult result;
    result.found = std::move(found_);
    if (!result.found.is_out_of_budget()) result.found.best.clear();
    return result;
  }

  RequestResult conclude() {
    RequestResult result;
    result.found = std::move(found_);
    result.found.best.clear();
    result.found.timed.clear();
    result.found.infeasible.clear();
    result.found.search_bound = std::max(result.found.search_bound, result.found.relaxed_bound);
    for (Shown& shown : plans_) {
      if (shown.gpus == some_) result.found.best.push_back(std::move(shown.plan));
    }
    compose::keep_best(result.found.best, static_cast<int>(result.found.best.size()));
    result.value = static_cast<double>(some_);
    result.bound = static_cast<double>(proven_ + 1);
    result.least = static_cast<double>(std::min(too_few_, some_ - 1) + 1);
    result.found.optimal = result.found.finished = optimal_;
    return result;
  }

  // A search for plans on so many GPUs came to its end without any.
  struct RuledOut {
    std::int64_t gpus = 0;
    double slack = 0;
  };

  Nanoseconds longest_;
  const model::Model& model_;
  Walk& walk_;
  const compose::ObjectiveTuning& tuning_;
  std::int64_t too_few_;
  std::int64_t some_ = kNoLimit;
  std::int64_t proven_ = 0;        // the largest number shown to be too few
  std::int64_t limit_ = kNoLimit;  // under which the plans were found among all types
  RuledOut ruled_out_;
  bool is_finished_ = true;     // the last search of all types for a number
  Nanoseconds bound_;           // and its bound
  std::optional<double> gain_;  // of simulated times on the smallest closed forms, the largest of a search
  bool optimal_ = true;
  bool has_found_ = false;
  SearchResult found_;  // of all types
  std::vector<Shown> plans_;
};

}  // namespace

std::int64_t too_few_gpus(const model::Model& model, const Walk& walk, Nanoseconds longest) {
  constexpr double kRounding = 1e-9;  // of sums in doubles, relative
  const double least =
      relax::relaxed_gpus(model, walk.hierarchy().levels.front(), longest, walk.options().profiles) * (1 - kRounding);
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(std::min(least, 1e18))) - 1);
}

RequestResult fewest_gpus(const Request& request, const model::Model& model, Walk& walk) {
  return FewestGpus(request, model, walk).run();
}

}  // namespace tangram::objective
