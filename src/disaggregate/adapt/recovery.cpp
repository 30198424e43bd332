#include <algorithm>
#include <random>

#include "tangram/base/at.hpp"
#include "tangram/disaggregate/adapt.hpp"
#include "tangram/disaggregate/rebalance.hpp"
#include "tangram/disaggregate/solve.hpp"

namespace tangram::disaggregate {

namespace {

/// Times that are off by a factor for each operator and class; kernels of equal layers share it.
Problem with_wrong_times(const Problem& problem, double noise, std::mt19937_64& random) {
  std::normal_distribution<> normal(1, noise);
  Problem result = problem;
  for (int c = 0; c < problem.class_count(); ++c) {
    std::vector<double> factors;
    for (int k = 0; k < problem.kernel_count(); ++k) factors.push_back(std::max(0.05, normal(random)));
    for (const Repeat& repeat : problem.repeats) {
      for (int k = repeat.kernels; k < repeat.kernels * repeat.times; ++k) {
        at(factors, repeat.first + k) = at(factors, repeat.first + k % repeat.kernels);
      }
    }
    for (int k = 0; k < problem.kernel_count(); ++k) at(at(result.kernels, k).seconds, c) *= at(factors, k);
  }
  return result;
}

}  // namespace

Recovery recovery_from(const Problem& problem, double noise, int draws, std::uint64_t seed) {
  constexpr int kWindows = 12;
  std::mt19937_64 random(seed);
  const double best = solve(problem, Objective::kThroughput).value;
  Recovery result{noise, 0, 0};
  for (int i = 0; i < draws; ++i) {
    const Problem planned = with_wrong_times(problem, noise, random);
    Placement placement = solve(planned, Objective::kThroughput).placement;
    result.lost += (usage_of(problem, placement).period / best - 1) / draws;
    for (int window = 0; window < kWindows; ++window) {
      placement = rebalanced(planned, placement, {usage_of(problem, placement).gpu, 8, {}});
    }
    result.left += (usage_of(problem, placement).period / best - 1) / draws;
  }
  return result;
}

}  // namespace tangram::disaggregate
