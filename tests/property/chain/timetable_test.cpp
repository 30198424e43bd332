// Timetables against the event-driven simulator, which shares no code with them, and what local search may do to a
// chain.
#include "tangram/chain/timetable.hpp"

#include <algorithm>

#include "brute_force.hpp"
#include "random_program.hpp"
#include "simulated_chain.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/chain/local_search.hpp"

using namespace tangram;
using namespace tangram::chain;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

// Blocks in order, plans of their frontiers, no more than there is, and memory for what is in flight.
void check_chain(const Program& program, const Chain& chain) {
  std::vector<std::int64_t> left = program.resources();
  int first = 0;
  std::int64_t in_flight = program.microbatches;
  Chain minimal = chain;
  REQUIRE(evaluate(program, minimal));
  REQUIRE(minimal.time == chain.time);
  REQUIRE(closed_form(program, chain.stages) == chain.time);
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const ChainStage& stage = chain.stages[s];
    REQUIRE(stage.first == first);
    REQUIRE(stage.last > first);
    first = stage.last;
    const auto& plans = program.frontier(stage.option, program.signature_of(stage.first, stage.last));
    REQUIRE(std::ranges::any_of(plans, [&](const Candidate& plan) {
      return plan.source == stage.candidate.source && plan.T == stage.candidate.T &&
             plan.n_max == stage.candidate.n_max;
    }));
    const Option& option = program.options[static_cast<std::size_t>(stage.option)];
    for (const Use& use : option.uses) left[static_cast<std::size_t>(use.island_class)] -= use.units;
    if (!program.unit_spend.empty()) left.back() -= program.spend_of(option);
    const std::int64_t count = std::min(chain.in_flight[s], program.microbatches);
    REQUIRE(count >= std::min(minimal.in_flight[s], program.microbatches));
    REQUIRE(count <= stage.candidate.n_max);
    REQUIRE(count <= in_flight);
    in_flight = count;
  }
  REQUIRE(first == program.blocks);
  REQUIRE(std::ranges::all_of(left, [](std::int64_t units) { return units >= 0; }));
}

// Every other one with more microbatches.
Program small_program(std::mt19937_64& random, int number) {
  Flavour flavour;
  flavour.most_microbatches = number % 2 == 0 ? 9 : 24;
  return random_program(random, flavour);
}

// Closed forms below this belong to chains that are looked at.
std::int64_t within_reach(const Chain& best) { return best.time + best.time * 3 / 10 + 1; }

}  // namespace

TEST_CASE("timetables are what the simulator says, and improved by local search chains are made of what there is") {
  std::mt19937_64 random(29);
  int below_form = 0;
  int better = 0;
  int warmer = 0;
  int found_beyond = 0;  // where no chain is of interest by closed form
  for (int i = 0; i < cases(4000); ++i) {
    Flavour flavour;
    flavour.most_microbatches = i % 2 == 0 ? 9 : 24;
    flavour.spend_limit = i % 5 == 0;
    Program program = random_program(random, flavour);
    program.classic_warmup = i % 7 == 0;
    ProgramLimits limits;
    limits.timed = true;
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.timed.empty() == result.chains.empty());
    std::int64_t fastest = INT64_MAX;
    for (const Chain& chain : result.chains) {
      const std::int64_t time = timetable(program, chain);
      REQUIRE(time == simulated(program, chain));
      REQUIRE(time >= least_time(program, chain));
      fastest = std::min(fastest, time);
      below_form += time < chain.time ? 1 : 0;
    }
    for (const TimedChain& timed : result.timed) {
      check_chain(program, timed.chain);
      REQUIRE(timed.time == simulated(program, timed.chain));
      Chain minimal = timed.chain;
      REQUIRE(evaluate(program, minimal));
      REQUIRE(minimal.time >= result.chains.front().time);
      warmer += minimal.in_flight != timed.chain.in_flight ? 1 : 0;
    }
    if (result.timed.empty()) continue;
    REQUIRE(std::ranges::is_sorted(result.timed, {}, &TimedChain::time));
    REQUIRE(result.timed.front().time <= fastest);
    better += result.timed.front().time < fastest ? 1 : 0;
    limits.incumbent = result.chains.front().time;
    const ProgramResult again = solve(program, limits);
    REQUIRE(again.chains.empty());
    REQUIRE(again.bound >= limits.incumbent);
    for (const TimedChain& timed : again.timed) {
      check_chain(program, timed.chain);
      REQUIRE(timed.time == simulated(program, timed.chain));
    }
    if (again.timed.empty()) continue;
    found_beyond += again.timed.front().time < limits.incumbent ? 1 : 0;
  }
  CHECK(below_form >= enough(500));
  CHECK(better >= enough(300));
  CHECK(found_beyond >= enough(100));
  CHECK(warmer >= enough(50));
}

TEST_CASE("where only timetables are looked for, the fastest of all chains near the best is found") {
  std::mt19937_64 random(57);
  int compared = 0;
  int missed = 0;
  for (int i = 0; i < cases(2000); ++i) {
    const Program program = small_program(random, i);
    const ProgramResult best = solve(program, {});
    if (best.chains.empty()) continue;
    ProgramLimits limits;
    limits.timed = limits.only_timetables = true;
    limits.incumbent = within_reach(best.chains.front());
    const std::optional<std::int64_t> truth = fastest_timetable(program, limits.incumbent);
    INFO("case " << i);
    REQUIRE(truth);
    const ProgramResult result = solve(program, limits);
    const std::int64_t found = result.timed.empty() ? INT64_MAX : result.timed.front().time;
    ++compared;
    missed += found > *truth ? 1 : 0;
  }
  CHECK(compared >= enough(1000));
  CHECK(missed <= 1 + compared / 400);  // a beam takes the fastest plan of a stage, and local search starts from that
}

TEST_CASE("local search with every change leads to the fastest of most programs, and with two at once to more") {
  std::mt19937_64 random(61);
  const Refine whole;  // nothing to make so
  SolverTuning one_change;
  one_change.near_misses = 0;
  int compared = 0;
  int missed = 0;
  int missed_with_one = 0;
  for (int i = 0; i < cases(2000); ++i) {
    const Program program = small_program(random, i);
    const ProgramResult best = solve(program, {});
    if (best.chains.empty()) continue;
    const Chain& start = best.chains.front();
    Frontiers frontiers(program, whole);
    const auto changed = [&](const SolverTuning& tuning) {
      return local_search(program, frontiers, start, Changes::kAll, 1'000'000, tuning);
    };
    const TimedChain fastest = changed({});
    INFO("case " << i);
    check_chain(program, fastest.chain);
    REQUIRE(fastest.time == simulated(program, fastest.chain));
    REQUIRE(fastest.time <= timetable(program, start));
    const std::optional<std::int64_t> truth = fastest_timetable(program, within_reach(start));
    REQUIRE(truth);
    ++compared;
    missed += fastest.time > *truth ? 1 : 0;
    missed_with_one += changed(one_change).time > *truth ? 1 : 0;
  }
  CHECK(compared >= enough(1000));
  CHECK(missed <= missed_with_one);
  CHECK(missed <= 1 + compared / 10);
}

TEST_CASE("a timetable of many microbatches is what the simulator says, and beyond a cutoff no more than that") {
  std::mt19937_64 random(83);
  int compared = 0;
  int ended_early = 0;
  for (int i = 0; i < cases(2000); ++i) {
    Program program = random_program(random, {});
    const ProgramResult result = solve(program, {});
    program.microbatches = std::uniform_int_distribution<std::int64_t>(30, 400)(random);
    INFO("case " << i);
    for (Chain chain : result.chains) {
      if (!evaluate(program, chain)) continue;
      const std::int64_t time = timetable(program, chain);
      REQUIRE(time == simulated(program, chain));
      ++compared;
      const std::int64_t cutoff = std::uniform_int_distribution<std::int64_t>(time / 2, time + time / 2)(random);
      const std::int64_t until = timetable(program, chain, cutoff);
      REQUIRE(until <= time);
      REQUIRE(until >= std::min(time, cutoff));
      ended_early += until < time ? 1 : 0;
    }
  }
  CHECK(compared >= enough(1000));
  CHECK(ended_early >= enough(100));
}
