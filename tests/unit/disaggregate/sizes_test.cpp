// Whole models: how near the bound plans come.
#include "support/catch.hpp"
#include "tables.hpp"
#include "tangram/disaggregate/solve.hpp"

using namespace tangram;
using namespace tangram::tests;
using disaggregate::Problem;
using disaggregate::Solution;

TEST_CASE("disaggregate sizes: 288 kernels on two GPUs") {
  const Problem problem = model_problem({.link = kInfiniBand});
  REQUIRE(disaggregate::check(problem));
  REQUIRE(problem.kernel_count() == 288);
  const Solution solution = disaggregate::solve(problem, disaggregate::Objective::kThroughput);
  INFO("bound " << solution.bound << ", value " << solution.value);
  CHECK(solution.bound == Approx(11212.5e-6).epsilon(5e-5));
  CHECK(solution.value <= solution.bound * 1.005);
}

TEST_CASE("disaggregate sizes: 2,000 kernels on four classes") {
  const Problem problem = many_kernels();
  REQUIRE(disaggregate::check(problem));
  const Solution solution = disaggregate::solve(problem, disaggregate::Objective::kThroughput);
  INFO("bound " << solution.bound << ", value " << solution.value);
  REQUIRE(solution.found);
  CHECK(solution.gap() < 0.005);
}
