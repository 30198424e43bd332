#include "whole_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "price_search.hpp"
#include "timeline.hpp"
#include "ways.hpp"

namespace tangram::compose {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One by one as long as blocks are few on a stage or many: rounding them down differs from one number to the next.
std::vector<Range> ranges_of(std::int64_t batch) {
  constexpr double kStep = 1.01;
  std::vector<Range> ranges;
  for (std::int64_t first = 1; first <= batch;) {
    const std::int64_t next = static_cast<std::int64_t>(static_cast<double>(first) * kStep) + 1;
    ranges.push_back({first, std::min(next - 1, batch)});
    first = next;
  }
  return ranges;
}

class Solver {
 public:
  explicit Solver(const PaceProblem& problem)
      : problem_(problem), item_(main_item()), ranges_(ranges_of(problem.batch)), moments_(moments_of_fill()) {
    read_paces();
    prices_ = first_prices();
  }

  // No plan takes `seconds` or less where prices say no less than that; and what they say at one time is a good guess
  // at the longest that can be proven.
  double run(double proven) {
    constexpr int kMostTries = 10;
    constexpr double kClose = 1e-3;
    constexpr double kRounding = 1e-9;
    constexpr double kLongest = 2;    // times what was proven before
    constexpr std::size_t kSome = 5;  // of all ranges one, for a first guess
    if (!(proven > 0) || !std::isfinite(proven) || prices_.empty()) return proven;
    const double longest = kLongest * proven;
    read_ways(longest);
    double open = longest;  // no prices were found for it
    double seconds = guess_at(proven, kSome);
    for (int i = 0; i < kMostTries && open > proven * (1 + kClose); ++i) {
      if (seconds <= proven || seconds >= open) seconds = (proven + open) / 2;
      const double guess = guess_at(seconds);
      if (guess > seconds * (1 + kRounding)) {
        proven = seconds;
        if (guess <= seconds * (1 + kClose)) break;
        seconds = guess;
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

  void read_ways(double longest) {
    for (const Range& range : ranges_) {
      auto& by_class = ways_.emplace_back();
      for (const auto& own : speeds_) {
        by_class.push_back(ways_of(problem_, own, range, problem_.counts[item_], longest));
      }
    }
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
  [[nodiscard]] double guess_at(double seconds, std::size_t every = 1) {
    constexpr double kFar = 2;
    std::vector<Timeline> timelines;
    timelines.reserve(ranges_.size());
    for (std::size_t r = 0; r < ranges_.size(); r += every) {
      timelines.emplace_back(ranges_[r], forward_share_, ways_[r], seconds, moments_);
    }
    PriceSearch search;
    search.worth.assign(prices_.size(), 0);
    search.worth.back() = problem_.counts[item_];
    search.costs = [&](const std::vector<double>& prices) {
      std::vector<CostSlopes> all;
      all.reserve(timelines.size());
      for (Timeline& timeline : timelines) all.push_back(with_fleet(timeline.response(prices)));
      return all;
    };
    PricesFound found = search_prices(search, prices_);
    // Where next to nothing fits, prices run away, and are no place to begin from at a longer time.
    if (found.ratio <= kFar * seconds) prices_ = std::move(found.prices);
    return found.ratio;
  }

  [[nodiscard]] CostSlopes with_fleet(CostSlopes slopes) const {
    for (std::size_t k = 0; k < problem_.gpus.size(); ++k) {
      slopes[k] += problem_.gpus[k] / static_cast<double>(problem_.batch);
    }
    return slopes;
  }

  const PaceProblem& problem_;
  std::size_t item_;
  std::vector<Range> ranges_;
  std::vector<Moment> moments_;
  double forward_share_ = 1;
  std::vector<std::vector<Speed>> speeds_;           // by class
  std::vector<std::vector<std::vector<Way>>> ways_;  // by range and class
  std::vector<double> prices_;
};

}  // namespace

double whole_blocks_bound(const PaceProblem& problem, double proven) { return Solver(problem).run(proven); }

}  // namespace tangram::compose
