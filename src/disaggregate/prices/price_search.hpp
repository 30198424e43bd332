// The linear relaxation: mixtures of placements instead of one. Column generation between the master problem, which
// prices resources, and the cheapest placement at these prices.
#pragma once

#include <vector>

#include "../resources.hpp"

namespace tangram::disaggregate {

struct Relaxation {
  /// No placement has a shorter period. Infinite: memory suffices for none.
  double bound = 0;
  /// Of the best mixture found, which is at most `tolerance` above the bound where costs are priced exactly.
  double period = 0;
  std::vector<Placement> placements;  ///< those with a share, largest first
  std::vector<double> shares;
  std::vector<double>
      prices;  ///< by row, of the best bound: of time without unit, adding up to 1, of memory in seconds
};

/// Everything on one class, for each of them; kernels that do not run there on their fastest.
[[nodiscard]] std::vector<Placement> on_one_class(const Problem& problem);

struct PriceSearch {
  int most_steps = 300;
  double tolerance = 1e-5;      ///< between mixture and bound, relative
  double towards_master = 0.5;  ///< prices tried are so far from the best ones to the master's: it overshoots
  int state_bits = 14;          ///< Frontier
};

/// O(steps) cheapest placements: minimum cuts of two classes, dynamic programs of more.
[[nodiscard]] Relaxation relax(const Resources& resources, const PriceSearch& search = {});

}  // namespace tangram::disaggregate
