// Several model chunks a stage: the search against a brute force, timetables against the event-driven simulator, and
// what the closed form is worth beside it.
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

std::int64_t any(std::mt19937_64& random, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

// Those that Megatron-LM takes: what is left over of the microbatches is a group, too.
std::vector<MicrobatchGroup> groups_of(std::int64_t microbatches) {
  std::vector<MicrobatchGroup> groups;
  for (std::int64_t group = 2; group <= microbatches; ++group) {
    const std::int64_t rest = microbatches % group;
    groups.push_back({group, rest == 0 ? group : rest});
  }
  return groups;
}

// The same program with v chunks, which takes its numbers for those of passes.
void interleave(std::mt19937_64& random, bool sends_block, Program& program) {
  Interleaving& interleaving = program.interleaving;
  interleaving.chunks = any(random, 2, 4);
  interleaving.sends_block = sends_block;
  interleaving.groups = groups_of(program.microbatches);
  if (any(random, 0, 2) == 0 && interleaving.groups.size() > 1) interleaving.groups.resize(1);
  program.classic_warmup = true;
  program.microbatches *= interleaving.chunks;
  for (std::vector<Candidate>& frontier : program.frontiers) {
    for (Candidate& plan : frontier) plan.n_max *= any(random, 1, 3) * interleaving.chunks;
    frontier = prune::pareto(frontier);
  }
  interleaving.around.assign(program.keys, program.keys, {});
  for (Price& price : interleaving.around) {
    const Grid<Price>& prices = at(program.prices, any(random, 0, std::ssize(program.prices) - 1));
    price = prices(any(random, 0, program.keys - 1), any(random, 0, program.keys - 1));
  }
}

// Blocks take as long as others, or up to four times as long.
void weigh_blocks(std::mt19937_64& random, Program& program) {
  for (std::size_t option = 0; option < program.options.size(); ++option) {
    std::vector<std::int64_t> before{0};
    for (int block = 0; block < program.blocks; ++block) before.push_back(before.back() + any(random, 1, 4));
    program.work_before.add_row(before);
  }
}

// The closed form takes chunks for equally long.
bool has_equal_chunks(const Program& program, const Chain& chain) {
  return std::ranges::all_of(chain.stages, [&](const ChainStage& stage) {
    return (stage.last - stage.first) % program.interleaving.chunks == 0;
  });
}

}  // namespace

TEST_CASE("with several model chunks a stage the composer's optimum is the brute force's") {
  std::mt19937_64 random(53);
  int found = 0;
  int waits = 0;
  int larger_groups = 0;
  for (int i = 0; i < cases(3000); ++i) {
    Flavour flavour;
    flavour.spend_limit = i % 5 == 0;
    flavour.placement = i % 4 == 0;
    flavour.far_apart = i % 4 == 1;
    flavour.twins = i % 2;
    flavour.tight_memory = i % 3 > 0;
    Program program = random_program(random, flavour);
    interleave(random, i % 2 == 0, program);
    const auto truth = brute_force(program).time;
    ProgramLimits limits;
    limits.tuning.beam = i % 3 == 0 ? 0 : 4;
    limits.tuning.window_share = i % 2 == 0 ? 0.004 : 0.5;
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.finished);
    REQUIRE(result.chains.empty() == !truth.has_value());
    if (!truth) continue;
    ++found;
    const Chain& best = result.chains.front();
    REQUIRE(best.time == *truth);
    REQUIRE(result.bound <= *truth);
    std::int64_t latency = 2 * boundary_around(program, best).latency;
    for (std::size_t s = 0; s < best.stages.size(); ++s) {
      REQUIRE(held_by(program, best, s) <= best.stages[s].candidate.n_max);
      latency += best.stages[s].candidate.T;
      if (s + 1 < best.stages.size()) latency += 2 * boundary_after(program, best, s).latency;
    }
    waits += program.interleaving.wait_around(latency, best.group, best.period) > 0 ? 1 : 0;
    larger_groups += best.group > program.interleaving.least_group(std::ssize(best.stages)) ? 1 : 0;
  }
  CHECK(found >= enough(1200));
  CHECK(waits >= enough(100));
  CHECK(larger_groups >= enough(100));
}

TEST_CASE("bounds and cuts may be off without another optimum of several model chunks") {
  std::mt19937_64 random(59);
  for (int i = 0; i < cases(500); ++i) {
    Program program = random_program(random, {});
    interleave(random, i % 2 == 0, program);
    const auto truth = brute_force(program).time;
    ProgramLimits limits;
    limits.tuning.cuts.dominance = i % 3 != 0;
    limits.tuning.cuts.completion = i % 3 != 1;
    limits.tuning.cuts.knapsack = i % 3 != 2;
    limits.tuning.hard_search = 1;  // asks which periods hold any chain
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.chains.empty() == !truth.has_value());
    if (truth) REQUIRE(result.chains.front().time == *truth);
  }
}

TEST_CASE("timetables of several model chunks are what the simulator says, for chains and for changed ones") {
  std::mt19937_64 random(61);
  std::mt19937_64 weights(67);
  int better = 0;
  std::vector<double> shares;
  for (int i = 0; i < cases(3000); ++i) {
    Flavour flavour;
    flavour.most_microbatches = i % 2 == 0 ? 9 : 24;
    flavour.tight_memory = i % 3 == 0;
    Program program = random_program(random, flavour);
    interleave(random, i % 2 == 0, program);
    const bool is_uneven = i % 9 == 0;
    if (is_uneven) weigh_blocks(weights, program);
    ProgramLimits limits;
    limits.timed = true;
    const ProgramResult result = solve(program, limits);
    INFO("case " << i);
    REQUIRE(result.timed.empty() == result.chains.empty());
    std::int64_t fastest = INT64_MAX;
    for (const Chain& chain : result.chains) {
      const std::int64_t time = timetable(program, chain);
      REQUIRE(time == simulated_interleaved(program, chain));
      REQUIRE(time >= least_time(program, chain));
      fastest = std::min(fastest, time);
      if (!is_uneven && has_equal_chunks(program, chain)) {
        shares.push_back(static_cast<double>(time) / static_cast<double>(chain.time));
      }
    }
    for (const TimedChain& timed : result.timed) {
      REQUIRE(timed.time == simulated_interleaved(program, timed.chain));
      REQUIRE(timed.time >= least_time(program, timed.chain));
    }
    if (!result.timed.empty()) better += result.timed.front().time < fastest ? 1 : 0;
  }
  CHECK(better >= enough(30));
  REQUIRE(static_cast<int>(shares.size()) >= enough(100));
  std::ranges::sort(shares);
  CHECK(shares[shares.size() / 2] > 0.9);
  CHECK(shares[shares.size() / 2] < 1.02);
}

TEST_CASE("a chain with another group takes what it takes where there is no other group") {
  std::mt19937_64 random(63);
  int regrouped = 0;
  int refused = 0;
  for (int i = 0; i < cases(2000); ++i) {
    Flavour flavour;
    flavour.tight_memory = i % 3 == 0;
    Program program = random_program(random, flavour);
    interleave(random, i % 2 == 0, program);
    const ProgramResult result = solve(program, {});
    if (result.chains.empty()) continue;
    INFO("case " << i);
    for (const MicrobatchGroup& group : groups_of(program.microbatches / program.interleaving.chunks)) {
      Program alone = program;
      std::erase_if(alone.interleaving.groups,
                    [&](const MicrobatchGroup& other) { return other.microbatches != group.microbatches; });
      Chain expected = result.chains.front();
      Chain chain = result.chains.front();
      const bool has_it = evaluate(alone, expected);
      REQUIRE(regroup(program, group.microbatches, chain) == has_it);
      ++(has_it ? regrouped : refused);
      if (!has_it) continue;
      REQUIRE(chain.group == group.microbatches);
      REQUIRE(chain.time == expected.time);
    }
  }
  CHECK(regrouped >= enough(1000));
  CHECK(refused >= enough(300));
}
