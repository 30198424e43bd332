// What samples that are not alike cost a module. Goes in: how the work of one sample varies. Comes out: how many times
// the mean the slowest of several lanes takes. Plans are priced with it: E where encoders are colocated, T of an
// encoder's stages elsewhere.
#pragma once

#include <cstdint>

namespace tangram::multimodal {

/// The encoder's work for one sample that has items is lognormal.
struct SampleSpread {
  double variation = 0;  ///< standard deviation over mean, of samples that have items
  double none = 0;       ///< share of samples without: text alone; below 1
};

/// Mean work of the slowest of `lanes` lanes, each with `samples` samples, over the mean of all lanes; at least 1. Both
/// at least 1. A lane's work is that of its samples with items, whose number is binomial; each sum of them is taken for
/// lognormal, with its own mean and variance (Fenton, IRE Transactions 8(1), 1960). O(samples).
[[nodiscard]] double slowest_lane(const SampleSpread& spread, std::int64_t lanes, std::int64_t samples);

/// The same by one quantile, 1 - e^-0.5772 / lanes, of a lognormal with the mean and variance of a lane's work: the
/// mean of the largest of many draws is near it (Gumbel, Statistics of Extremes, 1958). Up to a third low where
/// samples are few, and vary as much as their mean or often have no items. O(1).
[[nodiscard]] double slowest_lane_quantile(const SampleSpread& spread, std::int64_t lanes, std::int64_t samples);

}  // namespace tangram::multimodal
