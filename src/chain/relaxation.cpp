#include "tangram/chain/relaxation.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "bounds/capacity.hpp"
#include "bounds/completion_bound.hpp"
#include "components.hpp"
#include "periods.hpp"
#include "tangram/base/at.hpp"

namespace tangram::chain {

namespace {

// Windows whose bounds are taken without search; the smallest of a fixed geometric partition.
std::int64_t bound_of_connected(const Program& program, const FastestPlans& plans, std::int64_t interest) {
  const SolverTuning& tuning = plans.tuning();
  const std::int64_t slowest = slowest_stage(program);
  if (slowest == 0) return kNever;
  std::int64_t best = kNever;
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

// A chain of no component takes as long as those of interest may not.
std::int64_t bound_of(const std::vector<Component>& components, std::int64_t interest, const SolverTuning& tuning) {
  std::int64_t best = interest;
  for (const Component& component : components) {
    const FastestPlans plans(component.program, tuning);
    best = std::min(best, bound_of_connected(component.program, plans, interest));
  }
  return best;
}

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

std::int64_t root_bound(const Program& program, std::int64_t interest, const SolverTuning& tuning) {
  return Relaxation(program, tuning).root_bound(interest);
}

Relaxation::Relaxation(const Program& program, const SolverTuning& tuning) : program_(program), tuning_(tuning) {}

Relaxation::~Relaxation() = default;

const FastestPlans& Relaxation::plans() {
  if (!plans_) plans_ = std::make_unique<const FastestPlans>(program_, tuning_);
  return *plans_;
}

std::int64_t Relaxation::root_bound(std::int64_t interest) {
  const std::vector<Component> components = components_of(program_, interest, tuning_);
  if (!components.empty()) return bound_of(components, interest, tuning_);
  return bound_of_connected(program_, plans(), interest);
}

std::int64_t Relaxation::presolve(std::int64_t interest, Program& reduced) {
  if (!tuning_.cuts.presolve || interest == INT64_MAX || program_.microbatches < 2) return 0;
  const std::int64_t period = longest_period_of(program_, plans(), interest);
  const Capacity capacity(program_, plans(), period);
  if (!capacity.covers_all()) return 0;
  const std::int64_t all = capacity.weights().of_first.back();
  const std::vector<std::int64_t> resources(program_.inventory.begin(), program_.inventory.end());
  std::int64_t emptied = 0;
  for (std::size_t option = 0; option < program_.options.size(); ++option) {
    const std::int64_t beside = capacity.held_beside(program_.options[option], resources);
    for (int signature = 0; signature < program_.signatures; ++signature) {
      std::vector<Candidate>& frontier = reduced.frontiers(option, signature);
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
