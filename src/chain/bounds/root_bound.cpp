// The bound of a program that takes no search.
#include <algorithm>

#include "../components.hpp"
#include "../periods.hpp"
#include "capacity.hpp"
#include "completion_bound.hpp"
#include "tangram/chain/program.hpp"

namespace tangram::chain {

namespace {

std::int64_t root_bound_of_connected(const Program& program, std::int64_t interest, const SolverTuning& tuning) {
  // Windows whose bounds are taken without search; the smallest of a fixed geometric partition.
  std::int64_t best = kNever;
  const std::int64_t slowest = slowest_stage(program);
  if (slowest == 0) return kNever;
  const FastestPlans plans(program, tuning);
  std::vector<double> multipliers;
  const std::int64_t shortest = shortest_period(program, plans, slowest);
  if (shortest == kNever) return kNever;
  for (std::int64_t lo = shortest;;) {
    const bool last = lo >= slowest;
    const std::int64_t hi =
        last ? kLongestPeriod : static_cast<std::int64_t>(static_cast<double>(lo) * tuning.root_window) + 1;
    const std::int64_t base = (program.microbatches - 1) * lo;
    if (base >= std::min(best, interest)) break;
    const double enough = interest == kNever ? kNoCompletion : static_cast<double>(interest - base) + 2.0;
    const CompletionBound bound(program, plans, hi, multipliers, ascent_from(multipliers, tuning), enough,
                                CompletionBound::Extent::kRoot);
    const std::int64_t rest = bound.least_end(interest == kNever ? kNever : interest - base);
    if (rest != kNever) {
      multipliers = bound.multipliers();
      best = std::min(best, base + rest);
      if (interest != kNever && best < interest) break;
    }
    if (last) break;
    lo = hi + 1;
  }
  return best;
}

}  // namespace

std::int64_t root_bound(const Program& program, std::int64_t interest, const SolverTuning& tuning) {
  const std::vector<Component> components = components_of(program, interest, tuning);
  if (components.empty()) return root_bound_of_connected(program, interest, tuning);
  // A chain of no component takes as long as those of interest may not.
  std::int64_t best = interest;
  for (const Component& component : components) {
    best = std::min(best, root_bound_of_connected(component.program, interest, tuning));
  }
  return best;
}

}  // namespace tangram::chain
