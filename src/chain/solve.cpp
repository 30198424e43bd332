// A program as the search takes it: component by component.
#include <algorithm>
#include <iterator>
#include <utility>

#include "components.hpp"
#include "period_search.hpp"
#include "periods.hpp"
#include "tangram/base/at.hpp"
#include "tangram/chain/program.hpp"
#include "windows/incumbent.hpp"

namespace tangram::chain {

std::int64_t of_interest(std::int64_t time, double accepted_gap) {
  if (!(accepted_gap > 0) || time == kNever) return time;
  return static_cast<std::int64_t>(std::floor(static_cast<double>(time) / (1 + accepted_gap)));
}

namespace {

// A component's chains and plans speak of the options of the whole program.
ProgramResult solve_component(const Component& component, ProgramLimits limits) {
  if (limits.refine) {
    limits.refine = [refine = std::move(limits.refine), &component](int option, int signature) {
      return refine(at(component.options, option), signature);
    };
  }
  ProgramResult result = search_periods(component.program, limits);
  const auto rename = [&](Chain& chain) {
    for (ChainStage& stage : chain.stages) stage.option = at(component.options, stage.option);
  };
  std::ranges::for_each(result.chains, rename);
  std::ranges::for_each(result.timed, rename, &TimedChain::chain);
  return result;
}

void add(ProgramResult part, std::size_t keep, ProgramResult& whole) {
  std::ranges::move(part.chains, std::back_inserter(whole.chains));
  std::sort(whole.chains.begin(), whole.chains.end(), earlier);
  if (whole.chains.size() > keep) whole.chains.resize(keep);
  std::ranges::move(part.timed, std::back_inserter(whole.timed));
  std::ranges::stable_sort(whole.timed, {}, &TimedChain::time);
  whole.finished = whole.finished && part.finished;
  whole.bound = std::min(whole.bound, part.bound);
  whole.labels += part.labels;
  whole.beam_labels += part.beam_labels;
  whole.states += part.states;
  whole.windows += part.windows;
  whole.cuts += part.cuts;
  whole.frontier_plans += part.frontier_plans;
}

// Nothing is known of it.
ProgramResult unsolved() {
  ProgramResult result;
  result.finished = false;
  result.bound = 0;
  return result;
}

// Largest component first: it most likely has the best chain, and that cuts the others.
ProgramResult solve_components(std::vector<Component> components, ProgramLimits limits) {
  std::ranges::stable_sort(components, std::ranges::greater{}, [](const Component& c) { return c.options.size(); });
  ProgramResult whole;
  const std::int64_t budget = limits.label_budget;
  for (const Component& component : components) {
    if (limits.deadline.has_passed()) {
      add(unsolved(), static_cast<std::size_t>(limits.keep), whole);
      break;
    }
    limits.label_budget = budget - whole.labels;
    add(solve_component(component, limits), static_cast<std::size_t>(limits.keep), whole);
    if (!whole.timed.empty()) limits.timed_incumbent = std::min(limits.timed_incumbent, whole.timed.front().time);
    if (!whole.chains.empty()) {
      limits.incumbent = std::min(limits.incumbent, of_interest(whole.chains.front().time, limits.accepted_gap));
    }
  }
  return whole;
}

}  // namespace

ProgramResult solve(const Program& program, const ProgramLimits& limits) {
  if (limits.deadline.has_passed()) return unsolved();
  std::vector<Component> components = components_of(program, limits.incumbent, limits.tuning);
  return components.empty() ? search_periods(program, limits) : solve_components(std::move(components), limits);
}

}  // namespace tangram::chain
