#include "completion_bound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tangram::compose {

namespace {

constexpr int kMostDepths = 24;
constexpr double kStepDecay = 0.85;

}  // namespace

CompletionBound::CompletionBound(const Program& program, std::int64_t longest_period, std::vector<double> multipliers,
                                 int iterations, double enough)
    : program_(program) {
  depths_ = static_cast<int>(std::min<std::int64_t>({program.microbatches, program.blocks, kMostDepths}));
  depths_ = std::max(depths_, 1);
  collect_fastest(longest_period);
  collect_round_trips();

  const std::size_t classes = program.inventory.size();
  std::vector<double> lambda = multipliers.size() == classes ? std::move(multipliers) : std::vector<double>(classes, 0);
  std::vector<double> usage(classes, 0);
  std::vector<double> best = lambda;
  double best_value = -kNoCompletion;
  double step = 0;
  for (int i = 0; i <= iterations; ++i) {
    const double covered = relax(lambda, usage);
    if (covered == kNoCompletion) {
      root_ = kNoCompletion;
      return;
    }
    double value = covered;
    double norm = 0;
    for (std::size_t k = 0; k < classes; ++k) {
      const double inventory = std::max(1, program.inventory[k]);
      value -= lambda[k] * program.inventory[k];
      const double excess = (usage[k] - program.inventory[k]) / inventory;
      if (excess > 0 || lambda[k] > 0) norm += excess * excess;
    }
    if (value > best_value) {
      best_value = value;
      best = lambda;
    }
    if (norm < 1e-12 || best_value >= enough || i == iterations) break;
    if (i == 0) step = 0.5 * std::max(covered, 1.0);
    for (std::size_t k = 0; k < classes; ++k) {
      const double inventory = std::max(1, program.inventory[k]);
      const double excess = (usage[k] - program.inventory[k]) / inventory;
      lambda[k] = std::max(0.0, lambda[k] + step * excess / inventory / std::sqrt(norm));
    }
    step *= kStepDecay;
  }
  lambda_ = best;
  root_ = relax(best, usage);
  for (std::size_t k = 0; k < classes; ++k) root_ -= best[k] * program.inventory[k];
}

double CompletionBound::refund(const std::vector<int>& units_left) const {
  double sum = 0;
  for (std::size_t k = 0; k < units_left.size(); ++k) sum += lambda_[k] * units_left[k];
  return sum;
}

void CompletionBound::collect_fastest(std::int64_t longest_period) {
  const auto stride = static_cast<std::size_t>(depths_ + 1);
  fastest_.assign(static_cast<std::size_t>(program_.signatures) * stride, {});
  for (int option = 0; option < static_cast<int>(program_.options.size()); ++option) {
    for (int signature = 0; signature < program_.signatures; ++signature) {
      // Candidates come in ascending T: the first that holds a depth is the fastest for it.
      int covered = 0;
      for (const Candidate& candidate : program_.frontier(option, signature)) {
        if (candidate.T > longest_period) break;
        const int holds = candidate.n_max >= program_.microbatches
                              ? depths_
                              : static_cast<int>(std::min<std::int64_t>(candidate.n_max, depths_));
        for (int depth = covered + 1; depth <= holds; ++depth) {
          fastest_[static_cast<std::size_t>(signature) * stride + static_cast<std::size_t>(depth)].push_back(
              {option, static_cast<double>(candidate.T)});
        }
        covered = std::max(covered, holds);
        if (covered == depths_) break;
      }
    }
  }
}

void CompletionBound::collect_round_trips() {
  std::vector<double> least(static_cast<std::size_t>(program_.cut_kinds), kNoCompletion);
  const auto per_kind = static_cast<std::size_t>(program_.keys) * static_cast<std::size_t>(program_.keys);
  for (std::size_t kind = 0; kind < least.size(); ++kind) {
    for (std::size_t pair = 0; pair < per_kind; ++pair) {
      least[kind] = std::min(least[kind], 2.0 * static_cast<double>(program_.prices[kind * per_kind + pair].latency));
    }
  }
  round_trip_.assign(static_cast<std::size_t>(program_.blocks) + 1, 0);
  for (int cut = 1; cut < program_.blocks; ++cut) {
    round_trip_[static_cast<std::size_t>(cut)] =
        least[static_cast<std::size_t>(program_.cut_kind[static_cast<std::size_t>(cut)])];
  }
}

// Evaluates phi for the multipliers; returns phi of the whole model and the units its solution uses.
double CompletionBound::relax(const std::vector<double>& lambda, std::vector<double>& usage) {
  const auto stride = static_cast<std::size_t>(depths_ + 1);
  unit_price_.assign(program_.options.size(), 0);
  for (std::size_t option = 0; option < program_.options.size(); ++option) {
    for (const Use& use : program_.options[option].uses) {
      unit_price_[option] += lambda[static_cast<std::size_t>(use.island_class)] * use.units;
    }
  }
  envelope_.assign(fastest_.size(), kNoCompletion);
  envelope_option_.assign(fastest_.size(), -1);
  for (std::size_t i = 0; i < fastest_.size(); ++i) {
    for (const Fastest& f : fastest_[i]) {
      const double cost = f.T + unit_price_[static_cast<std::size_t>(f.option)];
      if (cost < envelope_[i]) {
        envelope_[i] = cost;
        envelope_option_[i] = f.option;
      }
    }
  }
  const int blocks = program_.blocks;
  phi_.assign(static_cast<std::size_t>(blocks + 1) * stride, kNoCompletion);
  choice_.assign(phi_.size(), 0);
  for (int d = 0; d <= depths_; ++d) phi_[cell(0, d)] = 0;
  for (int i = 1; i <= blocks; ++i) {
    const int first_depth = i == blocks ? 1 : std::min(2, depths_);
    const int last_depth = i == blocks ? 1 : depths_;
    const double hop = i == blocks ? 0 : round_trip_[static_cast<std::size_t>(i)];
    for (int d = first_depth; d <= last_depth; ++d) {
      const int next = std::min(d + 1, depths_);
      double best = kNoCompletion;
      int best_blocks = 0;
      for (int n = 1; n <= i; ++n) {
        const auto at = static_cast<std::size_t>(program_.signature_of(i - n, i)) * stride + static_cast<std::size_t>(d);
        const double cost = envelope_[at] + phi_[cell(i - n, next)];
        if (cost < best) {
          best = cost;
          best_blocks = n;
        }
      }
      phi_[cell(i, d)] = best + hop;
      choice_[cell(i, d)] = best_blocks;
    }
  }
  usage.assign(program_.inventory.size(), 0);
  const double whole = phi_[cell(blocks, 1)];
  if (whole == kNoCompletion) return whole;
  for (int i = blocks, d = 1; i > 0; d = std::min(d + 1, depths_)) {
    const int n = choice_[cell(i, d)];
    const auto at = static_cast<std::size_t>(program_.signature_of(i - n, i)) * stride + static_cast<std::size_t>(d);
    for (const Use& use : program_.options[static_cast<std::size_t>(envelope_option_[at])].uses) {
      usage[static_cast<std::size_t>(use.island_class)] += use.units;
    }
    i -= n;
  }
  return whole;
}

}  // namespace tangram::compose
