// Ranges looked at together against each number by itself.
#include "range_costs.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "support/catch.hpp"

using namespace tangram::relax;

namespace {

constexpr std::int64_t kBatch = 90;
constexpr double kBlocks = 12;
constexpr double kForwardShare = 0.2;

class Draws {
 public:
  explicit Draws(unsigned seed) : random_(seed) {}
  double between(double least, double most) { return std::uniform_real_distribution<double>(least, most)(random_); }
  std::int64_t below(std::int64_t end) { return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_); }

 private:
  std::mt19937_64 random_;
};

// One, two, four or eight GPUs; what crosses the network, stays in memory and is stepped on is now more, now less.
BlockRate random_rate(Draws& draws) {
  BlockRate block_rate;
  block_rate.gpus = static_cast<double>(1 << draws.below(4));
  block_rate.samples = block_rate.last = 1 + draws.below(4);
  const double seconds = draws.between(0.5, 2) * static_cast<double>(block_rate.samples) / block_rate.gpus;
  block_rate.forward = block_rate.forward_limit = seconds * draws.between(0.25, 0.4);
  block_rate.backward = block_rate.backward_limit = seconds - block_rate.forward;
  block_rate.dense_sync = draws.between(0, 6);
  block_rate.dense_span = static_cast<double>(1 << draws.below(4));
  block_rate.update = draws.between(0, 4);
  block_rate.held = draws.between(0, 4);
  block_rate.kept = draws.between(0, 0.5);
  block_rate.room = draws.between(1, 6);
  return block_rate;
}

RateProblem random_problem(Draws& draws) {
  RateProblem problem{{}, {}, {kBlocks}, kBatch, 0.5};
  for (int k = 0; k < 2; ++k) {
    auto& own = problem.block_rates.emplace_back();
    for (std::int64_t i = 1 + draws.below(4); i > 0; --i) own.push_back(random_rate(draws));
    problem.gpus.push_back(static_cast<double>(8 + draws.below(24)));
  }
  return problem;
}

std::vector<std::vector<ExecutionMode>> modes_at(const RateProblem& problem, const Range& range) {
  std::vector<std::vector<ExecutionMode>> modes;
  for (const auto& own : problem.block_rates)
    modes.push_back(execution_modes_of(problem, merged(own, 0), range, kBlocks, 1000));
  return modes;
}

// What is left of blocks' worth when GPUs are paid.
double gain_at(const RateProblem& problem, const Range& range, double seconds, const std::vector<double>& prices) {
  const auto modes = modes_at(problem, range);
  const auto moments = moments_of_fill();
  const CostSlopes slopes = Timeline(range, kForwardShare, modes, seconds, moments).response(prices);
  return std::inner_product(slopes.begin(), slopes.end(), prices.begin(), 0.0);
}

}  // namespace

TEST_CASE("numbers of microbatches together gain no less than any of them by itself") {
  Draws draws(91);
  int more = 0;
  for (int i = 0; i < 300; ++i) {
    const RateProblem problem = random_problem(draws);
    const std::int64_t first = 1 + draws.below(i % 2 == 0 ? 4 : kBatch / 2);
    const Range range{first, std::min(kBatch, first + draws.below(8))};
    const double seconds = static_cast<double>(first) * draws.between(0.5, 15);
    const std::vector<double> prices{draws.between(0.01, 1), draws.between(0.01, 1), draws.between(0.01, 1)};
    const double together = gain_at(problem, range, seconds, prices);
    for (std::int64_t m = range.first; m <= range.last; ++m) {
      INFO("case " << i << ", " << m << " of " << range.first << " to " << range.last);
      const double alone = gain_at(problem, {m, m}, seconds, prices);
      REQUIRE(alone <= together * (1 + 1e-9));
      if (alone > 0) ++more;
    }
  }
  CHECK(more > 100);
}

TEST_CASE("what is found by few ranges holds for all of them") {
  Draws draws(92);
  int found_any = 0;
  for (int i = 0; i < 60; ++i) {
    const RateProblem problem = random_problem(draws);
    std::vector<double> used;
    for (const double gpus : problem.gpus) used.push_back(gpus / static_cast<double>(kBatch));
    RangeCosts costs(
        kBatch, kForwardShare, used, [&](const Range& range) { return modes_at(problem, range); }, problem.tuning);
    const std::vector<double> worth{0, 0, kBlocks};
    // Twice: the second search begins with the ranges that mattered in the first.
    for (const double seconds : {draws.between(10, 60), draws.between(10, 60)}) {
      const PricesFound found = costs.search(seconds, worth, {1, 1, 1});
      if (found.ratio <= 0) continue;
      ++found_any;
      double most = 0;
      for (std::int64_t m = 1; m <= kBatch; ++m) {
        double cost = gain_at(problem, {m, m}, seconds, found.prices);
        for (std::size_t k = 0; k < used.size(); ++k) cost += used[k] * found.prices[k];
        most = std::max(most, cost);
      }
      INFO("case " << i << " within " << seconds);
      REQUIRE(kBlocks * found.prices.back() / most >= found.ratio * (1 - 1e-6));
    }
  }
  CHECK(found_any > 60);
}
