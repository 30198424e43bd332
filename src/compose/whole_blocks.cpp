#include "whole_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "range_costs.hpp"
#include "ways.hpp"

namespace tangram::compose {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Solver {
 public:
  explicit Solver(const PaceProblem& problem) : problem_(problem), item_(main_item()) {
    read_paces();
    prices_ = first_prices();
  }

  // No plan takes `seconds` or less where prices say no less than that; and what they say at one time is a good guess
  // at the longest that can be proven.
  double run(double proven) {
    constexpr int kMostTries = 10;
    constexpr double kClose = 1e-3;
    constexpr double kRounding = 1e-9;
    constexpr double kLongest = 2;       // times what was proven before
    constexpr double kFirstStep = 4e-3;  // beyond a time that is proven but says nothing of longer ones
    constexpr double kStepGrowth = 4;
    if (!(proven > 0) || !std::isfinite(proven) || prices_.empty()) return proven;
    const double longest = kLongest * proven;
    RangeCosts costs = costs_within(longest);
    double open = longest;  // no prices were found for it
    double step = kFirstStep;
    double seconds = guess_at(proven, costs);
    // Longer times leave room for more blocks. A guess that is the time itself says nothing, see below.
    if (seconds < proven * (1 - kClose)) return proven;
    for (int i = 0; i < kMostTries && open > proven * (1 + kClose); ++i) {
      if (seconds <= proven || seconds >= open) seconds = (proven + open) / 2;
      const double guess = guess_at(seconds, costs);
      if (guess > seconds * (1 + kRounding)) {
        proven = seconds;
        // It may be the longest, or of those that say nothing.
        const bool says_more = guess > seconds * (1 + kClose);
        seconds = says_more ? guess : std::min((proven + open) / 2, proven * (1 + step));
        if (!says_more) step *= kStepGrowth;
      } else {
        open = seconds;
        // The next guess is often too long as well, later by no more than it fell short. Where the same blocks fit at
        // all times, it is the time itself, and says nothing.
        const bool says_nothing = guess > seconds * (1 - kClose);
        const double less = i == 0 ? guess : 2 * guess - seconds;
        seconds = says_nothing ? (proven + open) / 2 : less;
      }
    }
    return proven;
  }

 private:
  // What most work is of, where it takes least.
  [[nodiscard]] std::size_t main_item() const {
    std::size_t best = 0;
    double most = -1;
    for (std::size_t j = 0; j < problem_.counts.size(); ++j) {
      double least = kInfinity;
      for (const auto& own : problem_.paces) {
        for (const Pace& pace : own) {
          if (pace.item == j) least = std::min(least, pace.gpu_seconds(0, static_cast<double>(pace.last)));
        }
      }
      if (!std::isfinite(least) || problem_.counts[j] * least <= most) continue;
      most = problem_.counts[j] * least;
      best = j;
    }
    return best;
  }

  // At least `forward_share_` of what a block fills is forward.
  void read_paces() {
    for (const auto& own : problem_.paces) {
      for (const Pace& pace : own) {
        if (pace.item == item_ && pace.total() > 0) {
          forward_share_ = std::min(forward_share_, pace.forward / pace.total());
        }
      }
      speeds_.push_back(merged(own, item_));
    }
  }

  [[nodiscard]] RangeCosts costs_within(double longest) const {
    std::vector<double> used;
    used.reserve(problem_.gpus.size());
    for (const double gpus : problem_.gpus) used.push_back(gpus / static_cast<double>(problem_.batch));
    return RangeCosts(problem_.batch, forward_share_, std::move(used), [this, longest](const Range& range) {
      std::vector<std::vector<Way>> ways;
      ways.reserve(speeds_.size());
      for (const auto& own : speeds_) {
        ways.push_back(ways_of(problem_, own, range, problem_.counts[item_], longest));
      }
      return ways;
    });
  }

  // Of GPUs by class as of their speed, last of a block.
  [[nodiscard]] std::vector<double> first_prices() const {
    std::vector<double> prices;
    for (const std::vector<Speed>& own : speeds_) {
      double least = kInfinity;
      for (const Speed& s : own) {
        least = std::min(least, std::max(s.limit, s.pace.gpus * s.total / static_cast<double>(s.pace.last)));
      }
      prices.push_back(std::isfinite(least) && least > 0 ? 1 / least : 0);
    }
    if (std::ranges::none_of(prices, [](double price) { return price > 0; })) return {};
    prices.push_back(1);
    return prices;
  }

  // The least time by the best prices that were found, where blocks are counted as within `seconds`.
  [[nodiscard]] double guess_at(double seconds, RangeCosts& costs) {
    constexpr double kFar = 2;
    std::vector<double> worth(prices_.size(), 0);
    worth.back() = problem_.counts[item_];
    PricesFound found = costs.search(seconds, worth, prices_);
    // Where next to nothing fits, prices run away, and are no place to begin from at a longer time.
    if (found.ratio <= kFar * seconds) prices_ = std::move(found.prices);
    return found.ratio;
  }

  const PaceProblem& problem_;
  std::size_t item_;
  double forward_share_ = 1;
  std::vector<std::vector<Speed>> speeds_;  // by class
  std::vector<double> prices_;
};

}  // namespace

double whole_blocks_bound(const PaceProblem& problem, double proven) { return Solver(problem).run(proven); }

}  // namespace tangram::compose
