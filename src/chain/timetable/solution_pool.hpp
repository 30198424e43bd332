// Chains a little slower than the best by closed form, which may be faster pass by pass. Goes in: a program, and the
// chains that its search found, if any. Comes out: the fastest by timetable, improved by local search. Proves nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../bounds/completion_bound.hpp"
#include "../labels/label_search.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

struct PoolQuery {
  std::int64_t shortest_period = 1;
  std::int64_t longest_period = 1;
  std::int64_t incumbent = INT64_MAX;  ///< timetables of at least so much are of no interest
  int beam = 1;                        ///< of the beam searches that find chains
  std::span<const Chain> chains;       ///< found before, evaluated, the best first
  std::size_t starts = 1;              ///< chains that are improved by local search, at most
  /// Chains are improved whose least time is below so many times the fastest timetable.
  double least_time_share = 1;
  /// Closed forms of at least so much are of no interest. Where no chain was found before, nothing else says how far to
  /// look.
  std::int64_t slowest = INT64_MAX;
  /// A timetable is below its closed form by no more than this part of what fills and drains the pipeline.
  double most_of_fill = 0;
  bool mixed = false;  ///< whether stages may be on several classes
};

struct SolutionPool {
  std::vector<TimedChain> timed;  ///< the fastest first
  std::int64_t labels = 0;
};

[[nodiscard]] SolutionPool fill_pool(const LabelGround& ground, const FastestPlans& fastest, const PoolQuery& query);

}  // namespace tangram::chain
