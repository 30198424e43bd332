// The fastest way to put blocks into whole stages, by hand.
#include "bounds/knapsack_bound.hpp"

#include "bounds/completion_bound.hpp"
#include "equal_blocks.hpp"
#include "support/catch.hpp"

using namespace tangram::chain;
using namespace tangram::chain::fixtures;

namespace {

/// Of a program's blocks counted alike.
struct Packed {
  explicit Packed(Program p, std::int64_t period)
      : program(std::move(p)), fastest(program), knapsack(program, fastest, fastest.weights().front(), period) {}

  Program program;
  FastestPlans fastest;
  KnapsackBound knapsack;
};

}  // namespace

TEST_CASE("knapsack: whole stages, the fast units first") {
  // Within 35 a fast unit holds 3 blocks in 30 and a slow one 2 in 30: six of nine are on fast units, three on two slow
  // ones, 60 + 45. Parts of stages would put 3.5 on each fast unit.
  Packed nine(equal_blocks(9, {2, 3}, {kFast, kSlow}), 35);
  CHECK(nine.knapsack.root() == 105);
  CHECK(nine.knapsack.rest(3, 1, std::vector<std::int64_t>{1, 3}) == 30);
  CHECK(nine.knapsack.rest(4, 1, std::vector<std::int64_t>{1, 3}) == 45);
  CHECK(nine.knapsack.rest(4, 1, std::vector<std::int64_t>{0, 3}) == 60);
  CHECK(nine.knapsack.rest(7, 1, std::vector<std::int64_t>{0, 3}) == kNoCompletion);
  CHECK(nine.knapsack.rest(4, 1, std::vector<std::int64_t>{1, 0}) == kNoCompletion);
  // Both fast units together run a block in 5: seven of them in 35, and two on a slow unit.
  Packed paired(equal_blocks(9, {2, 3}, {kFast, kSlow, {{{0, 2}}, 5}}), 35);
  CHECK(paired.knapsack.root() == 35 + 30);
}

TEST_CASE("knapsack: every stage but the last comes with a hop") {
  Program program = equal_blocks(9, {2, 3}, {kFast, kSlow});
  program.prices = {{1, {{2, 0}}}};  // 4 there and back
  Packed nine(std::move(program), 35);
  CHECK(nine.knapsack.root() == 105 + 3 * 4);
  CHECK(nine.knapsack.rest(4, 1, std::vector<std::int64_t>{1, 3}) == 45 + 2 * 4);
}

TEST_CASE("knapsack: one stage is the first, and drains last") {
  // A is 7 more than T and the optimizer takes 2, wherever the stage is: of the first one it counts.
  Program program = equal_blocks(9, {2, 3}, {kFast, kSlow});
  for (std::vector<Candidate>& frontier : program.frontiers) {
    frontier.front().A += 7;
    frontier.front().o = 2;
  }
  Packed nine(std::move(program), 35);
  CHECK(nine.knapsack.root() == 105 + 9);
  CHECK(nine.knapsack.rest(4, 1, std::vector<std::int64_t>{1, 3}) == 45 + 9);
}

TEST_CASE("knapsack: stages hold as many microbatches as the tier of the next one") {
  // Slow stages hold 5 microbatches: those that need 4 or 5 share a tier, and 6 begins another.
  Speed shallow = kSlow;
  shallow.n_max = 5;
  Packed nine(equal_blocks(9, {2, 3}, {kFast, shallow}), 35);
  const std::vector<std::int64_t> slow{0, 3};
  CHECK(nine.knapsack.rest(4, 4, slow) == 60);
  CHECK(nine.knapsack.rest(4, 5, slow) == 60);
  CHECK(nine.knapsack.rest(4, 6, slow) == kNoCompletion);
  CHECK(nine.knapsack.rest(4, 100, slow) == kNoCompletion);
}

TEST_CASE("knapsack: a mixed stage counts in parts, and for no more than it is") {
  // One unit of each class runs a block in 6: five of them in 30. Three of these five count for the fast class, whose
  // unit holds 3 within 30 alone, two for the slow one, each with as much of the time.
  Packed ten(equal_blocks(10, {2, 2}, {kFast, kSlow, {{{0, 1}, {1, 1}}, 6}}), 30);
  CHECK(ten.knapsack.root() == 60);
  CHECK(ten.knapsack.rest(5, 1, std::vector<std::int64_t>{1, 1}) == 30);
  CHECK(ten.knapsack.rest(3, 1, std::vector<std::int64_t>{1, 0}) <= 30);
}

TEST_CASE("knapsack: of many classes") {
  // Five classes of one unit each, 10 to 14 a block: the first four hold two blocks each within 29.
  std::vector<Speed> speeds;
  for (int k = 0; k < 5; ++k) speeds.push_back({{{k, 1}}, 10 + k});
  Packed nine(equal_blocks(9, {1, 1, 1, 1, 1}, speeds), 29);
  CHECK(nine.knapsack.root() == 20 + 22 + 24 + 26 + 14);
  CHECK(nine.knapsack.rest(3, 1, std::vector<std::int64_t>{0, 1, 0, 0, 1}) == 22 + 14);
}
