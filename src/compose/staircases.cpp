#include "staircases.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "frontier_store.hpp"

namespace tangram::compose {

namespace {

// Calls visit(T of a, T of b, n_max) for every number of microbatches that both hold and one of them not more.
template <class Visit>
void for_each_level(const std::vector<prune::Candidate>& a, const std::vector<prune::Candidate>& b, Visit visit) {
  for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
    const std::int64_t level = std::min(x->n_max, y->n_max);
    visit(x->T, y->T, level);
    if (x->n_max == level) ++x;
    if (y->n_max == level) ++y;
  }
}

prune::Candidate step(std::int64_t T, std::int64_t n_max) { return {.T = T, .A = T, .n_max = n_max}; }

// Of steps in ascending order of cost those that hold more microbatches than all before.
template <class Step>
std::vector<Step> rising(const std::vector<Step>& steps) {
  std::vector<Step> result;
  for (const Step& step : steps) {
    if (result.empty() || step.n_max > result.back().n_max) result.push_back(step);
  }
  return result;
}

}  // namespace

std::vector<prune::Candidate> staircase(std::vector<prune::Candidate> steps) {
  std::sort(steps.begin(), steps.end(), [](const prune::Candidate& a, const prune::Candidate& b) {
    return std::tie(a.T, b.n_max) < std::tie(b.T, a.n_max);
  });
  return rising(steps);
}

std::vector<chain::Drain> staircase(std::vector<chain::Drain> steps) {
  std::sort(steps.begin(), steps.end(), [](const chain::Drain& a, const chain::Drain& b) {
    return std::tie(a.cost, b.n_max) < std::tie(b.cost, a.n_max);
  });
  return rising(steps);
}

std::vector<prune::Candidate> staircase(const std::vector<StoredPlan>& plans) {
  std::vector<prune::Candidate> steps;
  steps.reserve(plans.size());
  for (const StoredPlan& plan : plans)
    steps.push_back(step((plan.cost.forward + plan.cost.backward).value(), plan.n_max));
  return staircase(std::move(steps));
}

// Levels of equal T are the highest of them.
std::vector<prune::Candidate> staircase_of_both(const std::vector<prune::Candidate>& a,
                                                const std::vector<prune::Candidate>& b) {
  std::vector<prune::Candidate> steps;
  for_each_level(a, b, [&](std::int64_t x, std::int64_t y, std::int64_t level) {
    const std::int64_t T = std::max(x, y);
    if (!steps.empty() && steps.back().T == T) {
      steps.back().n_max = level;
    } else {
      steps.push_back(step(T, level));
    }
  });
  return steps;
}

std::vector<prune::Candidate> staircase_of_parts(const std::vector<prune::Candidate>& a,
                                                 const std::vector<prune::Candidate>& b, std::int64_t most) {
  constexpr std::int64_t kSumRounding = 4;  // ns: once for forward and backward each, and for sums in another order
  std::vector<prune::Candidate> steps;
  for_each_level(a, b, [&](std::int64_t x, std::int64_t y, std::int64_t level) {
    if (!steps.empty() && steps.back().n_max >= most) return;
    steps.push_back(step(x + std::max<std::int64_t>(0, y - kSumRounding), level < most ? level : INT64_MAX));
  });
  return steps;
}

}  // namespace tangram::compose
