// The execution modes of the blocks that are most of the work. Goes in: block rates and a range of microbatches. Comes
// out: what a block takes of a stage in each of them, optimizer, gradients and memory included; those beaten in
// everything are out.
#pragma once

#include <cstdint>
#include <vector>

#include "rate_bound.hpp"

namespace tangram::relax {

/// What one block takes of a stage, in seconds of a microbatch: where all passes of the stages in front come
/// before and after it, and where their forward passes do and its own gradients.
struct Taken {
  double passes = 0;  ///< with its part of the optimizer's step
  double with_sync = 0;
};

/// An execution mode of a block: its rate at a range of microbatches, on stages of some sizes.
struct ExecutionMode {
  double fill = 0;    ///< seconds by which a block delays what comes behind it
  double share = 0;   ///< GPUs of a sample
  double work = 0;    ///< GPU-seconds of a sample, gradients and parameters not counted
  Taken whole;        ///< where nothing is sharded
  Taken sharded;      ///< where the optimizer's state is, or more
  double blocks = 0;  ///< most that fit, or more than are ever needed
};

/// A block rate, or several: as good as the best of them in everything.
struct MergedRate {
  BlockRate block_rate;
  double total = 0;  ///< seconds of both passes
  double limit = 0;  ///< the least GPU-seconds of a sample
};

/// All degrees with the same samples on as many GPUs are one.
[[nodiscard]] std::vector<MergedRate> merged(const std::vector<BlockRate>& block_rates, std::size_t item);

/// By growing fill, within `longest` seconds. `blocks`: so many there are.
[[nodiscard]] std::vector<ExecutionMode> execution_modes_of(const RateProblem& problem,
                                                            const std::vector<MergedRate>& rates, const Range& range,
                                                            double blocks, double longest);

}  // namespace tangram::relax
