// Local search: runs of kernels move to another class while that makes a placement better.
#pragma once

#include <vector>

#include "../ledger.hpp"

namespace tangram::disaggregate {

/// How good a placement is: first what it overdraws of memory, then its period, then what its resources are worth.
struct Score {
  double overdraft = 0;
  double period = 0;
  double priced = 0;

  [[nodiscard]] bool is_better_than(const Score& other) const;
};

[[nodiscard]] Score score_of(const Ledger& ledger, const std::vector<double>& prices);

/// Moves runs of up to a layer's kernels. O(sweeps * kernels * classes) moves; additive rows alone are looked at.
[[nodiscard]] Placement descend(const Resources& resources, const std::vector<double>& prices, Placement placement);

/// The same with pass_latency for value: of small graphs, each move is worked out whole.
[[nodiscard]] Placement descend_latency(const Problem& problem, Placement placement);

}  // namespace tangram::disaggregate
