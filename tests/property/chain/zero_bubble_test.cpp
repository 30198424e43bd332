// Zero bubble: the search against a brute force, timetables against the event-driven simulator, and what the closed
// form is worth beside it.
#include <algorithm>

#include "brute_force.hpp"
#include "random_program.hpp"
#include "simulated_chain.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/chain/timetable.hpp"

using namespace tangram;
using namespace tangram::chain;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

std::int64_t draw(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

// Plans may put weight gradients off, up to half of their backward passes or all of it, and hold fewer microbatches
// then.
void halve_backward_passes(std::mt19937_64& random, Program& program) {
  program.zero_bubble = true;
  for (std::vector<Candidate>& frontier : program.frontiers) {
    std::vector<Candidate> all;
    for (const Candidate& whole : frontier) {
      Candidate halved = whole;
      halved.W = (whole.T - whole.F) * draw(random, 0, 10) / draw(random, 10, 20);
      halved.n_max = std::max<std::int64_t>(0, whole.n_max - draw(random, 0, 2));
      all.push_back(whole);
      if (halved.n_max > 0) all.push_back(halved);
    }
    frontier = prune::pareto(all);
  }
}

Program without_putting_off(Program program) {
  for (std::vector<Candidate>& frontier : program.frontiers) {
    for (Candidate& plan : frontier) plan.W = 0;
    frontier = prune::pareto(frontier);
  }
  program.zero_bubble = false;
  return program;
}

ProgramLimits limits_of(int i) {
  ProgramLimits limits;
  limits.tuning.beam = i % 3 == 0 ? 0 : 4;
  limits.tuning.window_share = i % 2 == 0 ? 0.004 : 0.5;
  return limits;
}

}  // namespace

TEST_CASE("under zero bubble the composer's optimum is the brute force's, and no slower than under 1F1B") {
  std::mt19937_64 random(71);
  int found = 0;
  int faster = 0;
  for (int i = 0; i < cases(2000); ++i) {
    Flavour flavour;
    flavour.spend_limit = i % 5 == 0;
    flavour.placement = i % 4 == 0;
    flavour.far_apart = i % 4 == 1;
    flavour.twins = i % 2;
    flavour.tight_memory = i % 3 > 0;
    Program program = random_program(random, flavour);
    halve_backward_passes(random, program);
    program.classic_warmup = i % 7 == 0;
    const auto truth = brute_force(program).time;
    const ProgramResult result = solve(program, limits_of(i));
    INFO("case " << i);
    REQUIRE(result.finished);
    REQUIRE(result.chains.empty() == !truth.has_value());
    REQUIRE(root_bound(program) <= truth.value_or(INT64_MAX));
    if (!truth) continue;
    ++found;
    REQUIRE(result.chains.front().time == *truth);
    REQUIRE(result.bound <= *truth);
    const auto whole = brute_force(without_putting_off(program)).time;
    REQUIRE(whole.has_value());
    REQUIRE(*truth <= *whole);
    faster += *truth < *whole ? 1 : 0;
  }
  CHECK(found >= enough(1200));
  CHECK(faster >= enough(500));
}

TEST_CASE("bounds and cuts may be off without another optimum under zero bubble") {
  std::mt19937_64 random(73);
  for (int i = 0; i < cases(800); ++i) {
    Program program = random_program(random, {});
    halve_backward_passes(random, program);
    const auto truth = brute_force(program).time;
    ProgramLimits limits;
    limits.tuning.cuts.dominance = i % 5 != 0;
    limits.tuning.cuts.completion = i % 5 != 1;
    limits.tuning.cuts.knapsack = i % 5 != 2;
    limits.tuning.cuts.end_floor = i % 5 != 3;
    limits.tuning.cuts.relaxed_frontier = i % 5 != 4;
    limits.tuning.hard_search = i % 2 == 0 ? 1 : -1;
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.chains.empty() == !truth.has_value());
    if (truth) REQUIRE(result.chains.front().time == *truth);
    if (!truth) continue;
    limits.incumbent = *truth + 1;
    const ProgramResult beside = solve(program, limits);
    REQUIRE(!beside.chains.empty());
    REQUIRE(beside.chains.front().time == *truth);
  }
}

TEST_CASE("timetables under zero bubble are what the simulator says, and no slower than those under 1F1B") {
  std::mt19937_64 random(79);
  int better = 0;
  std::vector<double> shares;
  for (int i = 0; i < cases(2000); ++i) {
    Flavour flavour;
    flavour.most_microbatches = i % 2 == 0 ? 9 : 24;
    flavour.tight_memory = i % 3 == 0;
    Program program = random_program(random, flavour);
    halve_backward_passes(random, program);
    const Program plain = without_putting_off(program);
    ProgramLimits limits;
    limits.timed = true;
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.timed.empty() == result.chains.empty());
    std::int64_t fastest = INT64_MAX;
    for (const Chain& chain : result.chains) {
      const std::int64_t time = timetable(program, chain);
      REQUIRE(time == simulated_zero_bubble(program, chain));
      REQUIRE(time >= least_time(program, chain));
      Chain whole = chain;
      for (ChainStage& stage : whole.stages) stage.candidate.W = 0;
      REQUIRE(time <= timetable(plain, whole));
      fastest = std::min(fastest, time);
      shares.push_back(static_cast<double>(time) / static_cast<double>(chain.time));
    }
    for (const TimedChain& timed : result.timed) {
      REQUIRE(timed.time == simulated_zero_bubble(program, timed.chain));
      REQUIRE(timed.time >= least_time(program, timed.chain));
    }
    if (!result.timed.empty()) better += result.timed.front().time < fastest ? 1 : 0;
  }
  CHECK(better >= enough(30));
  REQUIRE(static_cast<int>(shares.size()) >= enough(100));
  std::ranges::sort(shares);
  CHECK(shares[shares.size() / 20] > 0.75);
  CHECK(shares[shares.size() / 2] > 0.9);
  CHECK(shares[shares.size() - 1 - shares.size() / 20] <= 1.0);
}
