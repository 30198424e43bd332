// Kernels that an arm keeps together, and the placements of whole groups.
#pragma once

#include <vector>

#include "tangram/disaggregate/compare.hpp"

namespace tangram::disaggregate {

/// Kernels by phase, block or both.
struct Groups {
  std::vector<int> of;  ///< by kernel
  int count = 0;
};

/// Of the arms by phases and blocks, shared or not.
[[nodiscard]] Groups groups_of(const Problem& problem, ArmKind kind);

/// All placements of whole groups whose kernels run there and whose weights and caches fit.
[[nodiscard]] std::vector<Placement> group_placements(const Problem& problem, const Groups& groups);

/// What an arm found: placements of shares of the requests, and the period with them.
struct GroupPlan {
  std::vector<Share> placements;  ///< empty: nothing fits
  double period = kNever;
  std::vector<double> memory;  ///< bytes of one GPU of each class
  double bound = kNever;       ///< no plan of the arm has a shorter period

  /// Takes one placement of all requests instead, where it fits and its period is shorter. Leaves the bound.
  bool improve(const Problem& problem, Placement placement);
};

/// The best placement of whole groups.
[[nodiscard]] GroupPlan place_groups(const Problem& problem, const Groups& groups);

/// The best mixture of placements of whole groups. Every class holds the weights of all placements that have a share;
/// caches come with their share.
[[nodiscard]] GroupPlan share_groups(const Problem& problem, const Groups& groups);

/// Seconds a round of a mixture: the largest row of Resources, by shares. Of one placement Usage::period.
[[nodiscard]] double period_of(const Problem& problem, const std::vector<Share>& placements);

}  // namespace tangram::disaggregate
