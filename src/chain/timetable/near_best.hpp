// Chains a little slower than the best by closed form, which may be faster pass by pass. Goes in: a program that was
// searched, and the chains found. Comes out: the fastest by timetable, polished. Proves nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "../bounds/completion_bound.hpp"
#include "../labels/label_search.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

struct NearBestQuery {
  std::int64_t shortest_period = 1;
  std::int64_t longest_period = 1;
  std::int64_t incumbent = INT64_MAX;  ///< timetables of at least so much are of no interest
  int beam = 16;                       ///< of the quick passes that find chains
  std::span<const Chain> chains;       ///< found before, evaluated, the best first: at least one
};

struct NearBest {
  std::vector<TimedChain> timed;  ///< the fastest first
  std::int64_t labels = 0;
};

[[nodiscard]] NearBest near_best(const LabelGround& ground, const FastestPlans& fastest, const NearBestQuery& query);

}  // namespace tangram::chain
