// Timetables of single chains, by hand.
#include "tangram/chain/timetable.hpp"

#include "support/catch.hpp"

using namespace tangram::chain;

namespace {

// Two stages of one block; F = 4 and T = 10 of the first.
struct TwoStages {
  Program program;
  Chain chain;

  TwoStages(std::int64_t microbatches, Price hop, const Candidate& last) {
    program.blocks = 2;
    program.microbatches = microbatches;
    program.inventory = {2};
    program.options = {{{{0, 1}}, 0}};
    program.keys = 1;
    program.cut_kind = {0, 0, 0};
    program.prices = {{1, {hop}}};
    chain.stages = {{0, 0, 1, {10, 4, 10, 3, 100, 0}}, {0, 1, 2, last}};
    REQUIRE(evaluate(program, chain));
  }
};

}  // namespace

TEST_CASE("a timetable sends transfers one after the other") {
  // The first stage is forward from 0 to 4 and to 8. Its link takes the first from 4, busy until 16, there at 19, and
  // the second from 16, there at 31. The last stage: forward 19 to 23, backward to 29; 31 to 35, to 41. Back: sent at
  // 29, there at 44, busy until 41; sent at 41, there at 56. Backward: 44 to 50, 56 to 62. The optimizer steps: 3.
  const TwoStages two(2, {15, 12}, {10, 4, 10, 2, 100, 0});
  CHECK(timetable(two.program, two.chain) == 65);
  CHECK(two.chain.time == 65);
}

TEST_CASE("behind the bottleneck a pipeline drains faster than the closed form says") {
  // F = 2 and T = 4 of the last stage, no links, M = 4, so that P = 10 and t = 14 + 3 * 10 + 3 = 47. First stage, two
  // in flight: forward 0 to 4 to 8; backward 8 to 14; forward to 18; backward to 24; forward to 28; the gradients of
  // the last two microbatches are there at 22 and 32: backward 28 to 34 to 40.
  TwoStages two(4, {0, 0}, {4, 2, 4, 2, 100, 0});
  CHECK(two.chain.time == 47);
  CHECK(timetable(two.program, two.chain) == 43);
  // One stage with all microbatches: 4 * 10 + 3.
  CHECK(least_time(two.program, two.chain) == 43);
  SECTION("stages that cannot be neighbours never end") {
    two.program.prices.front()(0, 0) = Price::none();
    CHECK(least_time(two.program, two.chain) == INT64_MAX);
  }
  SECTION("gradients that are synchronised late count") {
    two.chain.stages[0].candidate.A = 17;
    CHECK(timetable(two.program, two.chain) == 50);
  }
}

TEST_CASE("zero bubble, arXiv 2401.10241, section 2: weight gradients fill the bubble") {
  // S stages of F = B = W = 10: an iteration takes 3 M + S - 1 passes where all hold S microbatches, 3 (M + S - 1)
  // under 1F1B.
  constexpr int kStages = 4;
  Program program;
  program.blocks = kStages;
  program.microbatches = 8;
  program.inventory = {kStages};
  program.options = {{{{0, 1}}, 0}};
  program.keys = 1;
  program.cut_kind.assign(kStages + 1, 0);
  program.prices = {{1, {{0, 0}}}};
  program.zero_bubble = true;
  Chain chain;
  for (int s = 0; s < kStages; ++s) chain.stages.push_back({0, s, s + 1, {30, 10, 30, 0, kStages, 0, 10}});
  SECTION("put off") {
    REQUIRE(evaluate(program, chain));
    CHECK(timetable(program, chain) == 10 * (3 * 8 + kStages - 1));
    // A = 30 + 3 * 20; P = 30.
    CHECK(chain.time == 90 + 7 * 30);
    CHECK(chain.in_flight == std::vector<std::int64_t>{4, 3, 2, 1});
    // The last stage's work behind three forward passes.
    CHECK(least_time(program, chain) == 3 * 10 + 8 * 30);
  }
  SECTION("whole") {
    for (ChainStage& stage : chain.stages) stage.candidate.W = 0;
    REQUIRE(evaluate(program, chain));
    CHECK(timetable(program, chain) == 30 * (8 + kStages - 1));
    CHECK(chain.time == 30 * (8 + kStages - 1));
  }
}
