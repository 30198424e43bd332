// Lognormal distributions, as their mean and 95th percentile say them.
#pragma once

#include <algorithm>
#include <cmath>

namespace tangram {

/// Deviation of the logarithm; 0: all values are the mean. p95 / mean = exp(z s - s^2 / 2), of both solutions the
/// smaller s. A percentile that no lognormal has, more than 3.87 times the mean, counts as the widest there is.
[[nodiscard]] inline double lognormal_deviation(double mean, double p95) {
  constexpr double kPercentile = 1.6448536269514722;  // the standard normal's 95th
  if (!(mean > 0) || !(p95 > mean)) return 0;
  const double under_root = kPercentile * kPercentile - 2 * std::log(p95 / mean);
  return kPercentile - std::sqrt(std::max(under_root, 0.0));
}

}  // namespace tangram
