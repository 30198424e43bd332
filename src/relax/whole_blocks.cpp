#include "whole_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "execution_modes.hpp"
#include "range_costs.hpp"

namespace tangram::relax {

namespace {

class WholeBlocks {
 public:
  explicit WholeBlocks(const RateProblem& problem) : problem_(problem), item_(main_item()) {
    read_block_rates();
    prices_ = first_prices();
  }

  // No plan takes `seconds` or less where prices say no less than that; and what they say at one time is a good guess
  // at the longest that can be proven.
  double run(double proven) {
    constexpr double kSlack = 1e-9;
    const double close = tuning_.close_times;
    if (!(proven > 0) || !std::isfinite(proven) || prices_.empty()) return proven;
    const double longest = tuning_.furthest_time * proven;
    RangeCosts costs = costs_within(longest);
    double open = longest;  // no prices were found for it
    double step = tuning_.first_growth;
    Guess before{proven, guess_at(proven, costs)};
    // Longer times leave room for more blocks. A guess that is the time itself says nothing, see below.
    if (before.guess < proven * (1 - close)) return proven;
    double rise = 0;  // of guesses, as times get longer
    double seconds = a_little_less(before.guess);
    for (int i = 0; i < tuning_.most_times && open > proven * (1 + close); ++i) {
      if (problem_.deadline.has_passed()) break;
      if (seconds <= proven || seconds >= open) seconds = (proven + open) / 2;
      const Guess now{seconds, guess_at(seconds, costs)};
      if (are_apart(before, now)) rise = (now.guess - before.guess) / (now.seconds - before.seconds);
      before = now;
      const bool is_proven = now.guess > seconds * (1 + kSlack);
      (is_proven ? proven : open) = seconds;
      const bool says_nothing = std::abs(now.guess - seconds) <= close * seconds;
      const bool is_flat = std::abs(rise) < tuning_.steep_guess;
      const double meets = is_flat ? (now.guess - rise * seconds) / (1 - rise) : now.guess;
      if (is_proven && is_flat && meets <= proven * (1 + close)) break;
      if (is_proven && says_nothing) {
        seconds = std::min((proven + open) / 2, proven * (1 + step));
        step *= tuning_.growth_factor;
      } else if (says_nothing || !(is_flat || is_proven)) {
        seconds = (proven + open) / 2;
      } else {
        seconds = a_little_less(meets);
      }
    }
    return proven;
  }

 private:
  // What prices say at a time.
  struct Guess {
    double seconds = 0;
    double guess = 0;
  };

  // Guesses scatter, as no prices are the best: a time that is expected to be proven is tried a little earlier.
  [[nodiscard]] double a_little_less(double seconds) const { return seconds * (1 - tuning_.close_times / 2); }

  [[nodiscard]] bool are_apart(const Guess& a, const Guess& b) const {
    return std::abs(a.seconds - b.seconds) > tuning_.times_apart * a.seconds;
  }

  // What most work is of, where it takes least.
  [[nodiscard]] std::size_t main_item() const {
    std::size_t best = 0;
    double most = -1;
    for (std::size_t j = 0; j < problem_.counts.size(); ++j) {
      double least = kInfinity;
      for (const auto& own : problem_.block_rates) {
        for (const BlockRate& block_rate : own) {
          if (block_rate.item == j)
            least = std::min(least, block_rate.gpu_seconds(0, static_cast<double>(block_rate.last)));
        }
      }
      if (!std::isfinite(least) || problem_.counts[j] * least <= most) continue;
      most = problem_.counts[j] * least;
      best = j;
    }
    return best;
  }

  // At least `forward_share_` of what a block fills is forward.
  void read_block_rates() {
    for (const auto& own : problem_.block_rates) {
      for (const BlockRate& block_rate : own) {
        if (block_rate.item == item_ && block_rate.total() > 0) {
          forward_share_ = std::min(forward_share_, block_rate.forward / block_rate.total());
        }
      }
      rates_.push_back(merged(own, item_));
    }
  }

  [[nodiscard]] RangeCosts costs_within(double longest) const {
    std::vector<double> used;
    used.reserve(problem_.gpus.size());
    for (const double gpus : problem_.gpus) used.push_back(gpus / static_cast<double>(problem_.batch));
    return RangeCosts(
        problem_.batch, forward_share_, std::move(used),
        [this, longest](const Range& range) {
          std::vector<std::vector<ExecutionMode>> modes;
          modes.reserve(rates_.size());
          for (const auto& own : rates_) {
            modes.push_back(execution_modes_of(problem_, own, range, problem_.counts[item_], longest));
          }
          return modes;
        },
        tuning_);
  }

  // Of GPUs by class as of their speed, last of a block.
  [[nodiscard]] std::vector<double> first_prices() const {
    std::vector<double> prices;
    for (const std::vector<MergedRate>& own : rates_) {
      double least = kInfinity;
      for (const MergedRate& s : own) {
        least =
            std::min(least, std::max(s.limit, s.block_rate.gpus * s.total / static_cast<double>(s.block_rate.last)));
      }
      prices.push_back(std::isfinite(least) && least > 0 ? 1 / least : 0);
    }
    if (std::ranges::none_of(prices, [](double price) { return price > 0; })) return {};
    prices.push_back(1);
    return prices;
  }

  // The least time by the best prices that were found, where blocks are counted as within `seconds`.
  [[nodiscard]] double guess_at(double seconds, RangeCosts& costs) {
    std::vector<double> worth(prices_.size(), 0);
    worth.back() = problem_.counts[item_];
    PricesFound found = costs.search(seconds, worth, prices_);
    // Where next to nothing fits, prices run away, and are no place to begin from at a longer time.
    if (found.ratio <= tuning_.runaway_guess * seconds) prices_ = std::move(found.prices);
    return found.ratio;
  }

  const RateProblem& problem_;
  const BoundTuning& tuning_ = problem_.tuning;
  std::size_t item_;
  double forward_share_ = 1;
  std::vector<std::vector<MergedRate>> rates_;  // by class
  std::vector<double> prices_;
};

}  // namespace

double whole_blocks_bound(const RateProblem& problem, double proven) { return WholeBlocks(problem).run(proven); }

}  // namespace tangram::relax
