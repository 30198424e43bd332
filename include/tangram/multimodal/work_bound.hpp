// What no placement of the modules can beat, without a search. Goes in: how much work there is of each kind, how long
// it takes on each class of GPUs, and how many there are. Comes out: a lower bound on the time of an iteration, and the
// prices that prove it.
#pragma once

#include <vector>

#include "tangram/base/grid.hpp"

namespace tangram::multimodal {

/// Of a fleet and a model. Kinds are of blocks: one or more of each module.
struct FleetWork {
  std::vector<double> amount;  ///< of each kind: its blocks, times the samples of a batch; more than none
  std::vector<double> gpus;    ///< of each class
  /// By kind and class: the least GPU time of one block for one sample, passes in both directions, in any degrees; ns.
  /// Infinite: this class does not run it.
  Grid<double> gpu_time;
};

struct WorkBound {
  double time = 0;                  ///< ns; infinite: some kind runs nowhere
  std::vector<double> block_price;  ///< what a block of each kind is worth, and with it
  std::vector<double> gpu_price;    ///< what a GPU of each class has to earn
};

/// The linear program min t with sum over classes of w = amount for each kind and sum over kinds of w times GPU time <=
/// gpus t for each class, by its dual: block prices m prove t >= sum of m amount / sum over classes of gpus max(m / GPU
/// time). Within 1e-6 of the program's value, and no more than it.
[[nodiscard]] WorkBound work_bound(const FleetWork& work);

}  // namespace tangram::multimodal
