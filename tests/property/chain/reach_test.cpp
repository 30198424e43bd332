// What is ruled out before chains are timed exactly: options that never meet, periods that nothing fits, and windows
// whose joint chains are slow.
#include <optional>
#include <random>

#include "bounds/completion_bound.hpp"
#include "brute_force.hpp"
#include "components.hpp"
#include "labels/label_search.hpp"
#include "random_program.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/chain/relaxation.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

const Deadline never;

/// Up to a quarter longer than the shortest at which all units hold all blocks; none: they never do.
std::optional<std::int64_t> period_near_shortest(const chain::Program& program, const chain::FastestPlans& fastest,
                                                 std::mt19937_64& random) {
  std::int64_t slowest = 1;
  for (const auto& frontier : program.frontiers) {
    if (!frontier.empty()) slowest = std::max(slowest, frontier.back().T);
  }
  const std::int64_t shortest = chain::shortest_period(program, fastest, slowest);
  if (shortest == INT64_MAX) return std::nullopt;
  return std::uniform_int_distribution<std::int64_t>(shortest, shortest + shortest / 4)(random);
}

std::size_t plans_of(const chain::Program& program) {
  std::size_t plans = 0;
  for (const auto& frontier : program.frontiers) plans += frontier.size();
  return plans;
}

}  // namespace

TEST_CASE("every chain of interest lies in one component") {
  std::mt19937_64 random(31);
  int parted = 0;
  for (int i = 0; i < cases(3000); ++i) {
    const chain::Program program = random_program(random, {.most_blocks = 5, .far_apart = true});
    const BruteForceAnswer truth = brute_force(program);
    if (!truth.time) continue;
    const std::int64_t interest = *truth.time + std::uniform_int_distribution<std::int64_t>(1, *truth.time)(random);
    const std::vector<chain::Component> components = chain::components_of(program, interest);
    if (components.empty()) continue;
    ++parted;
    std::optional<std::int64_t> best;
    for (const chain::Component& component : components) {
      const std::optional<std::int64_t> time = brute_force(component.program).time;
      if (time && (!best || *time < *best)) best = time;
    }
    INFO("case " << i);
    REQUIRE(best == truth.time);
  }
  CHECK(parted >= enough(500));
}

TEST_CASE("what a reduced program leaves out is in no chain of interest") {
  std::mt19937_64 random(33);
  int smaller = 0;
  for (int i = 0; i < cases(3000); ++i) {
    const chain::Program program = random_program(random, {.most_blocks = 5, .far_apart = i % 3 == 0});
    const BruteForceAnswer truth = brute_force(program);
    if (!truth.time) continue;
    const auto apart = static_cast<std::int64_t>(static_cast<double>(*truth.time) * (i % 2 == 0 ? 0.04 : 0.3));
    const std::int64_t interest = *truth.time + 1 + std::uniform_int_distribution<std::int64_t>(0, apart)(random);
    chain::Program reduced = program;
    chain::Relaxation(program, {}).presolve(interest, reduced);
    if (plans_of(reduced) < plans_of(program)) ++smaller;
    INFO("case " << i);
    REQUIRE(brute_force(reduced).time == truth.time);
  }
  CHECK(smaller >= enough(1000));
}

TEST_CASE("a search for feasibility alone finds a chain exactly where the period allows one") {
  std::mt19937_64 random(32);
  const chain::Refine whole;  // nothing to make so
  int allowed = 0;
  int ruled_out = 0;
  for (int i = 0; i < cases(3000); ++i) {
    // Options of equal units that differ by memory and links leave labels of one state that only those tell apart.
    const chain::Program program =
        i % 2 == 0 ? random_program(random, {.most_blocks = 5, .far_apart = i % 4 == 0})
                   : random_program(random, {.most_classes = 2, .most_units = 4, .mixed = false, .twins = 2});
    const chain::FastestPlans fastest(program);
    const chain::EndCosts ends(program);
    chain::Frontiers frontiers(program, whole);
    const std::optional<std::int64_t> period = period_near_shortest(program, fastest, random);
    if (!period) continue;
    const chain::CompletionBound bound(program, fastest, *period, {}, 0, chain::kNoCompletion);
    if (bound.root() == chain::kNoCompletion) continue;
    chain::LabelQuery query;
    query.period = *period;
    query.cutoff = INT64_MAX / 4;
    const chain::LabelAnswer timed = chain::search_labels({program, frontiers, ends, never}, bound, query);
    query.relaxed = query.feasibility_only = true;
    const chain::LabelAnswer feasibility_only = chain::search_labels({program, frontiers, ends, never}, bound, query);
    INFO("case " << i << " period " << *period);
    REQUIRE(feasibility_only.found == timed.found);
    ++(timed.found ? allowed : ruled_out);
  }
  CHECK(allowed >= enough(500));
  CHECK(ruled_out >= enough(50));
}

TEST_CASE("no chain that a period allows takes less than whole stages say") {
  std::mt19937_64 random(34);
  const chain::Refine whole;
  int exact = 0;
  int above_prices = 0;
  for (int i = 0; i < cases(3000); ++i) {
    const chain::Program program =
        random_program(random, {.most_blocks = 5, .most_units = 4, .heavy_sync = i % 2 == 0, .mixed = i % 3 == 0});
    const chain::FastestPlans fastest(program);
    const chain::EndCosts ends(program);
    chain::Frontiers frontiers(program, whole);
    const std::optional<std::int64_t> period = period_near_shortest(program, fastest, random);
    if (!period) continue;
    const chain::CompletionBound bound(program, fastest, *period, {}, 24, chain::kNoCompletion);
    if (bound.root() == chain::kNoCompletion) continue;
    chain::LabelQuery query;
    query.period = *period;
    query.cutoff = INT64_MAX / 4;
    query.beam = 1 << 20;  // wide enough for all, and without the bound in question
    const chain::LabelAnswer best = chain::search_labels({program, frontiers, ends, never}, bound, query);
    const double root = bound.knapsack().root();
    INFO("case " << i << " period " << *period);
    if (!best.found) continue;
    REQUIRE(root <= static_cast<double>(best.value));
    if (root == static_cast<double>(best.value)) ++exact;
    if (root > bound.root() + 1) ++above_prices;
  }
  CHECK(exact >= enough(100));
  CHECK(above_prices >= enough(100));
}
