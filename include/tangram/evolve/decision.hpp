// Keep the old plan or change it. Goes in: what the old plan is worth now and what others are. Comes out: which of
// them, as few GPUs as possible with other work.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace tangram::evolve {

struct Candidate {
  double cost = 0;  ///< less is better: seconds, dollars, GPUs
  int moved = 0;    ///< GpuCounts::moved of a switch to it
};

struct Decision {
  std::optional<std::size_t> change;  ///< to which candidate; none: keep the old plan
  double best_gain = 0;  ///< of the best candidate: old cost / its cost - 1; 0 without an old plan that fits
  double gain = 0;       ///< of the one that was chosen; 0: none was
};

/// Keeps a plan that fits (`old_cost`) unless one gains at least `least_gain`, and something. Otherwise takes, of the
/// candidates that cost at most `least_gain` more than the best and gain so much themselves, the one that moves fewest
/// GPUs; of those the cheapest, then the first. There must be a candidate where the old plan does not fit.
[[nodiscard]] Decision decide(std::optional<double> old_cost, std::span<const Candidate> candidates, double least_gain);

}  // namespace tangram::evolve
