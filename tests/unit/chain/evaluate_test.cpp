// The closed form of single chains, by hand.
#include "support/catch.hpp"
#include "tangram/chain/program.hpp"

using namespace tangram;
using namespace tangram::chain;

namespace {

// Two stages of one block, T = 10 and F = 4 each, latency 15 and occupancy 12 between them, M = 8.
struct UnlikeStages {
  Program program;
  Chain chain;

  UnlikeStages() {
    program.blocks = 2;
    program.microbatches = 8;
    program.inventory = {2};
    program.options = {{{{0, 1}}, 0}};
    program.keys = 1;
    program.cut_kind = {0, 0, 0};
    program.prices = {{1, {{15, 12}}}};
    chain.stages = {{0, 0, 1, {10, 4, 10, 3, 100, 0}}, {0, 1, 2, {10, 4, 10, 2, 100, 0}}};
  }
  [[nodiscard]] Candidate& stage(std::size_t s) { return chain.stages[s].candidate; }
};

}  // namespace

TEST_CASE("a chain has room for what its stages take: units, places and money") {
  UnlikeStages two;
  CHECK(has_room(two.program, two.chain));
  two.program.inventory = {1};
  CHECK_FALSE(has_room(two.program, two.chain));
  two.program.inventory = {2};
  two.program.placement = {5};
  two.program.options[0].weights = {3};
  CHECK_FALSE(has_room(two.program, two.chain));
  two.program.placement = {6};
  CHECK(has_room(two.program, two.chain));
  two.program.unit_spend = {10};
  two.program.most_spend = 19;
  CHECK_FALSE(has_room(two.program, two.chain));
  two.program.most_spend = 20;
  CHECK(has_room(two.program, two.chain));
}

TEST_CASE("a slow link takes microbatches in flight, or time") {
  UnlikeStages two;
  SECTION("memory for all: the link's occupancy is the period") {
    // P = max(10, 12) = 12. Last stage: x = 10, n = 1, Q = 10. First: x = 10 + 2 * 15 + 10 = 50, n = ceil(50 / 12) = 5.
    // A = max(10 + 4 + 15, 10 + 10 + 30) = 50; t = 50 + 7 * 12 + max(3, 2) = 137.
    REQUIRE(evaluate(two.program, two.chain));
    CHECK(two.chain.period == 12);
    CHECK(two.chain.in_flight == std::vector<std::int64_t>{5, 1});
    CHECK(two.chain.time == 137);
  }
  SECTION("three microbatches: 50 / P <= 3 from P = 17 on") {
    // t = 50 + 7 * 17 + 3 = 172.
    two.stage(0).n_max = 3;
    REQUIRE(evaluate(two.program, two.chain));
    CHECK(two.chain.period == 17);
    CHECK(two.chain.in_flight == std::vector<std::int64_t>{3, 1});
    CHECK(two.chain.time == 172);
  }
  SECTION("two: P = 25") {
    two.stage(0).n_max = 2;
    REQUIRE(evaluate(two.program, two.chain));
    CHECK(two.chain.period == 25);
    CHECK(two.chain.time == 50 + 7 * 25 + 3);
  }
  SECTION("one: never, because two stages need two") {
    two.stage(0).n_max = 1;
    CHECK_FALSE(evaluate(two.program, two.chain));
    // But a single microbatch is all there can be in flight: t = 50 + 3.
    two.program.microbatches = 1;
    REQUIRE(evaluate(two.program, two.chain));
    CHECK(two.chain.time == 53);
  }
}

TEST_CASE("a synchronisation hides under the backward passes before it") {
  // Exposed 30 on the last stage, of which 10 - 4 + 15 = 21 pass while stage 0 drains: tail 9.
  // A = max(40 + 4 + 15, 10 + 10 + 30) = 59; t = 59 + 7 * 12 + 3 = 146.
  UnlikeStages two;
  two.stage(1).A = 40;
  REQUIRE(evaluate(two.program, two.chain));
  CHECK(two.chain.time == 146);
  // On stage 0 nothing comes after: the 30 count in full. A = max(59, 40 + 10 + 30) = 80.
  two.stage(0).A = 40;
  REQUIRE(evaluate(two.program, two.chain));
  CHECK(two.chain.time == 80 + 7 * 12 + 3);
}

TEST_CASE("the slowest stage or the dearest link is the period") {
  UnlikeStages two;
  two.stage(1).T = 31;
  two.stage(1).A = 31;
  // P = 31; last: n = 1, Q = 31; first: x = 10 + 30 + 31 = 71, n = ceil(71 / 31) = 3.
  // A = max(31 + 4 + 15, 10 + 31 + 30) = 71; t = 71 + 7 * 31 + 3.
  REQUIRE(evaluate(two.program, two.chain));
  CHECK(two.chain.period == 31);
  CHECK(two.chain.in_flight.front() == 3);
  CHECK(two.chain.time == 71 + 7 * 31 + 3);
  two.program.prices.front()(0, 0).occupancy = 40;
  REQUIRE(evaluate(two.program, two.chain));
  CHECK(two.chain.period == 40);
}

TEST_CASE("a period that only a slower plan allows is found behind a relaxed frontier") {
  // One block, one option, M = 1. Plans: T = 10 with 100 to synchronise, T = 30 with nothing: 110 and 30. The relaxed
  // frontier keeps the faster alone.
  Program program;
  program.blocks = 1;
  program.inventory = {1};
  program.options = {{{{0, 1}}, 0}};
  program.keys = 1;
  program.signatures = 1;
  program.signature = {2, {-1, 0, -1, -1}};
  program.frontiers = {1, {{{10, 0, 10, 0, 5, -1}}}};
  program.slowest = 30;
  program.cut_kind = {0, 0};
  program.prices = {{1, {{0, 0}}}};
  ProgramLimits limits;
  limits.refine = [](int, int) { return std::vector<Candidate>{{10, 5, 110, 0, 5, 0}, {30, 15, 30, 0, 5, 1}}; };
  const ProgramResult result = solve(program, limits);
  REQUIRE(result.finished);
  REQUIRE_FALSE(result.chains.empty());
  CHECK(result.chains.front().time == 30);
  CHECK(result.chains.front().stages.front().candidate.source == 1);
}
