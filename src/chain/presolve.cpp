#include "tangram/chain/presolve.hpp"
#include "tangram/base/at.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "bounds/capacity.hpp"
#include "bounds/completion_bound.hpp"
#include "periods.hpp"

namespace tangram::chain {

namespace {

// Windows from the longest period downwards, as long as none of them is of interest.
std::int64_t longest_period_of(const Program& program, const FastestPlans& plans, std::int64_t interest) {
  const SolverTuning& tuning = plans.tuning();
  const std::int64_t rounds = program.microbatches - 1;
  const auto width = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(tuning.presolve_width * static_cast<double>(interest)) / rounds);
  std::int64_t hi = (interest - 1) / rounds;
  std::vector<double> multipliers;
  for (int i = 0; i < tuning.presolve_windows && hi > 0; ++i) {
    const std::int64_t lo = std::max<std::int64_t>(0, hi - width) + 1;
    const std::int64_t base = rounds * lo;
    const double enough = static_cast<double>(interest - base) + 2.0;
    const CompletionBound bound(program, plans, hi, multipliers, ascent_from(multipliers, tuning), enough,
                                CompletionBound::Extent::kRoot);
    if (bound.root() == kNoCompletion) return hi;
    multipliers = bound.multipliers();
    if (base + whole_nanoseconds(bound.root()) < interest) return hi;
    hi = lo - 1;
  }
  return hi;
}

}  // namespace

std::int64_t presolve(Program& program, std::int64_t interest, const SolverTuning& tuning) {
  if (!tuning.cuts.presolve || interest == INT64_MAX || program.microbatches < 2) return 0;
  const FastestPlans plans(program, tuning);
  const std::int64_t period = longest_period_of(program, plans, interest);
  const Capacity capacity(program, plans, period);
  if (!capacity.covers_all()) return 0;
  const std::int64_t all = capacity.weights().of_first.back();
  const std::vector<std::int64_t> resources(program.inventory.begin(), program.inventory.end());
  std::int64_t emptied = 0;
  for (std::size_t option = 0; option < program.options.size(); ++option) {
    const std::int64_t beside = capacity.held_beside(program.options[option], resources);
    for (int signature = 0; signature < program.signatures; ++signature) {
      std::vector<Candidate>& frontier = program.frontiers(option, signature);
      const std::int64_t own = at(capacity.weights().of_signature, signature);
      if (frontier.empty()) continue;
      if (beside < all - own) frontier.clear();
      while (!frontier.empty() && frontier.back().T > period) frontier.pop_back();
      if (frontier.empty()) ++emptied;
    }
  }
  return emptied;
}

}  // namespace tangram::chain
