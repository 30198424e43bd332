// The solver against every placement there is.
#include "tangram/disaggregate/solve.hpp"

#include <string>

#include "definition.hpp"
#include "random_problem.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/disaggregate/usage.hpp"

using namespace tangram;
using namespace tangram::tests;
using disaggregate::Objective;
using disaggregate::Solution;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

constexpr double kClose = 1e-9;

bool agree(double a, double b) { return a == b || std::abs(a - b) <= kClose * std::max(std::abs(a), std::abs(b)); }

struct Tally {
  int solved = 0;
  int infeasible = 0;
};

// Against the least value of all; returns whether there is any placement.
void check_against_all(const disaggregate::Problem& problem, Objective objective, Tally& tally) {
  const double least = least_value(problem, objective);
  const Solution solution = disaggregate::solve(problem, objective);
  CHECK(solution.found == std::isfinite(least));
  CHECK(solution.proven);
  CHECK(solution.bound <= least * (1 + kClose));
  if (!solution.found) {
    ++tally.infeasible;
    return;
  }
  ++tally.solved;
  CHECK(agree(solution.value, least));
  const Taken taken = taken_by(problem, solution.placement);
  CHECK(taken.fits);
  CHECK(agree(objective == Objective::kThroughput ? taken.period : taken.latency, least));
}

}  // namespace

TEST_CASE("disaggregate: the period is the shortest of all placements, and no bound is above it") {
  std::mt19937_64 random(2026);
  Tally tally;
  for (int i = 0; i < cases(500); ++i) {
    INFO("case " << i);
    // Up to 2^12 and 3^8 placements.
    const ProblemFlavour flavour = i % 2 == 0 ? ProblemFlavour{12, 2, 2} : ProblemFlavour{8, 2, 3};
    const disaggregate::Problem problem = random_problem(random, flavour);
    REQUIRE(disaggregate::check(problem));
    check_against_all(problem, Objective::kThroughput, tally);
  }
  CHECK(tally.solved >= enough(250));
  CHECK(tally.infeasible >= enough(25));
}

TEST_CASE("disaggregate: the quickest pass is the quickest of all placements") {
  std::mt19937_64 random(7);
  Tally tally;
  for (int i = 0; i < cases(300); ++i) {
    INFO("case " << i);
    check_against_all(random_problem(random, {8, 1, 3}), Objective::kLatency, tally);
  }
  CHECK(tally.solved >= enough(150));
}

TEST_CASE("disaggregate: fourteen kernels") {
  std::mt19937_64 random(14);
  Tally tally;
  for (int i = 0; i < cases(20); ++i) {
    INFO("case " << i);
    check_against_all(random_problem(random, {14, 2, 2}), Objective::kThroughput, tally);
  }
}

TEST_CASE("disaggregate: what a placement takes") {
  std::mt19937_64 random(3);
  for (int i = 0; i < cases(400); ++i) {
    const disaggregate::Problem problem = random_problem(random, {10, 1, 3});
    disaggregate::Placement placement;
    for (int k = 0; k < problem.kernel_count(); ++k) {
      placement.push_back(static_cast<int>(random() % problem.classes.size()));
    }
    const disaggregate::Usage usage = disaggregate::usage_of(problem, placement);
    const Taken taken = taken_by(problem, placement);
    CHECK(usage.fits == taken.fits);
    if (std::isinf(taken.period)) continue;
    CHECK(agree(usage.period, taken.period));
    CHECK(agree(value_of(problem, usage, Objective::kLatency), taken.latency));
  }
}
