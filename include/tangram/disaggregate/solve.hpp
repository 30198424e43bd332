// The placement with the shortest period, or the quickest pass. Goes in: a problem. Comes out: a placement, what it
// takes, and what no placement undercuts. The mathematics: src/disaggregate/README.md.
#pragma once

#include <cstdint>

#include "tangram/disaggregate/problem.hpp"
#include "tangram/disaggregate/usage.hpp"

namespace tangram::disaggregate {

enum class Objective : std::uint8_t {
  kThroughput,  ///< the period: Usage::period
  kLatency,     ///< seconds of all passes of a round, one after the other: the sum of passes * latency
};

/// How far searches look. None of it makes a bound wrong.
struct SolverEffort {
  int price_steps = 300;                ///< placements of the linear relaxation
  int state_bits = 14;                  ///< of dynamic programs: the states they tell apart
  int beam = 64;                        ///< labels kept for each layer and state where layers are equal
  int most_exact = 24;                  ///< kernels up to which branch and bound closes the gap
  std::int64_t most_nodes = 3'000'000;  ///< of that search
};

struct Solution {
  bool found = false;  ///< false: no placement that fits was found; there is none where `bound` is infinite
  Placement placement;
  Usage usage;
  double value = kNever;  ///< seconds, as the objective counts them
  double bound = 0;       ///< no placement has a smaller value
  bool proven = false;    ///< by branch and bound: there is no better one, whatever the bound says

  /// By how much the value may be above the least, relative.
  [[nodiscard]] double gap() const { return proven || !(value > bound) ? 0 : value / bound - 1; }
};

[[nodiscard]] double value_of(const Problem& problem, const Usage& usage, Objective objective);

/// For a problem that check() accepts. Deterministic.
[[nodiscard]] Solution solve(const Problem& problem, Objective objective, const SolverEffort& effort = {});

/// What no placement undercuts, and no mixture of placements either (requests that are placed differently): the dual
/// bound of throughput alone, without a search. Infinite: memory suffices for no placement.
[[nodiscard]] double period_bound(const Problem& problem, const SolverEffort& effort = {});

}  // namespace tangram::disaggregate
