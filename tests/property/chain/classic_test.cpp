// Classic warm-ups (targets without extra microbatches in flight) against a brute force.
#include "brute_force.hpp"
#include "random_program.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

TEST_CASE("with classic warm-ups the composer's optimum is the brute force's, and no better than without") {
  std::mt19937_64 random(11);
  int slower = 0;
  for (int i = 0; i < cases(3000); ++i) {
    chain::Program program = random_program(random, {});
    const auto free = brute_force(program).time;
    program.classic_warmup = true;
    const auto truth = brute_force(program).time;
    chain::ProgramLimits limits;
    limits.tuning.beam = i % 3 == 0 ? 0 : 4;
    limits.tuning.window_share = i % 2 == 0 ? 0.004 : 0.5;
    const chain::ProgramResult result = chain::solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.finished);
    REQUIRE(result.chains.empty() == !truth.has_value());
    if (!truth) continue;
    const chain::Chain& best = result.chains.front();
    REQUIRE(best.time == *truth);
    REQUIRE(best.time >= *free);
    slower += best.time > *free ? 1 : 0;
    for (std::size_t s = 0; s < best.stages.size(); ++s) {
      REQUIRE(std::min(best.in_flight[s], program.microbatches) <= static_cast<std::int64_t>(best.stages.size() - s));
    }
  }
  CHECK(slower >= enough(100));
}
