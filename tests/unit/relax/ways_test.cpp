// What a block takes of a stage, by hand.
#include "ways.hpp"

#include "support/catch.hpp"

using namespace tangram::relax;

namespace {

// One sample on one GPU, 1 s, a third of it forward; gradients cross the network in 8 s where there is no end of
// copies.
Pace second_pace() {
  Pace pace;
  pace.forward = pace.forward_limit = 1.0 / 3;
  pace.backward = pace.backward_limit = 2.0 / 3;
  pace.update = 4;
  pace.dense_sync = 8;
  return pace;
}

// Of `microbatches`, two samples at a time in all.
Way way_at(const Pace& pace, std::int64_t microbatches) {
  const PaceProblem problem{{{pace}}, {2}, {1, 0}, 2 * microbatches, 0.5};
  const auto ways = ways_of(problem, merged({pace}, 0), {microbatches, microbatches}, 1, 1000);
  REQUIRE(ways.size() == 1);
  return ways.front();
}

}  // namespace

TEST_CASE("gradients hide under as much of the last backward as every ZeRO stage allows") {
  // Two copies: half of 8 s. 4 s - 0.8 * 2/3 s, over 4 microbatches.
  const Way four = way_at(second_pace(), 4);
  CHECK(four.sharded.passes == Approx(1));
  CHECK(four.sharded.with_sync == Approx(1 + (4 - 0.8 * 2 / 3) / 4));
  CHECK(four.whole.passes == Approx(1 + 4.0 / 4));
  CHECK(four.whole.with_sync == Approx(2 + (4 - 0.8 * 2 / 3) / 4));
  // ZeRO-2 with few microbatches: (4 - 2/3) s over two, half of it with one.
  CHECK(way_at(second_pace(), 2).sharded.with_sync == Approx(1 + (4 - 2.0 / 3) / 2));
  CHECK(way_at(second_pace(), 1).sharded.with_sync == Approx(1 + (4 - 2.0 / 3) / 2));
  // Short ones hide.
  Pace quick = second_pace();
  quick.dense_sync = 0.5;
  CHECK(way_at(quick, 4).sharded.with_sync == Approx(1));
  CHECK(way_at(quick, 1).sharded.with_sync == Approx(1));
}

TEST_CASE("degrees with the same GPUs and samples are as good as the best of them in everything") {
  Pace a = second_pace();
  Pace b = second_pace();
  a.forward = 0.2;
  b.backward = 0.7;
  b.kept = 1;
  const auto both = merged({a, b}, 0);
  REQUIRE(both.size() == 1);
  CHECK(both.front().total == Approx(0.2 + 2.0 / 3));
  CHECK(both.front().pace.backward == Approx(0.7));
  CHECK(both.front().pace.kept == 0);
  b.gpus = 2;
  CHECK(merged({a, b}, 0).size() == 2);
  CHECK(merged({a, b}, 1).empty());
}

TEST_CASE("ways that others beat in everything are left out") {
  Pace slow = second_pace();
  slow.gpus = 2;
  slow.dense_sync = 9;
  const PaceProblem problem{{{second_pace(), slow}}, {4}, {1, 0}, 8, 0.5};
  CHECK(ways_of(problem, merged(problem.paces.front(), 0), {4, 4}, 1, 1000).size() == 1);
  // What takes longer than there is time for is none.
  CHECK(ways_of(problem, merged(problem.paces.front(), 0), {4, 4}, 1, 3.9).empty());
}
