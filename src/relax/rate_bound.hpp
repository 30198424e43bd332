// The least iteration time for blocks at given block rates. README.md, "A bound without a search", has the argument.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "block_rates.hpp"
#include "tangram/base/deadline.hpp"
#include "tangram/relax/bound_tuning.hpp"

namespace tangram::relax {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What there is and what is to be done.
struct RateProblem {
  std::vector<std::vector<BlockRate>> block_rates;  ///< by class
  std::vector<double> gpus;                         ///< by class
  std::vector<double> counts;                       ///< by item: how often a sample meets it
  std::int64_t batch = 1;                           ///< samples
  double gathered = 0;                              ///< bytes of a parameter to those of its gradient, at most 1
  BoundTuning tuning = {};
  double chunks = 1;       ///< model chunks of a stage, at most: what comes behind a stage waits for such a part of it
  Deadline deadline = {};  ///< what is proven by then counts
  bool zero_bubble =
      false;  ///< what comes behind a stage, and the way of a microbatch, wait for its forward pass alone
};

/// Numbers of microbatches that are looked at together.
struct Range {
  std::int64_t first = 1;
  std::int64_t last = 1;
};

/// Seconds. Infinite where some item has no block rate; 0 where the deadline ends it.
[[nodiscard]] double rate_bound(const RateProblem& problem);

}  // namespace tangram::relax
