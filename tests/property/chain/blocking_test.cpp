// Stages that stop for their transfers: the search against a brute force, timetables against the event-driven
// simulator, and what the closed form is worth beside it.
#include <algorithm>

#include "brute_force.hpp"
#include "closed_form.hpp"
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

Program blocking_program(std::mt19937_64& random, const Flavour& flavour) {
  Program program = random_program(random, flavour);
  program.classic_warmup = true;
  program.blocking_transfers = true;
  return program;
}

// In warm-up a stage exchanges a microbatch on both sides for a forward pass alone, at the end for a backward pass
// alone. What two such may take more than a period, and the fastest stage.
struct Shape {
  std::int64_t beyond_period = 0;
  std::int64_t fastest = INT64_MAX;  // T
};

Shape shape_of(const Program& program, const Chain& chain) {
  std::int64_t fastest = INT64_MAX;
  std::int64_t forward = 0;
  std::int64_t backward = 0;
  std::int64_t before = 0;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    const Candidate& plan = chain.stages[s].candidate;
    const std::int64_t behind = s + 1 < chain.stages.size() ? boundary_after(program, chain, s).latency : 0;
    forward = std::max(forward, plan.F + before + behind);
    backward = std::max(backward, plan.T - plan.F + before + behind);
    fastest = std::min(fastest, plan.T);
    before = behind;
  }
  return {forward + backward - chain.period, fastest};
}

}  // namespace

TEST_CASE("where transfers block, the composer's optimum is the brute force's") {
  std::mt19937_64 random(41);
  int slower = 0;
  int otherwise = 0;
  for (int i = 0; i < cases(3000); ++i) {
    Flavour flavour;
    flavour.spend_limit = i % 5 == 0;
    flavour.placement = i % 4 == 0;
    flavour.far_apart = i % 4 == 1;
    flavour.twins = i % 2;
    Program program = blocking_program(random, flavour);
    const auto truth = brute_force(program).time;
    ProgramLimits limits;
    limits.tuning.beam = i % 3 == 0 ? 0 : 4;
    limits.tuning.window_share = i % 2 == 0 ? 0.004 : 0.5;
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.finished);
    REQUIRE(result.chains.empty() == !truth.has_value());
    if (!truth) continue;
    Chain best = result.chains.front();
    REQUIRE(best.time == *truth);
    REQUIRE(result.bound <= *truth);
    program.blocking_transfers = false;
    const auto overlapped = brute_force(program).time;
    if (!overlapped) continue;
    REQUIRE(best.time >= *overlapped);
    slower += best.time > *overlapped ? 1 : 0;
    otherwise += !evaluate(program, best) || best.time > *overlapped ? 1 : 0;
  }
  CHECK(slower >= enough(500));
  CHECK(otherwise >= enough(100));
}

TEST_CASE("timetables of blocking transfers are what the simulator says, for chains and for changed ones") {
  std::mt19937_64 random(43);
  int better = 0;
  int fewer_than_stages = 0;
  for (int i = 0; i < cases(3000); ++i) {
    Flavour flavour;
    flavour.most_microbatches = i % 2 == 0 ? 9 : 24;
    flavour.tight_memory = i % 3 == 0;
    const Program program = blocking_program(random, flavour);
    ProgramLimits limits;
    limits.timed = true;
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.timed.empty() == result.chains.empty());
    std::int64_t fastest = INT64_MAX;
    for (const Chain& chain : result.chains) {
      const std::int64_t time = timetable(program, chain);
      REQUIRE(time == simulated(program, chain, simulate::Transfers::kBlocking));
      REQUIRE(time >= least_time(program, chain));
      fastest = std::min(fastest, time);
      fewer_than_stages += program.microbatches < static_cast<std::int64_t>(chain.stages.size()) ? 1 : 0;
    }
    for (const TimedChain& timed : result.timed) {
      REQUIRE(timed.time == simulated(program, timed.chain, simulate::Transfers::kBlocking));
      REQUIRE(timed.time >= least_time(program, timed.chain));
    }
    if (!result.timed.empty()) better += result.timed.front().time < fastest ? 1 : 0;
  }
  CHECK(better >= enough(30));
  CHECK(fewer_than_stages >= enough(50));
}

// A path through the order of passes that turns back early gains the transfers of warm-up and end, and loses a stage
// behind for every two of them: it is not the longest where they gain no more than a stage takes.
TEST_CASE("no simulation of blocking transfers is above the closed form where transfers are short and passes even") {
  std::mt19937_64 random(47);
  int compared = 0;
  int below = 0;
  for (int i = 0; i < cases(4000); ++i) {
    Flavour flavour;
    flavour.most_microbatches = 24;
    flavour.slow_links = i % 2 == 0;
    flavour.tight_memory = false;
    const Program program = blocking_program(random, flavour);
    for (const Chain& chain : solve(program, {}).chains) {
      const Shape shape = shape_of(program, chain);
      if (shape.beyond_period > shape.fastest) continue;
      INFO("case " << i);
      const std::int64_t time = timetable(program, chain);
      REQUIRE(time <= chain.time);
      ++compared;
      below += time < chain.time ? 1 : 0;
    }
  }
  CHECK(compared >= enough(2000));
  CHECK(below >= enough(300));
}
