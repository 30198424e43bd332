#include "tangram/evolve/decision.hpp"

#include <algorithm>
#include <tuple>

namespace tangram::evolve {

Decision decide(std::optional<double> old_cost, std::span<const Candidate> candidates, double least_gain) {
  const auto gain_of = [&](const Candidate& candidate) { return old_cost ? *old_cost / candidate.cost - 1 : 0; };
  const auto is_worth_it = [&](const Candidate& candidate) {
    return !old_cost || (gain_of(candidate) > 0 && gain_of(candidate) >= least_gain);
  };
  Decision decision;
  const auto best = std::ranges::min_element(candidates, {}, &Candidate::cost);
  if (best == candidates.end()) return decision;
  decision.best_gain = gain_of(*best);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (!is_worth_it(candidate) || candidate.cost > best->cost * (1 + least_gain)) continue;
    const auto key = [](const Candidate& c) { return std::tuple(c.moved, c.cost); };
    if (!decision.change || key(candidate) < key(candidates[*decision.change])) decision.change = i;
  }
  if (decision.change) decision.gain = gain_of(candidates[*decision.change]);
  return decision;
}

}  // namespace tangram::evolve
