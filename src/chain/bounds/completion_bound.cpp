#include "completion_bound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../periods.hpp"
#include "min_plus.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

constexpr double kCoverTolerance = 1e-9;  // relative; absorbs the rounding of sums of weights

}  // namespace

CompletionBound::CompletionBound(const Program& program, const FastestPlans& fastest, std::int64_t longest_period,
                                 std::vector<double> multipliers, int iterations, double enough, Extent extent)
    : program_(program),
      fastest_(fastest),
      capacity_(extent == Extent::kAll ? Capacity(program, fastest, longest_period)
                                       : Capacity(program, fastest, longest_period, Capacity::RootAlone{})),
      resources_(program.resources()),
      longest_period_(static_cast<double>(longest_period)),
      depths_(fastest.depths()) {
  if (!capacity_.covers_all() || !coverable(extent)) return;
  if (!cuts().completion) {
    count_nothing();
    return;
  }
  within_ = lists_within();
  if (!cuts().unit_prices) iterations = 0;
  if (multipliers.size() != resources_.size() || !cuts().unit_prices) multipliers.assign(resources_.size(), 0);
  ascend(std::move(multipliers), iterations, enough, extent);
}

std::int64_t CompletionBound::least_end(std::int64_t enough) const {
  const std::int64_t priced = whole_nanoseconds(root_);
  if (priced >= enough || !cuts().knapsack) return priced;
  return std::max(priced, whole_nanoseconds(knapsack().root()));
}

KnapsackBound& CompletionBound::knapsack() const {
  if (!knapsack_) {
    knapsack_ = std::make_unique<KnapsackBound>(program_, fastest_, capacity_.weights(),
                                                static_cast<std::int64_t>(longest_period_));
  }
  return *knapsack_;
}

// As if nothing were left to pay.
void CompletionBound::count_nothing() {
  lambda_.assign(resources_.size(), 0);
  unit_price_.assign(program_.options.size(), 0);
  phi_.assign(program_.blocks + 1, depths_ + 1, 0);
  root_ = 0;
}

// Whether the cheapest cover takes no more than there is. Leaves the weights and their table behind.
bool CompletionBound::coverable(Extent extent) {
  if (!cuts().cover) {
    weight_.assign(resources_.size(), 0);
    unit_weight_.assign(program_.options.size(), 0);
    need_.assign(program_.blocks + 1, depths_ + 1, 0);
    return true;
  }
  weight_ = capacity_weights();
  unit_weight_ = option_prices(weight_);
  const double whole = relax(unit_weight_, false, extent, need_);
  if (whole == kNoCompletion) return false;
  const double supply = worth(weight_, resources_);
  if (whole - supply > kCoverTolerance * supply) return false;
  // Loosened once, so that sums of weights rounded in another order still compare as they should.
  const double slack = kCoverTolerance * std::max(1.0, supply);
  for (double& value : need_) value -= slack;
  return true;
}

// Blocks that one unit of each class can hold at most within the period: where classes differ by a factor only, these
// weights decide exactly.
std::vector<double> CompletionBound::capacity_weights() const {
  std::vector<double> weights(resources_.size(), 0);
  for (int signature = 0; signature < program_.signatures; ++signature) {
    for (const FastestPlans::Entry& entry : fastest_.list(fastest_.list_at(signature, 1))) {
      if (entry.T > longest_period_) break;
      const Option& option = at(program_.options, entry.option);
      if (option.uses.size() != 1) continue;
      double& weight = at(weights, option.uses.front().island_class);
      const auto blocks = static_cast<double>(fastest_.blocks_of(signature));
      weight = std::max(weight, blocks / option.uses.front().units);
      const auto spend = static_cast<double>(program_.spend_of(option));
      if (spend > 0) weights.back() = std::max(weights.back(), blocks / spend);
    }
  }
  return weights;
}

void CompletionBound::ascend(std::vector<double> lambda, int iterations, double enough, Extent extent) {
  std::vector<double> best = lambda;
  double best_value = -kNoCompletion;
  double step = 0;
  for (int i = 0; i <= iterations; ++i) {
    const std::vector<double> option_price = option_prices(lambda);
    const double whole = relax(option_price, true, Extent::kRoot, phi_);
    if (whole == kNoCompletion) return;
    const double value = whole - worth(lambda, resources_);
    // Where the units do not suffice, prices grow without end. They must not become so large that sums are rounded.
    if (value > fastest_.dearest() + 1.0) return;
    const std::vector<double> usage = usage_of(option_price);
    double norm = 0;
    const auto excess_of = [&](std::size_t k) {
      return usage[k] / static_cast<double>(std::max<std::int64_t>(1, resources_[k])) - 1.0;
    };
    for (std::size_t k = 0; k < resources_.size(); ++k) {
      const double excess = excess_of(k);
      if (excess > 0 || lambda[k] > 0) norm += excess * excess;
    }
    if (value > best_value) {
      best_value = value;
      best = lambda;
    }
    if (norm < 1e-12 || best_value >= enough || i == iterations) break;
    if (i == 0) step = fastest_.tuning().first_price_step * std::max(whole, 1.0);
    for (std::size_t k = 0; k < resources_.size(); ++k) {
      const auto most = static_cast<double>(std::max<std::int64_t>(1, resources_[k]));
      lambda[k] = std::max(0.0, lambda[k] + step * excess_of(k) / most / std::sqrt(norm));
    }
    step *= fastest_.tuning().price_step_decay;
  }
  lambda_ = best;
  root_ = best_value;
  if (extent == Extent::kRoot) return;
  unit_price_ = option_prices(lambda_);
  relax(unit_price_, true, Extent::kAll, phi_);
}

std::vector<double> CompletionBound::option_prices(const std::vector<double>& prices) const {
  std::vector<double> result;
  result.reserve(program_.options.size());
  for (const Option& option : program_.options) result.push_back(option_price(program_, option, prices));
  return result;
}

// Fills `table` with phi (or need) for the prices; returns the value for the whole model.
double CompletionBound::relax(const std::vector<double>& option_price, bool with_time, Extent extent,
                              Grid<double>& table) {
  fill_envelope(with_time ? cheapest_times(option_price) : cheapest_units(option_price), extent);
  fill_table(with_time, extent, table);
  return table(program_.blocks, 1);
}

// Each option takes longer at greater depths.
std::vector<std::size_t> CompletionBound::lists_within() const {
  std::vector<std::size_t> within;
  for (const FastestPlans::Table& table : fastest_.tables()) {
    for (auto row = table.times.begin(); row != table.times.end(); row += static_cast<std::ptrdiff_t>(table.lists)) {
      const auto end = row + static_cast<std::ptrdiff_t>(table.lists);
      within.push_back(static_cast<std::size_t>(std::upper_bound(row, end, longest_period_) - row));
    }
  }
  return within;
}

// By list, with its price.
std::vector<double> CompletionBound::cheapest_times(const std::vector<double>& option_price) const {
  std::vector<double> cheapest(fastest_.lists(), kNoCompletion);
  auto within = within_.begin();
  for (const FastestPlans::Table& table : fastest_.tables()) {
    const double* costs = table.costs.data();
    for (const int option : table.options) {
      min_plus_update(&cheapest[table.first_list], costs, at(option_price, option), *within++);
      costs += table.lists;
    }
  }
  return cheapest;
}

// Without time.
std::vector<double> CompletionBound::cheapest_units(const std::vector<double>& option_price) const {
  std::vector<double> cheapest(fastest_.lists(), kNoCompletion);
  for (std::size_t i = 0; i < cheapest.size(); ++i) {
    for (const FastestPlans::Entry& entry : fastest_.list(i)) {
      if (entry.T > longest_period_) break;
      cheapest[i] = std::min(cheapest[i], at(option_price, entry.option));
    }
  }
  return cheapest;
}

// The root looks no deeper than there are blocks beside the slice.
void CompletionBound::fill_envelope(const std::vector<double>& cheapest, Extent extent) {
  if (envelope_.empty()) {
    envelope_ = {program_.signatures, depths_ + 1};
    first_envelope_ = {program_.blocks + 1, depths_ + 1};
  }
  reach_ = 0;
  for (int signature = 0; signature < program_.signatures; ++signature) {
    const int beside = program_.blocks - fastest_.blocks_of(signature);
    const int deepest = extent == Extent::kAll ? depths_ : std::min(depths_, beside + 1);
    double* const row = envelope_.row(signature).data();
    // What does not hold one microbatch does not hold more.
    if (cheapest[fastest_.list_at(signature, 1)] == kNoCompletion) {
      std::fill_n(row + 1, deepest, kNoCompletion);
      continue;
    }
    for (int d = 1; d <= deepest; ++d) row[d] = cheapest[fastest_.list_at(signature, d)];
    reach_ = std::max(reach_, fastest_.blocks_of(signature));
  }
  for (int last = 1; last <= program_.blocks; ++last) {
    for (int d = 1; d <= depths_; ++d) first_envelope_(last, d) = cheapest[fastest_.first_list_at(last, d)];
  }
}

// The root looks no deeper than there are blocks behind: each stage has one at least. Latency may hold more in flight.
void CompletionBound::fill_table(bool with_time, Extent extent, Grid<double>& table) const {
  const int blocks = program_.blocks;
  table.assign(blocks + 1, depths_ + 1, kNoCompletion);
  std::ranges::fill(table.row(0), 0);
  for (int i = 1; i <= blocks; ++i) {
    const int first_depth = i == blocks ? 1 : std::min(2, depths_);
    const int deepest = extent == Extent::kAll ? depths_ : std::min(depths_, blocks - i + 1);
    const int last_depth = i == blocks ? 1 : deepest;
    const int deeper = std::min(last_depth, depths_ - 1);  // up to here the next depth is one more
    double* const here = table.row(i).data();
    for (int d = first_depth; d <= last_depth; ++d) here[d] = first_envelope_(i, d);
    const auto slices = static_cast<std::size_t>(std::min(i - 1, reach_));
    if (slices > 0) {
      const auto row = static_cast<std::size_t>(depths_) + 1;
      const RowTable stages{envelope_.row(0).data(), row};
      const std::span<const int> ending = fastest_.ending_at(i).first(slices);
      const double* const rest = table.row(i - 1).data();
      if (deeper >= first_depth) {
        min_plus_update(here + first_depth, {stages.first + first_depth, stages.stride}, ending, rest + first_depth + 1,
                        row, static_cast<std::size_t>(deeper) + 1 - static_cast<std::size_t>(first_depth));
      }
      if (last_depth == depths_) {
        min_plus_update(here + depths_, {stages.first + depths_, stages.stride}, ending, rest + depths_, row, 1);
      }
    }
    if (i == blocks || !with_time) continue;
    for (int d = first_depth; d <= last_depth; ++d) here[d] += fastest_.round_trip(i);
  }
}

// The resources that the solution behind phi takes: follows the choices that it was made of, found again by their
// values; few cells are on the way.
std::vector<double> CompletionBound::usage_of(const std::vector<double>& option_price) const {
  std::vector<double> usage(resources_.size(), 0);
  for (int i = program_.blocks, d = 1; i > 0;) {
    const int next = std::min(d + 1, depths_);
    double best = first_envelope_(i, d);
    int blocks = i;
    const std::span<const int> ending = fastest_.ending_at(i);
    for (int n = 1; n <= std::min(i - 1, reach_); ++n) {
      const double cost = envelope_(at(ending, n - 1), d) + phi_(i - n, next);
      if (cost >= best) continue;
      best = cost;
      blocks = n;
    }
    const std::size_t list =
        blocks == i ? fastest_.first_list_at(i, d) : fastest_.list_at(program_.signature_of(i - blocks, i), d);
    const int option = cheapest_option(list, option_price);
    add_use<double>(program_, at(program_.options, option), 1, usage);
    i -= blocks;
    d = next;
  }
  return usage;
}

int CompletionBound::cheapest_option(std::size_t list, const std::vector<double>& option_price) const {
  double best = kNoCompletion;
  int option = 0;
  for (const FastestPlans::Entry& entry : fastest_.list(list)) {
    if (entry.T > longest_period_) break;
    const double cost = entry.cost + at(option_price, entry.option);
    if (cost >= best) continue;
    best = cost;
    option = entry.option;
  }
  return option;
}

}  // namespace tangram::chain
