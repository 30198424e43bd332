// Which options can meet within a time, by hand.
#include "components.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::chain;

namespace {

constexpr Candidate kPlan{.T = 10, .F = 4, .A = 10, .n_max = 9};

// Two blocks, M = 5. Options a and b of the classes 0 and 1, boundaries [a -> a, a -> b, b -> a, b -> b]. Only b runs
// both blocks at once.
Program two_classes(Price between) {
  Program program;
  program.blocks = 2;
  program.microbatches = 5;
  program.inventory = {3, 4};
  program.options = {{{{0, 1}}, 0}, {{{1, 2}}, 1}};
  program.keys = 2;
  program.signatures = 2;
  program.signature = {3, {-1, 0, 1, -1, -1, 0, -1, -1, -1}};
  program.frontiers = {2, {{kPlan}, {}, {kPlan}, {kPlan}}};
  program.cut_kind.assign(3, 0);
  program.prices = {{2, {{3, 1}, between, between, {2, 1}}}};
  return program;
}

}  // namespace

TEST_CASE("components: options that no link of interest joins are apart") {
  // A boundary with occupancy 20 and latency 30 makes t >= 4 * 20 + 2 * 30 = 140.
  const Program program = two_classes({30, 20});
  CHECK(components_of(program, 141).empty());  // one of 140 is of interest: they may meet
  const std::vector<Component> apart = components_of(program, 140);
  REQUIRE(apart.size() == 2);
  CHECK(apart[0].options == std::vector<int>{0});
  CHECK(apart[0].program.inventory == std::vector<int>{3, 0});
  CHECK(apart[1].options == std::vector<int>{1});
  CHECK(apart[1].program.inventory == std::vector<int>{0, 4});
  REQUIRE(apart[1].program.keys == 1);
  CHECK(apart[1].program.options.front().key == 0);
  CHECK(apart[1].program.prices.front()(0, 0).latency == 2);
  CHECK(components_of(program, INT64_MAX).empty());
}

TEST_CASE("components: an option without neighbours counts only where it holds all blocks") {
  Program program = two_classes({30, 20});
  program.prices.front()(0, 0) = {30, 20};
  program.prices.front()(1, 1) = {30, 20};
  const std::vector<Component> apart = components_of(program, 140);
  REQUIRE(apart.size() == 1);
  CHECK(apart[0].options == std::vector<int>{1});
  ProgramLimits limits;
  limits.incumbent = 140;
  const ProgramResult result = solve(program, limits);
  REQUIRE_FALSE(result.chains.empty());
  CHECK(result.chains.front().time == 50);  // 10 + 4 * 10
  CHECK(result.chains.front().stages.front().option == 1);
}
