#include "completion_bound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tangram::compose {

namespace {

constexpr int kMostDepths = 16;
constexpr double kStepDecay = 0.85;
constexpr int kCoverSteps = 8;
constexpr double kCoverTolerance = 1e-9;  // relative; absorbs the rounding of sums of weights

std::vector<double> least_round_trips(const Program& program) {
  std::vector<double> least(static_cast<std::size_t>(program.cut_kinds), kNoCompletion);
  const auto per_kind = static_cast<std::size_t>(program.keys) * static_cast<std::size_t>(program.keys);
  for (std::size_t kind = 0; kind < least.size(); ++kind) {
    for (std::size_t pair = 0; pair < per_kind; ++pair) {
      least[kind] = std::min(least[kind], 2.0 * static_cast<double>(program.prices[kind * per_kind + pair].latency));
    }
  }
  std::vector<double> by_cut(static_cast<std::size_t>(program.blocks) + 1, 0);
  for (int cut = 1; cut < program.blocks; ++cut) {
    by_cut[static_cast<std::size_t>(cut)] =
        least[static_cast<std::size_t>(program.cut_kind[static_cast<std::size_t>(cut)])];
  }
  return by_cut;
}

}  // namespace

FastestPlans::FastestPlans(const Program& program) : round_trip_(least_round_trips(program)) {
  depths_ = static_cast<int>(std::clamp<std::int64_t>(std::min<std::int64_t>(program.microbatches, program.blocks), 1, kMostDepths));
  entries_.resize(static_cast<std::size_t>(program.signatures) * static_cast<std::size_t>(depths_ + 1));
  for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
    for (int signature = 0; signature < program.signatures; ++signature) {
      // Candidates come in ascending T: the first that holds a depth is the fastest for it.
      int covered = 0;
      for (const Candidate& candidate : program.frontier(option, signature)) {
        const int holds = candidate.n_max >= program.microbatches
                              ? depths_
                              : static_cast<int>(std::min<std::int64_t>(candidate.n_max, depths_));
        for (int depth = covered + 1; depth <= holds; ++depth) {
          entries_[cell(signature, depth)].push_back({option, static_cast<double>(candidate.T)});
        }
        covered = std::max(covered, holds);
        if (covered == depths_) break;
      }
    }
  }
}

CompletionBound::CompletionBound(const Program& program, const FastestPlans& fastest, std::int64_t longest_period,
                                 std::vector<double> multipliers, int iterations, double enough)
    : program_(program),
      fastest_(fastest),
      longest_period_(static_cast<double>(longest_period)),
      depths_(fastest.depths()) {
  if (!coverable()) return;
  const std::size_t classes = program.inventory.size();
  if (multipliers.size() != classes) multipliers.assign(classes, 0);
  ascend(std::move(multipliers), iterations, enough);
}

double CompletionBound::inner(const std::vector<double>& prices, const std::vector<int>& units) {
  double sum = 0;
  for (std::size_t k = 0; k < units.size(); ++k) sum += prices[k] * units[k];
  return sum;
}

double CompletionBound::violation(const std::vector<double>& prices, const Relaxation& relaxation) const {
  return relaxation.whole - inner(prices, program_.inventory);
}

// Looks for weights under which even the cheapest cover takes more than there is. Leaves the most telling weights and
// their table behind.
bool CompletionBound::coverable() {
  std::vector<double> weight = capacity_weights();
  double best = -kNoCompletion;
  std::vector<double> table;
  double step = 0.5;
  for (int i = 0; i <= kCoverSteps; ++i) {
    const Relaxation relaxation = relax(weight, false, table);
    if (relaxation.whole == kNoCompletion) return false;
    const double supply = inner(weight, program_.inventory);
    const double value = supply > 0 ? violation(weight, relaxation) / supply : 0;
    if (value > best) {
      best = value;
      weight_ = weight;
      need_ = table;
    }
    if (best > kCoverTolerance) return false;
    for (std::size_t k = 0; k < weight.size(); ++k) {
      const double inventory = std::max(1, program_.inventory[k]);
      weight[k] = std::max(0.0, weight[k] * (1.0 + step * (relaxation.usage[k] / inventory - 1.0)));
    }
    step *= kStepDecay;
  }
  // Loosened once, so that sums of weights rounded in another order still compare as they should.
  const double slack = kCoverTolerance * std::max(1.0, inner(weight_, program_.inventory));
  for (double& value : need_) value -= slack;
  unit_weight_ = option_prices(weight_);
  return true;
}

// Blocks that one unit of each class can hold at most within the period: where classes differ by a factor only, these
// weights decide exactly.
std::vector<double> CompletionBound::capacity_weights() const {
  std::vector<double> weights(program_.inventory.size(), 0);
  for (int first = 0; first < program_.blocks; ++first) {
    for (int last = first + 1; last <= program_.blocks; ++last) {
      for (const FastestPlans::Entry& entry : fastest_.at(fastest_.cell(program_.signature_of(first, last), 1))) {
        const Option& option = program_.options[static_cast<std::size_t>(entry.option)];
        if (entry.T > longest_period_ || option.uses.size() != 1) continue;
        double& weight = weights[static_cast<std::size_t>(option.uses.front().island_class)];
        weight = std::max(weight, static_cast<double>(last - first) / option.uses.front().units);
      }
    }
  }
  return weights;
}

void CompletionBound::ascend(std::vector<double> lambda, int iterations, double enough) {
  const std::size_t classes = program_.inventory.size();
  std::vector<double> best = lambda;
  double best_value = -kNoCompletion;
  double step = 0;
  for (int i = 0; i <= iterations; ++i) {
    const Relaxation relaxation = relax(lambda, true, phi_);
    if (relaxation.whole == kNoCompletion) return;
    const double value = violation(lambda, relaxation);
    double norm = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      const double excess = relaxation.usage[k] / std::max(1, program_.inventory[k]) - 1.0;
      if (excess > 0 || lambda[k] > 0) norm += excess * excess;
    }
    if (value > best_value) {
      best_value = value;
      best = lambda;
    }
    if (norm < 1e-12 || best_value >= enough || i == iterations) break;
    if (i == 0) step = 0.5 * std::max(relaxation.whole, 1.0);
    for (std::size_t k = 0; k < classes; ++k) {
      const double inventory = std::max(1, program_.inventory[k]);
      const double excess = relaxation.usage[k] / inventory - 1.0;
      lambda[k] = std::max(0.0, lambda[k] + step * excess / inventory / std::sqrt(norm));
    }
    step *= kStepDecay;
  }
  lambda_ = best;
  root_ = violation(best, relax(best, true, phi_));
  unit_price_ = option_prices(lambda_);
}

std::vector<double> CompletionBound::option_prices(const std::vector<double>& prices) const {
  std::vector<double> result(program_.options.size(), 0);
  for (std::size_t option = 0; option < program_.options.size(); ++option) {
    for (const Use& use : program_.options[option].uses) {
      result[option] += prices[static_cast<std::size_t>(use.island_class)] * use.units;
    }
  }
  return result;
}

// Fills `table` with phi (or need) for the prices; returns the value for the whole model and the units it takes.
CompletionBound::Relaxation CompletionBound::relax(const std::vector<double>& prices, bool with_time,
                                                   std::vector<double>& table) {
  const std::vector<double> option_price = option_prices(prices);
  envelope_.assign(fastest_.cells(), kNoCompletion);
  envelope_option_.assign(fastest_.cells(), -1);
  for (std::size_t i = 0; i < envelope_.size(); ++i) {
    for (const FastestPlans::Entry& f : fastest_.at(i)) {
      if (f.T > longest_period_) continue;
      const double cost = (with_time ? f.T : 0.0) + option_price[static_cast<std::size_t>(f.option)];
      if (cost < envelope_[i]) {
        envelope_[i] = cost;
        envelope_option_[i] = f.option;
      }
    }
  }
  const int blocks = program_.blocks;
  table.assign(cell(blocks + 1, 0), kNoCompletion);
  choice_.assign(table.size(), 0);
  for (int d = 0; d <= depths_; ++d) table[cell(0, d)] = 0;
  for (int i = 1; i <= blocks; ++i) {
    const int first_depth = i == blocks ? 1 : std::min(2, depths_);
    const int last_depth = i == blocks ? 1 : depths_;
    const double hop = i == blocks || !with_time ? 0 : fastest_.round_trip(i);
    for (int d = first_depth; d <= last_depth; ++d) {
      const int next = std::min(d + 1, depths_);
      double best = kNoCompletion;
      int best_blocks = 0;
      for (int n = 1; n <= i; ++n) {
        const double cost = envelope_[fastest_.cell(program_.signature_of(i - n, i), d)] + table[cell(i - n, next)];
        if (cost < best) {
          best = cost;
          best_blocks = n;
        }
      }
      table[cell(i, d)] = best + hop;
      choice_[cell(i, d)] = best_blocks;
    }
  }
  Relaxation relaxation;
  relaxation.usage.assign(program_.inventory.size(), 0);
  relaxation.whole = table[cell(blocks, 1)];
  if (relaxation.whole == kNoCompletion) return relaxation;
  for (int i = blocks, d = 1; i > 0; d = std::min(d + 1, depths_)) {
    const int n = choice_[cell(i, d)];
    const int option = envelope_option_[fastest_.cell(program_.signature_of(i - n, i), d)];
    for (const Use& use : program_.options[static_cast<std::size_t>(option)].uses) {
      relaxation.usage[static_cast<std::size_t>(use.island_class)] += use.units;
    }
    i -= n;
  }
  return relaxation;
}

}  // namespace tangram::compose
