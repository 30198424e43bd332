// Chains a little slower than the best by closed form, which may be faster pass by pass. Goes in: a program that was
// searched, and the chains found. Comes out: the fastest by timetable, improved by local search. Proves nothing.
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
  int beam = 16;                       ///< of the beam searches that find chains
  std::span<const Chain> chains;       ///< found before, evaluated, the best first: at least one
};

struct SolutionPool {
  std::vector<TimedChain> timed;  ///< the fastest first
  std::int64_t labels = 0;
};

[[nodiscard]] SolutionPool fill_pool(const LabelGround& ground, const FastestPlans& fastest, const PoolQuery& query);

}  // namespace tangram::chain
