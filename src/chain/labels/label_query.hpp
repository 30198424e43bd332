// What a label search is asked, and what it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../bounds/end_floor.hpp"
#include "tangram/chain/frontiers.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

struct LabelQuery {
  std::int64_t period = 0;
  std::int64_t cutoff = 0;  ///< on A + max o
  int beam = 0;             ///< labels kept per block position; 0: all
  bool mixed = true;        ///< false: only options of one class
  bool all = false;         ///< every chain that the search comes by, not only the best
  bool relaxed = false;     ///< of relaxed_frontier.hpp instead of plans: gives a bound, and no chain
  bool feasibility_only =
      false;  ///< only whether the period allows any chain, whatever its time: there must be no cutoff
  std::int64_t label_budget = INT64_MAX;  ///< labels this search may create
};

struct LabelAnswer {
  bool found = false;
  std::int64_t value = 0;      ///< A + max o of the best chain
  std::optional<Chain> chain;  ///< its stages; not evaluated. None of relaxed frontiers
  std::vector<Chain> chains;   ///< of `all`, not evaluated
  bool finished = true;        ///< false: out of budget or time; the chain is then only the best seen
  std::int64_t labels = 0;
  std::int64_t states = 0;
  CutYield cuts;
};

/// What all label searches of a program share.
struct LabelGround {
  const Program& program;
  Frontiers& frontiers;
  const EndCosts& ends;
  const Deadline& deadline;  ///< ends a search as its budget does
};

}  // namespace tangram::chain
