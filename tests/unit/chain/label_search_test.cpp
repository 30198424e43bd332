// Labels that must survive a better-looking one, by hand.
#include <map>
#include <utility>

#include "support/catch.hpp"
#include "tangram/chain/program.hpp"

using namespace tangram;
using namespace tangram::chain;

namespace {

// One class, one shape, hops of latency 1; only the slices given can run. T by (first, last).
Program chain_program(int blocks, std::int64_t microbatches, const std::map<std::pair<int, int>, Candidate>& slices) {
  Program program;
  program.blocks = blocks;
  program.microbatches = microbatches;
  program.inventory = {blocks};
  program.options = {{{{0, 1}}, 0}};
  program.keys = 1;
  program.signature = {blocks + 1, blocks + 1, -1};
  std::vector<std::vector<Candidate>> frontiers;
  for (int first = 0; first < blocks; ++first) {
    for (int last = first + 1; last <= blocks; ++last) {
      program.signature(first, last) = program.signatures++;
      const auto slice = slices.find({first, last});
      frontiers.push_back(slice == slices.end() ? std::vector<Candidate>{} : std::vector<Candidate>{slice->second});
    }
  }
  program.frontiers.add_row(frontiers);
  program.cut_kind.assign(static_cast<std::size_t>(blocks) + 1, 0);
  program.prices = {{1, {{1, 0}}}};
  return program;
}

}  // namespace

TEST_CASE("a longer latency that asks for less in flight is kept") {
  // Block 0 takes 16 and holds three microbatches. Behind it stand 15 and 10, or 10 and 16, both with two in flight.
  //   15, 10   Lat = 15 + 2 + 10 = 27   at P = 16: Q = max(16 + 15, 15 + 2 + 10) = 31, x_0 = 16 + 2 + 31 = 49 > 3 P
  //   10, 16   Lat = 10 + 2 + 16 = 28   at P = 16: Q = max(16 + 10, 10 + 2 + 16) = 28, x_0 = 16 + 2 + 28 = 46 <= 3 P
  // The first one has to wait for P = 17, where x_0 = 16 + 2 + (17 + 15) = 50 <= 51. With M = 10:
  //   45 + 9 * 17 = 198   against   46 + 9 * 16 = 190
  const Program program = chain_program(4, 10,
                                        {{{0, 1}, {16, 0, 16, 0, 3, 0}},
                                         {{1, 3}, {15, 0, 15, 0, 9, 0}},
                                         {{3, 4}, {10, 0, 10, 0, 9, 0}},
                                         {{1, 2}, {10, 0, 10, 0, 9, 0}},
                                         {{2, 4}, {16, 0, 16, 0, 9, 0}}});
  for (const int beam : {0, 4}) {
    ProgramLimits limits;
    limits.tuning.beam = beam;
    const ProgramResult result = solve(program, limits);
    REQUIRE(result.finished);
    REQUIRE_FALSE(result.chains.empty());
    CHECK(result.chains.front().time == 190);
    CHECK(result.chains.front().period == 16);
    CHECK(result.chains.front().in_flight == std::vector<std::int64_t>{3, 2, 1});
  }
}

TEST_CASE("the bound counts what the first stage synchronises, and its step") {
  // One stage that takes 10, synchronises for 40 more and steps in 5. With M = 4 at P = 10: 50 + 3 * 10 + 5 = 85, of
  // which the bound gives one nanosecond for rounding. A second stage, after it, hides 20 of its own sync:
  //   A = max( 30 + 3 + 1 , 50 + 10 + 2 ) = 62,   t = 62 + 3 * 10 + 5 = 97
  const Program one = chain_program(1, 4, {{{0, 1}, {10, 3, 50, 5, 9, 0}}});
  CHECK(solve(one, {}).chains.front().time == 85);
  CHECK(root_bound(one) == 84);
  const Program two = chain_program(2, 4, {{{0, 1}, {10, 3, 50, 5, 9, 0}}, {{1, 2}, {10, 3, 30, 1, 9, 0}}});
  CHECK(solve(two, {}).chains.front().time == 97);
  CHECK(root_bound(two) == 96);
}
