#include "tangram/multimodal/uneven.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "tangram/base/assert.hpp"

namespace tangram::multimodal {

namespace {

double normal_share_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// By halving: the share is 0 at -9 and 1 at 9 as far as doubles tell.
double normal_quantile(double share) {
  double low = -9;
  double high = 9;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (normal_share_below(middle) < share ? low : high) = middle;
  }
  return high;
}

// Mean and deviation of the logarithm.
struct Lognormal {
  double mean = 0;
  double deviation = 0;

  Lognormal(double mean_itself, double variation) {
    const double variance = std::log1p(variation * variation);
    mean = std::log(mean_itself) - variance / 2;
    deviation = std::sqrt(variance);
  }
};

// The work of a lane's samples, one with items being 1 in the mean.
class LaneWork {
 public:
  LaneWork(const SampleSpread& spread, std::int64_t samples) {
    const auto all = static_cast<double>(samples);
    for (std::int64_t i = 0; i <= samples; ++i) {
      const auto with_items = static_cast<double>(i);
      const double weight = likelihood(with_items, all, spread.none);
      if (i == 0) {
        empty_ = weight;
      } else if (weight > kNegligible) {
        sums_.push_back({weight, {with_items, spread.variation / std::sqrt(with_items)}});
      }
    }
  }

  // The largest of so many: the integral of the chance that one is above x, over x, by the logarithm of x.
  [[nodiscard]] double mean_of_largest(double lanes) const {
    constexpr int kSteps = 2048;
    constexpr double kDeviations = 9;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Sum& sum : sums_) {
      low = std::min(low, sum.work.mean - kDeviations * sum.work.deviation);
      high = std::max(high, sum.work.mean + kDeviations * sum.work.deviation);
    }
    const double step = (high - low) / kSteps;
    double area = std::exp(low) * (1 - std::pow(empty_, lanes));
    for (int i = 0; i < kSteps; ++i) {
      const double middle = low + step * (i + 0.5);
      area += (1 - std::pow(share_below(middle), lanes)) * (std::exp(middle + step / 2) - std::exp(middle - step / 2));
    }
    return area;
  }

 private:
  struct Sum {
    double weight = 0;
    Lognormal work;
  };
  static constexpr double kNegligible = 1e-12;

  // Of so many samples with items; by logarithms, as factorials are too large.
  static double likelihood(double with_items, double all, double none) {
    if (none == 0) return with_items == all ? 1 : 0;
    const double ways = std::lgamma(all + 1) - std::lgamma(with_items + 1) - std::lgamma(all - with_items + 1);
    return std::exp(ways + with_items * std::log1p(-none) + (all - with_items) * std::log(none));
  }

  [[nodiscard]] double share_below(double logarithm) const {
    double share = empty_;
    for (const Sum& sum : sums_) {
      share += sum.weight * normal_share_below((logarithm - sum.work.mean) / sum.work.deviation);
    }
    return std::min(share, 1.0);
  }

  double empty_ = 0;
  std::vector<Sum> sums_;
};

}  // namespace

double slowest_lane(const SampleSpread& spread, std::int64_t lanes, std::int64_t samples) {
  TANGRAM_ASSERT(lanes > 0 && samples > 0 && spread.variation >= 0 && spread.none >= 0 && spread.none < 1);
  if (lanes == 1 || (spread.variation == 0 && spread.none == 0)) return 1;
  constexpr double kLeastVariation = 1e-3;  // a share that jumps is not integrated well
  const LaneWork work({std::max(spread.variation, kLeastVariation), spread.none}, samples);
  const double mean = static_cast<double>(samples) * (1 - spread.none);
  return std::max(1.0, work.mean_of_largest(static_cast<double>(lanes)) / mean);
}

double slowest_lane_quantile(const SampleSpread& spread, std::int64_t lanes, std::int64_t samples) {
  TANGRAM_ASSERT(lanes > 0 && samples > 0 && spread.variation >= 0 && spread.none >= 0 && spread.none < 1);
  if (lanes == 1) return 1;
  const double square = (1 + spread.variation * spread.variation) / (1 - spread.none) - 1;
  const Lognormal work(1, std::sqrt(square / static_cast<double>(samples)));
  const double quantile = 1 - std::exp(-std::numbers::egamma) / static_cast<double>(lanes);
  return std::exp(work.mean + work.deviation * normal_quantile(quantile));
}

}  // namespace tangram::multimodal
