// What all that goes over a program's periods has in common: how far they reach, how they are stepped through, and how
// much a bound is worth at one after another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

inline constexpr std::int64_t kNever = INT64_MAX;
inline constexpr std::int64_t kLongestPeriod = INT64_MAX / 16;
inline constexpr std::int64_t kAnyTime = INT64_MAX / 4;  ///< a cutoff that cuts nothing

/// (M - 1) P: of all microbatches but the first.
[[nodiscard]] inline std::int64_t all_periods(const Program& program, std::int64_t period) {
  return (program.microbatches - 1) * period;
}

/// Subgradient steps of a bound with multipliers of another period, or without.
[[nodiscard]] inline int ascent_from(const std::vector<double>& multipliers, const SolverTuning& tuning) {
  return multipliers.empty() ? tuning.first_ascent : tuning.next_ascent;
}

/// The upper end of the interval of the geometric grid that begins at `period`.
[[nodiscard]] inline std::int64_t interval_end(std::int64_t period, const SolverTuning& tuning) {
  return static_cast<std::int64_t>(static_cast<double>(period) * tuning.period_growth) + 1;
}

/// A bound in whole nanoseconds, less one for the rounding of doubles. kNever: there is nothing so long.
[[nodiscard]] inline std::int64_t whole_nanoseconds(double bound) {
  if (!(bound < static_cast<double>(kLongestPeriod))) return kNever;
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(bound - 1.0)));
}

/// T of the slowest plan; 0: there is none. All stages fit a period of so much.
[[nodiscard]] inline std::int64_t slowest_stage(const Program& program) {
  std::int64_t slowest = 0;
  for (const auto& frontier : program.frontiers) {
    if (!frontier.empty()) slowest = std::max(slowest, frontier.back().T);
  }
  return slowest;
}

}  // namespace tangram::chain
