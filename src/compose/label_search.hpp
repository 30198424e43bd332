// The dynamic program at one fixed period. Goes in: a program, a period P, a completion bound for periods up to P, a
// cutoff. Comes out: the chain with the smallest A + max o among those that P allows and that stay at or below the
// cutoff.
//
// Backward over blocks. State: next block, units used per class, price key of the head stage. Label: (Lat, A, o, n, Q),
// all smaller is better; prepending stage p over boundary c (design.md 5.1, 5.4):
//
//   Lat' = T + 2c + Lat     A' = max(A + F + c, A_p + Lat + 2c)     o' = max(o, o_p)
//   x = T + 2c + Q          n' = max(n + 1, ceil(x / P))            Q' = max(P (n' - 1) + T, x)
//
// Every update is monotone in every component, so a label that is no better anywhere can be dropped.
#pragma once

#include <cstdint>
#include <optional>

#include "completion_bound.hpp"
#include "frontiers.hpp"
#include "tangram/compose/program.hpp"

namespace tangram::compose {

struct LabelQuery {
  std::int64_t period = 0;
  std::int64_t cutoff = 0;                ///< on A + max o
  int beam = 0;                           ///< labels kept per block position; 0: all
  bool mixed = true;                      ///< false: only options of one class
  std::int64_t label_budget = INT64_MAX;  ///< labels this search may create
};

struct LabelAnswer {
  std::optional<Chain> chain;  ///< stages only; not evaluated
  std::int64_t value = 0;      ///< its A + max o
  bool finished = true;        ///< false: out of budget; the chain is then only the best seen
  std::int64_t labels = 0;
  std::int64_t states = 0;
};

[[nodiscard]] LabelAnswer search_labels(const Program& program, Frontiers& frontiers, const CompletionBound& bound,
                                        const LabelQuery& query);

}  // namespace tangram::compose
