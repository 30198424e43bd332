#include "keep_frontier.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"
#include "tangram/prune/frontier.hpp"

namespace tangram::parallelizer {

void keep_frontier(std::vector<PartialPlan>& plans, std::int64_t max_in_flight) {
  std::vector<prune::Candidate> candidates;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const cost::StageCost& c = plans[i].cost;
    candidates.push_back({.T = (c.forward + c.backward).value(),
                          .F = c.forward.value(),
                          .A = c.gradient_sync.value(),
                          .o = c.optimizer_step.value(),
                          .n_max = std::min(plans[i].n_max, max_in_flight),
                          .source = static_cast<std::int32_t>(i)});
  }
  std::vector<PartialPlan> kept;
  for (const prune::Candidate& candidate : prune::pareto(candidates)) {
    kept.push_back(std::move(at(plans, candidate.source)));
  }
  plans = std::move(kept);
}

}  // namespace tangram::parallelizer
