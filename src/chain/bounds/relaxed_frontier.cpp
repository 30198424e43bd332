#include "relaxed_frontier.hpp"

#include <algorithm>

namespace tangram::chain {

std::int64_t least_drain(const Program& program, int option, int last, int depth) {
  if (program.drains.empty()) {
    std::int64_t least = INT64_MAX;
    for (const Candidate& c : program.frontier(option, program.signature_of(0, last))) {
      if (c.n_max >= program.least_held(depth)) least = std::min(least, c.A + c.o);
    }
    return least;
  }
  const std::vector<Drain>& drains = program.drains(option, last);
  const auto found = std::find_if(drains.begin(), drains.end(),
                                  [&](const Drain& drain) { return drain.n_max >= program.least_held(depth); });
  return found == drains.end() ? 0 : found->cost;
}

std::int64_t least_passage(const Program& program, const std::vector<Candidate>& frontier, std::size_t fastest) {
  std::int64_t least = frontier[fastest].T;
  if (!program.zero_bubble) return least;
  for (std::size_t i = fastest; i < frontier.size(); ++i) least = std::min(least, frontier[i].passage());
  return least;
}

void relaxed_frontier_of(const Program& program, int option, int signature, std::vector<Candidate>& steps) {
  steps.clear();
  const std::vector<Candidate>& frontier = program.frontier(option, signature);
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    const Candidate& plan = frontier[i];
    if (!steps.empty() && plan.n_max <= steps.back().n_max) continue;
    steps.push_back({.T = plan.T, .A = plan.T, .n_max = plan.n_max, .W = plan.T - least_passage(program, frontier, i)});
  }
}

void first_relaxed_frontier_of(const Program& program, int option, int last, int depth, std::vector<Candidate>& steps) {
  relaxed_frontier_of(program, option, program.signature_of(0, last), steps);
  const std::int64_t drain = least_drain(program, option, last, depth);
  for (Candidate& step : steps) step.A = std::max(step.A, drain);
}

}  // namespace tangram::chain
