// Chains a little slower than the best by closed form, which may be faster pass by pass. Goes in: a program, and the
// chains that its search found, if any. Comes out: the fastest by timetable, polished. Proves nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "completion_bound.hpp"
#include "label_search.hpp"
#include "tangram/compose/program.hpp"

namespace tangram::compose {

inline constexpr double kReach = 0.1;  ///< slower by closed form than the best, at most

struct NearBestQuery {
  std::int64_t shortest_period = 1;
  std::int64_t longest_period = 1;
  std::int64_t incumbent = INT64_MAX;  ///< timetables of at least so much are of no interest
  int beam = 16;                       ///< of the beam searches that find chains
  std::span<const Chain> chains;       ///< found before, evaluated, the best first
  std::size_t starts = 8;              ///< chains that are polished, at most
  /// Chains are polished whose least time is below so many times the fastest timetable.
  double least_time_share = 1;
  /// Closed forms of at least so much are of no interest. Where no chain was found before, nothing else says how far to
  /// look.
  std::int64_t slowest = INT64_MAX;
};

struct NearBest {
  std::vector<TimedChain> timed;  ///< the fastest first
  std::int64_t labels = 0;
};

[[nodiscard]] NearBest near_best(const LabelGround& ground, const FastestPlans& fastest, const NearBestQuery& query);

}  // namespace tangram::compose
