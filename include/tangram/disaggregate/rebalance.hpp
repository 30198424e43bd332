// A plan whose times turned out otherwise. Goes in: the plan, busy seconds of each class as they were measured. Comes
// out: the plan with a few kernels moved, so that no class waits for another longer than it must.
#pragma once

#include <vector>

#include "tangram/disaggregate/problem.hpp"

namespace tangram::disaggregate {

struct Rebalance {
  std::vector<double> measured;  ///< seconds a round, of one GPU of each class; not all 0
  /// Kernels that may change their class at a time: a step of the running system, after which it measures again.
  int most_moves = 8;
  /// By kernel and class: its weights are there. Empty: wherever it runs.
  Grid<char> is_resident;
};

/// Times of each class are taken to be off by one factor, measured over planned. Kernels move one by one while that
/// shortens the period at these times, first those for which all GPUs and links together pay least. Memory is not
/// overdrawn more.
[[nodiscard]] Placement rebalanced(const Problem& planned, Placement placement, const Rebalance& by);

}  // namespace tangram::disaggregate
