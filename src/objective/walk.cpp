#include "walk.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tangram::objective {

Nanoseconds with_slack(Nanoseconds longest, double slack) {
  if (longest == Nanoseconds::max()) return longest;
  return ceil_to_nanoseconds(to_seconds(longest) * slack);
}

std::optional<SpendLimit> limit_of(Currency currency, std::int64_t most) {
  if (most == kNoLimit) return std::nullopt;
  return SpendLimit{currency, most};
}

std::map<std::string, TypeMoney> money_by_type(const cluster::IslandHierarchy& hierarchy) {
  std::map<std::string, TypeMoney> types;
  for (const cluster::IslandClass& c : hierarchy.levels.front().classes) {
    TypeMoney& money = types[c.device.name];
    money.all += price_of(c).value() * c.gpu_count();
    money.one = std::min(money.one, price_of(c).value());
  }
  return types;
}

std::int64_t choice_limit(std::int64_t most, std::size_t i) {
  constexpr double kStepDown = 6.0 / 7.0;
  return static_cast<std::int64_t>(std::floor(static_cast<double>(most) * std::pow(kStepDown, static_cast<double>(i))));
}

SearchResult Walk::step(const Step& step) {
  SearchOptions options = options_;
  options.spend = step.limit;
  options.label_budget = std::max<std::int64_t>(1, std::min(step.labels, labels_left()));
  if (step.longest != Nanoseconds::max()) {
    options.incumbent = std::min(options.incumbent, step.longest + Nanoseconds(1));
  }
  options.relaxed_bound = relaxed_;
  options.timed = step.timed || options_.timed;
  options.top = std::max(options_.top, step.top);
  if (!step.gpu_types.empty()) options.constraints.gpu_types = step.gpu_types;
  SearchResult found = search_(options);
  if (!found.space.levels.empty()) relaxed_ = found.relaxed_bound;
  spent_ += std::max(found.statistics.labels, options_.label_budget / options_.tuning.objectives.most_searches);
  ++steps_;
  effort_.add_effort_of(found);
  return found;
}

std::optional<Shown> Walk::show(const Composition& plan) const {
  const std::optional<Nanoseconds> time = timing_ ? timing_(plan) : plan.closed_form;
  if (!time) return std::nullopt;
  return Shown{plan, gpus_of(plan), rate_of(plan, hierarchy_), *time};
}

std::vector<Shown> Walk::shown_within(const SearchResult& found, Nanoseconds longest) const {
  std::vector<Shown> all;
  for (const Composition& plan : found.shortlist()) {
    auto shown = show(plan);
    if (shown && shown->time <= longest) all.push_back(std::move(*shown));
  }
  return all;
}

}  // namespace tangram::objective
