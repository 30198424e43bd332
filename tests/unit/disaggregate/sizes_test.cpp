// Whole models: how near the bound plans come.
#include <random>

#include "support/catch.hpp"
#include "tables.hpp"
#include "tangram/base/at.hpp"
#include "tangram/disaggregate/solve.hpp"

using namespace tangram;
using namespace tangram::tests;
using disaggregate::Problem;
using disaggregate::Solution;

namespace {

// Layers of ten kernels on four classes: 2,000 kernels.
Problem many_kernels() {
  std::mt19937_64 random(4);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  Problem problem;
  problem.classes.resize(4);
  problem.classes[0].count = 8;
  problem.classes[1].count = 4;
  problem.classes[2].count = 2;
  problem.classes[3].count = 2;
  problem.links = {4, 4, {50e9, 4e-6, 1e-6}};
  problem.phases.push_back({"decode", 1, 1'000'000});
  std::vector<std::vector<double>> layer;
  for (int i = 0; i < 10; ++i) {
    const double work = between(5e-6, 80e-6);
    layer.emplace_back();
    for (const double speed : {1.0, 0.8, 0.5, 0.3}) layer.back().push_back(work / speed * between(0.5, 1.5));
  }
  for (int k = 0; k < 2000; ++k) {
    disaggregate::Kernel kernel;
    kernel.layer = k / 10;
    kernel.seconds = at(layer, k % 10);
    problem.kernels.push_back(kernel);
    if (k == 0) continue;
    disaggregate::Buffer message;
    message.bytes = 262'144;
    message.writer = k - 1;
    message.readers = {k};
    if (k % 10 == 1 && k + 4 < 2000) message.readers.push_back(k + 4);
    problem.buffers.push_back(message);
  }
  problem.repeats.push_back({0, 10, 200});
  return problem;
}

}  // namespace

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
