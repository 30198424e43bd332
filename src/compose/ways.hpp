// In how many ways the blocks that are most of the work run. Goes in: paces and a range of microbatches. Comes out:
// what a block takes of a stage in each of them, optimizer, gradients and memory included; those beaten in everything
// are out.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "pace_bound.hpp"

namespace tangram::compose {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What one block takes of a stage, in seconds of a microbatch: where all passes of the stages in front come
/// before and after it, and where their forward passes do and its own gradients.
struct Taken {
  double passes = 0;  ///< with its part of the optimizer's step
  double with_sync = 0;
};

/// A pace at a range of microbatches, on stages of some sizes.
struct Way {
  double fill = 0;    ///< seconds by which a block delays what comes behind it
  double share = 0;   ///< GPUs of a sample
  double work = 0;    ///< GPU-seconds of a sample, gradients and parameters not counted
  Taken whole;        ///< where nothing is sharded
  Taken sharded;      ///< where the optimizer's state is, or more
  double blocks = 0;  ///< most that fit, or more than are ever needed
};

/// A pace, or several: as good as the best of them in everything.
struct Speed {
  Pace pace;
  double total = 0;  ///< seconds of both passes
  double limit = 0;  ///< the least GPU-seconds of a sample
};

/// All degrees with the same samples on as many GPUs are one. By growing total.
[[nodiscard]] std::vector<Speed> merged(const std::vector<Pace>& paces, std::size_t item);

/// By growing fill, within `longest` seconds. `speeds`: as merged() orders them. `blocks`: so many there are.
[[nodiscard]] std::vector<Way> ways_of(const PaceProblem& problem, const std::vector<Speed>& speeds, const Range& range,
                                       double blocks, double longest);

}  // namespace tangram::compose
