// A strategy by its place in a strategy space, in a few bytes: there are thousands of them, and more answers.
#pragma once

#include <cstdint>

#include "tangram/cost/strategy.hpp"

namespace tangram::parallelizer {

/// Strategies that differ in the number of recomputed blocks alone.
struct Family {
  std::uint16_t units = 0;  ///< index into StrategySpace::units: the degrees
  std::uint16_t chain = 0;  ///< families of equal degrees and ZeRO stage have the same, below StrategySpace::chains
  std::uint8_t zero = 0;
  cost::RecomputeMode recompute = cost::RecomputeMode::kNone;
  bool operator==(const Family&) const = default;
};

/// One of them.
struct Member {
  Family family;
  std::uint16_t layers = 0;  ///< blocks recomputed in full; 0 in other modes
  bool operator==(const Member&) const = default;
};

}  // namespace tangram::parallelizer
