// The composer against a brute force, and what must never make an optimum worse.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "brute_force.hpp"
#include "random_program.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/base/at.hpp"

using namespace tangram;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

std::optional<std::int64_t> optimum(const chain::Program& program, chain::ProgramLimits limits = {}) {
  const chain::ProgramResult result = chain::solve(program, limits);
  REQUIRE(result.finished);
  if (result.chains.empty()) return std::nullopt;
  return result.chains.front().time;
}

// [old number] -> new number
std::vector<int> shuffled_numbers(std::mt19937_64& random, int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::ranges::shuffle(numbers, random);
  return numbers;
}

// The same program with its classes, price keys, signatures and options numbered anew. Frontiers must be whole.
chain::Program renumbered(const chain::Program& program, std::mt19937_64& random) {
  const int options = static_cast<int>(program.options.size());
  const std::vector<int> classes = shuffled_numbers(random, static_cast<int>(program.inventory.size()));
  const std::vector<int> keys = shuffled_numbers(random, program.keys);
  const std::vector<int> signatures = shuffled_numbers(random, program.signatures);
  const std::vector<int> places = shuffled_numbers(random, options);
  chain::Program result = program;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    at(result.inventory, classes[k]) = program.inventory[k];
    if (!program.unit_spend.empty()) at(result.unit_spend, classes[k]) = program.unit_spend[k];
  }
  for (int& signature : result.signature) signature = signature < 0 ? signature : at(signatures, signature);
  for (int option = 0; option < options; ++option) {
    chain::Option& moved = at(result.options, at(places, option));
    moved = at(program.options, option);
    moved.key = at(keys, moved.key);
    for (chain::Use& use : moved.uses) use.island_class = at(classes, use.island_class);
    std::ranges::sort(moved.uses, {}, &chain::Use::island_class);
    for (int signature = 0; signature < program.signatures; ++signature) {
      result.frontiers(at(places, option), at(signatures, signature)) = program.frontier(option, signature);
    }
  }
  for (std::size_t kind = 0; kind < program.prices.size(); ++kind) {
    for (int from = 0; from < program.keys; ++from) {
      for (int to = 0; to < program.keys; ++to) {
        result.prices[kind](at(keys, from), at(keys, to)) = program.prices[kind](from, to);
      }
    }
  }
  return result;
}

void compare(const Flavour& flavour, std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  int feasible = 0;
  for (int i = 0; i < count; ++i) {
    const chain::Program program = random_program(random, flavour);
    const BruteForceAnswer truth = brute_force(program);
    chain::ProgramLimits limits;
    limits.tuning.beam = i % 3 == 0 ? 0 : 4;  // beam searches must not change the answer
    limits.tuning.wide_beam = i % 4 == 0 ? 256 : 1;
    limits.tuning.window_share = i % 2 == 0 ? 0.004 : 0.5;
    if (i % 5 < 3) limits.tuning.hard_search = -1;  // nor must what goes before hard searches
    const chain::ProgramResult result = chain::solve(program, limits);
    INFO("seed " << seed << " case " << i);
    REQUIRE(result.finished);
    REQUIRE(result.chains.empty() == !truth.time.has_value());
    if (!truth.time) continue;
    ++feasible;
    REQUIRE(result.chains.front().time == *truth.time);
    REQUIRE(closed_form(program, result.chains.front().stages) == truth.time);
    const std::int64_t root = chain::root_bound(program);
    REQUIRE(root <= *truth.time);
  }
  CHECK(feasible > count / 8);
}

}  // namespace

TEST_CASE("the composer's optimum is the brute force's") {
  SECTION("everything at once") { compare({}, 1, cases(4000)); }
  SECTION("fast links, plain pipelines") {
    compare({.slow_links = false, .heavy_sync = false, .tight_memory = false, .mixed = false}, 2, cases(1500));
  }
  SECTION("tight memory and slow links") { compare({.most_classes = 2, .heavy_sync = false}, 3, cases(3000)); }
  SECTION("few microbatches, more stages than microbatches") {
    compare({.most_classes = 2, .most_microbatches = 3}, 4, cases(2000));
  }
  SECTION("four classes, eight blocks, twelve units") {
    compare({.most_blocks = 8, .most_classes = 4, .most_units = 3}, 9, cases(1000));
  }
  SECTION("long pipelines of one class") {
    compare({.most_blocks = 8, .most_classes = 1, .most_units = 7, .mixed = false}, 5, cases(1000));
  }
  SECTION("no more than so much to spend") { compare({.tight_memory = false, .spend_limit = true}, 7, cases(3000)); }
  SECTION("classes that hardly reach each other") {
    compare({.tight_memory = false, .far_apart = true}, 8, cases(2000));
  }
  SECTION("shapes that do not fit beside each other") { compare({.placement = true}, 15, cases(3000)); }
  SECTION("long pipelines of shapes that do not fit beside each other") {
    compare({.most_blocks = 7, .most_classes = 2, .most_units = 6, .mixed = false, .placement = true, .twins = 1}, 16,
            cases(1000));
  }
  SECTION("options that differ by their links") {
    compare({.most_blocks = 5, .most_classes = 1, .most_units = 4, .most_microbatches = 5, .mixed = false, .twins = 1},
            6, cases(4000));
  }
}

TEST_CASE("an incumbent only hides what is no better") {
  std::mt19937_64 random(11);
  for (int i = 0; i < cases(1000); ++i) {
    const chain::Program program = random_program(random, {.far_apart = i % 2 == 0});
    const std::optional<std::int64_t> best = optimum(program);
    if (!best) continue;
    chain::ProgramLimits limits;
    limits.incumbent = *best;
    CHECK_FALSE(optimum(program, limits).has_value());
    limits.incumbent = *best + 1;
    CHECK(optimum(program, limits) == best);
    CHECK(chain::root_bound(program, limits.incumbent) <= *best);
  }
}

TEST_CASE("more never makes the optimum worse") {
  std::mt19937_64 random(12);
  for (int i = 0; i < cases(1000); ++i) {
    const chain::Program program = random_program(random, {});
    const std::int64_t before = optimum(program).value_or(INT64_MAX);
    chain::Program more_units = program;
    ++more_units.inventory[static_cast<std::size_t>(i) % more_units.inventory.size()];
    CHECK(optimum(more_units).value_or(INT64_MAX) <= before);
    chain::Program more_memory = program;
    for (auto& frontier : more_memory.frontiers) {
      for (auto& candidate : frontier) candidate.n_max += 2;
    }
    CHECK(optimum(more_memory).value_or(INT64_MAX) <= before);
    chain::Program faster_links = program;
    for (auto& of_kind : faster_links.prices) {
      for (auto& price : of_kind) {
        price.latency /= 2;
        price.occupancy /= 2;
      }
    }
    CHECK(optimum(faster_links).value_or(INT64_MAX) <= before);
    chain::Program more_options = program;  // a technique more: one extra partial plan somewhere
    const int somewhere = i % static_cast<int>(more_options.frontiers.size());
    auto& frontier = more_options.frontiers(somewhere / program.signatures, somewhere % program.signatures);
    frontier.push_back({7, 3, 7, 1, 2, 99});
    frontier = prune::pareto(frontier);
    CHECK(optimum(more_options).value_or(INT64_MAX) <= before);
  }
}

TEST_CASE("names and order change no optimum") {
  std::mt19937_64 random(14);
  int feasible = 0;
  for (int i = 0; i < cases(1000); ++i) {
    const chain::Program program = random_program(random, {.spend_limit = i % 3 == 0, .twins = i % 2});
    const std::optional<std::int64_t> before = optimum(program);
    INFO("case " << i);
    REQUIRE(optimum(renumbered(program, random)) == before);
    if (before) ++feasible;
  }
  CHECK(feasible >= enough(300));
}

TEST_CASE("a deadline that passes anywhere is admitted, and the bound still holds") {
  std::mt19937_64 random(17);
  int ended = 0;
  int found = 0;
  for (int i = 0; i < cases(900); ++i) {
    const chain::Program program = random_program(random, {.spend_limit = i % 3 == 0});
    const std::optional<std::int64_t> best = optimum(program);
    int left = i % 45;
    chain::ProgramLimits limits;
    limits.timed = i % 2 == 0;
    limits.deadline = Deadline([&left] { return --left < 0; });
    const chain::ProgramResult result = chain::solve(program, limits);
    INFO("case " << i);
    if (!result.finished) REQUIRE(limits.deadline.is_missed());
    if (!result.finished) ++ended;
    if (!best) {
      CHECK(result.chains.empty());
      continue;
    }
    CHECK(result.bound <= *best);
    if (!result.chains.empty()) CHECK(result.chains.front().time >= *best);
    if (!result.finished && !result.chains.empty()) ++found;
    if (result.finished) CHECK(result.chains.front().time == *best);
  }
  CHECK(ended >= enough(100));
  CHECK(found > 0);
}

TEST_CASE("a spent budget is admitted, and the bound still holds") {
  std::mt19937_64 random(13);
  int ended = 0;
  for (int i = 0; i < cases(600); ++i) {
    const chain::Program program = random_program(random, {});
    const std::optional<std::int64_t> best = optimum(program);
    chain::ProgramLimits limits;
    limits.label_budget = 6;
    const chain::ProgramResult result = chain::solve(program, limits);
    if (!result.finished) ++ended;
    if (!best) continue;
    CHECK(result.bound <= *best);
    if (!result.chains.empty()) CHECK(result.chains.front().time >= *best);
    if (result.finished) CHECK(result.chains.front().time == *best);
  }
  CHECK(ended > 0);
}
