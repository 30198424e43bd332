// Any bound or cut of the solver switched off, against a brute force: it costs labels, never the optimum.
#include <string>
#include <vector>

#include "brute_force.hpp"
#include "random_program.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/chain/relaxation.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;

namespace {

// What makes bounds differ: memory, links, spending, placement, and classes that hardly reach each other.
const std::vector<Flavour>& flavours_of_cuts() {
  static const std::vector<Flavour> all{
      {.most_blocks = 5},
      {.most_blocks = 7, .most_classes = 2, .most_units = 4, .mixed = false},
      {.most_blocks = 5, .tight_memory = false, .far_apart = true},
      {.most_blocks = 5, .spend_limit = true},
      {.most_blocks = 5, .placement = true, .twins = 1},
      {.most_classes = 2, .most_microbatches = 3},
  };
  return all;
}

chain::ProgramLimits limits_of_case(int i, const chain::SolverCuts& cuts) {
  chain::ProgramLimits limits;
  limits.timed = i % 4 == 0;
  limits.tuning.cuts = cuts;
  limits.tuning.beam = i % 3 == 0 ? 0 : 4;
  limits.tuning.window_share = i % 2 == 0 ? 0.004 : 0.5;
  if (i % 5 < 3) limits.tuning.hard_search = -1;  // all windows are hard
  return limits;
}

void check_optimum(const chain::Program& program, const chain::ProgramLimits& limits,
                   const std::optional<std::int64_t>& truth) {
  const chain::ProgramResult result = chain::solve(program, limits);
  REQUIRE(result.finished);
  REQUIRE(result.chains.empty() == !truth.has_value());
  CHECK(chain::root_bound(program, INT64_MAX, limits.tuning) <= truth.value_or(INT64_MAX));
  if (!truth) return;
  REQUIRE(result.chains.front().time == *truth);
  CHECK(result.bound <= *truth);
}

// With an incumbent a little above the optimum, as components and presolve need one.
void check_beside_incumbent(const chain::Program& program, chain::ProgramLimits limits, std::int64_t truth) {
  limits.incumbent = truth + 1;
  CHECK(chain::root_bound(program, limits.incumbent, limits.tuning) <= truth);
  chain::Program reduced = program;
  chain::Relaxation relaxation(program, limits.tuning);
  CHECK(relaxation.root_bound(limits.incumbent) <= truth);
  relaxation.presolve(limits.incumbent, reduced);
  check_optimum(reduced, limits, truth);
  limits.incumbent = truth;
  CHECK(chain::solve(program, limits).chains.empty());
}

void check_with(const chain::SolverCuts& cuts, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int feasible = 0;
  const int count = cases(300);
  for (int i = 0; i < count; ++i) {
    const auto flavour = static_cast<std::size_t>(i) % flavours_of_cuts().size();
    const chain::Program program = random_program(random, flavours_of_cuts()[flavour]);
    const std::optional<std::int64_t> truth = brute_force(program).time;
    const chain::ProgramLimits limits = limits_of_case(i, cuts);
    INFO("seed " << seed << " case " << i);
    check_optimum(program, limits, truth);
    if (!truth) continue;
    ++feasible;
    check_beside_incumbent(program, limits, *truth);
  }
  CHECK(feasible > count / 8);
}

}  // namespace

TEST_CASE("without any one bound or cut the optimum is the brute force's") {
  std::uint64_t seed = 100;
  for (const chain::SolverCut& cut : chain::solver_cuts()) {
    INFO("without " << cut.name);
    chain::SolverCuts cuts;
    cuts.*cut.is_on = false;
    check_with(cuts, ++seed);
  }
}

TEST_CASE("without all bounds and cuts the optimum is the brute force's") {
  chain::SolverCuts cuts;
  for (const chain::SolverCut& cut : chain::solver_cuts()) cuts.*cut.is_on = false;
  check_with(cuts, 99);
}
