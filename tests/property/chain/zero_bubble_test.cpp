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

// Stages that differ by up to `unlike` of their times, links of latencies up to `latency` of a stage's; a third puts
// off as many weight gradients as it likes, the others few or none.
Chain random_pipeline(std::mt19937_64& random, double unlike, double latency, Program& program) {
  const auto stages = static_cast<int>(draw(random, 2, 8));
  program.blocks = program.keys = program.signatures = stages;
  program.microbatches = draw(random, stages, 6 * stages);
  program.zero_bubble = true;
  program.frontiers = {stages, stages};
  program.signature = {stages + 1, stages + 1, -1};
  program.cut_kind.assign(static_cast<std::size_t>(stages) + 1, 0);
  Grid<Price>& hops = program.prices.emplace_back(stages, stages);
  Chain chain;
  const auto near = [&](double time) {
    return static_cast<std::int64_t>(time * (1 + unlike * (static_cast<double>(draw(random, 0, 2000)) / 1000 - 1)));
  };
  const std::int64_t room = draw(random, 0, 2) == 0 ? program.microbatches : draw(random, 0, 3);
  for (int s = 0; s < stages; ++s) {
    Candidate plan;
    plan.F = near(1000);
    plan.W = near(750);
    plan.T = plan.A = plan.F + near(1000) + plan.W;
    plan.n_max = stages - s + room;
    program.options.push_back({{{s, 1}}, s});
    program.inventory.push_back(1);
    for (int next = 0; next < stages; ++next) {
      hops(s, next).latency = static_cast<std::int64_t>(latency * static_cast<double>(draw(random, 0, 2750)));
    }
    chain.stages.push_back({s, s, s + 1, plan});
  }
  return chain;
}

// Of pipelines whose period is possible, ascending: timetable over closed form.
std::vector<double> shares_of_closed_form(std::mt19937_64& random, double unlike, double latency) {
  std::vector<double> shares;
  for (int i = 0; i < cases(2000); ++i) {
    Program program;
    Chain chain = random_pipeline(random, unlike, latency, program);
    if (!evaluate(program, chain)) continue;
    const std::int64_t time = simulated(program, chain);
    REQUIRE(time == timetable(program, chain));
    REQUIRE(time >= least_time(program, chain));
    shares.push_back(static_cast<double>(time) / static_cast<double>(chain.time));
  }
  std::ranges::sort(shares);
  return shares;
}

}  // namespace

TEST_CASE("no simulation under zero bubble is above the closed form, and few are far below") {
  struct Pipelines {
    double unlike;
    double latency;
    double median;  ///< at least, of the simulation over the closed form
    double twentieth;
  };
  const auto pipelines = GENERATE(Pipelines{0.1, 0.01, 0.94, 0.88}, Pipelines{0.5, 0.01, 0.93, 0.85},
                                  Pipelines{0.1, 0.3, 0.88, 0.82}, Pipelines{0.5, 0.3, 0.90, 0.83});
  std::mt19937_64 random(83);
  const std::vector<double> shares = shares_of_closed_form(random, pipelines.unlike, pipelines.latency);
  REQUIRE(static_cast<int>(shares.size()) >= enough(1500));
  CAPTURE(pipelines.unlike, pipelines.latency, shares.front(), shares[shares.size() / 20], shares[shares.size() / 2],
          shares.back());
  CHECK(shares.back() <= 1);
  CHECK(shares[shares.size() / 2] >= pipelines.median);
  CHECK(shares[shares.size() / 20] >= pipelines.twentieth);
}

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
      REQUIRE(time == simulated(program, chain));
      REQUIRE(time >= least_time(program, chain));
      Chain whole = chain;
      for (ChainStage& stage : whole.stages) stage.candidate.W = 0;
      REQUIRE(time <= timetable(plain, whole));
      fastest = std::min(fastest, time);
      shares.push_back(static_cast<double>(time) / static_cast<double>(chain.time));
    }
    for (const TimedChain& timed : result.timed) {
      REQUIRE(timed.time == simulated(program, timed.chain));
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

TEST_CASE("a timetable of many microbatches under zero bubble is what the simulator says") {
  std::mt19937_64 random(89);
  int compared = 0;
  for (int i = 0; i < cases(2000); ++i) {
    Flavour flavour;
    flavour.tight_memory = i % 3 == 0;
    Program program = random_program(random, flavour);
    halve_backward_passes(random, program);
    const ProgramResult result = solve(program, {});
    program.microbatches = draw(random, 30, 400);
    INFO("case " << i);
    for (Chain chain : result.chains) {
      // Passes that take no time make ties, which the two break otherwise.
      const auto takes_time = [](const ChainStage& stage) { return stage.candidate.F > 0; };
      if (!evaluate(program, chain) || !std::ranges::all_of(chain.stages, takes_time)) continue;
      REQUIRE(timetable(program, chain) == simulated(program, chain));
      ++compared;
    }
  }
  CHECK(compared >= enough(1000));
}
