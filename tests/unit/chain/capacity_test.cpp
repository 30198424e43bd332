// What units can hold in whole stages, by hand.
#include "bounds/capacity.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "bounds/completion_bound.hpp"
#include "bounds/relaxed_frontier.hpp"
#include "equal_blocks.hpp"
#include "support/catch.hpp"

using namespace tangram::chain;
using namespace tangram::chain::fixtures;

TEST_CASE("capacity: parts of stages do not add up") {
  // Within 29, two fast units hold 2 blocks each and three slow ones 1 each: 7, where shares of stages would make it
  // 2 * 2.9 + 3 * 1.93 = 11.6. Within 30 they hold 3 and 2 each: 12.
  for (const int blocks : {7, 8, 12}) {
    const Program program = equal_blocks(blocks, {2, 3}, {kFast, kSlow});
    const FastestPlans fastest(program);
    CHECK(Capacity(program, fastest, 29).covers_all() == (blocks == 7));
    CHECK(Capacity(program, fastest, 30).covers_all());
    CHECK(shortest_period(program, fastest, 1000) == (blocks == 7 ? 20 : 30));
  }
}

TEST_CASE("capacity: a larger shape holds what two small ones can not") {
  // Both fast units together run a block in 5: within 25 they hold 5 blocks, and three slow ones 3.
  const Program program = equal_blocks(8, {2, 3}, {kFast, kSlow, {{{0, 2}}, 5}});
  CHECK(shortest_period(program, FastestPlans(program), 1000) == 25);
}

TEST_CASE("capacity: a mixed stage counts for both of its classes, and never for more than it is") {
  // One unit of each class runs a block in 6, so that within 25 a mixed stage holds 4 blocks, where they would hold 2
  // and 1 alone: 2/3 of it count for the fast class. Two units hold two such parts, 5 1/3, three slow ones 4: 9 1/3.
  // Indeed, two mixed stages and a slow one hold 9.
  const std::vector<Speed> speeds{kFast, kSlow, {{{0, 1}, {1, 1}}, 6}};
  for (const int blocks : {9, 10}) {
    const Program program = equal_blocks(blocks, {2, 3}, speeds);
    CHECK(Capacity(program, FastestPlans(program), 25).covers_all() == (blocks == 9));
  }
}

TEST_CASE("capacity: of what is left, at the depth of the stages to come") {
  // Slow stages hold one microbatch: only the last one may be one.
  Speed shallow = kSlow;
  shallow.n_max = 1;
  const Program program = equal_blocks(7, {2, 3}, {kFast, shallow});
  const FastestPlans fastest(program);
  const Capacity capacity(program, fastest, 29);
  REQUIRE(capacity.covers_all());
  const std::vector<std::int64_t> all{2, 3};
  CHECK(capacity.covers_after(program.options[0], 5, 1, all));  // 2 and 3 * 1
  CHECK_FALSE(capacity.covers_after(program.options[0], 6, 1, all));
  CHECK(capacity.covers_after(program.options[1], 4, 2, all));  // 2 * 2, and none on slow ones
  CHECK_FALSE(capacity.covers_after(program.options[1], 5, 2, all));
  CHECK_FALSE(capacity.covers_after(program.options[0], 0, 1, std::vector<std::int64_t>{0, 3}));  // no unit to take
}

TEST_CASE("capacity: blocks that cost next to nothing do not count where others decide") {
  // Three blocks of time 1 in front of eight of time 10: counted alike, a unit could hold eleven within 50, or 22 in
  // all on two; but the eight alone take four units of 2 within 25.
  Program program = equal_blocks(11, {3}, {kFast});
  program.signatures = 0;
  std::vector<std::vector<Candidate>> frontiers;
  for (int first = 0; first < program.blocks; ++first) {
    for (int last = first + 1; last <= program.blocks; ++last) {
      const std::int64_t light = std::max(0, std::min(last, 3) - first);
      const std::int64_t time = light + 10 * (last - first - light);
      program.signature(first, last) = program.signatures++;
      frontiers.push_back({{.T = time, .A = time, .n_max = 100}});
    }
  }
  program.frontiers = {program.signatures, std::move(frontiers)};
  // Where every place has a signature of its own there are no kinds, and all blocks count alike: 3 * (3 + 2) >= 11.
  CHECK(Capacity(program, FastestPlans(program), 25).covers_all());
  // With signatures by kind, the eight decide: 3 * 2 < 8.
  for (int block = 0; block < program.blocks; ++block) {
    program.signature(block, block + 1) = block < 3 ? program.signature(0, 1) : program.signature(3, 4);
  }
  CHECK_FALSE(Capacity(program, FastestPlans(program), 25).covers_all());
  CHECK(shortest_period(program, FastestPlans(program), 1000) == 30);
}

TEST_CASE("relaxed frontiers: the fastest plan of every depth, and what a first stage adds") {
  // One block: T 10 holds 1, T 12 holds 1 as well, T 15 holds 4 and synchronises for 20 more, step 5.
  Program program = equal_blocks(1, {1}, {kFast});
  program.frontiers(0, 0) = {
      {.T = 10, .A = 10, .n_max = 1}, {.T = 12, .A = 12, .n_max = 1}, {.T = 15, .A = 35, .o = 5, .n_max = 4}};
  std::vector<Candidate> steps{{}};
  relaxed_frontier_of(program, 0, 0, steps);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0] == Candidate{.T = 10, .A = 10, .n_max = 1});
  CHECK(steps[1] == Candidate{.T = 15, .A = 15, .n_max = 4});
  CHECK(least_drain(program, 0, 1, 1) == 10);
  CHECK(least_drain(program, 0, 1, 2) == 40);
  first_relaxed_frontier_of(program, 0, 1, 2, steps);
  REQUIRE(steps.size() == 2);
  CHECK(steps.back().A == 40);
}
