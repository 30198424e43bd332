// What a block takes of a stage, by hand.
#include "execution_modes.hpp"

#include "support/catch.hpp"

using namespace tangram::relax;

namespace {

// One sample on one GPU, 1 s, a third of it forward; gradients cross the network in 8 s where there is no end of
// copies.
BlockRate second_rate() {
  BlockRate block_rate;
  block_rate.forward = block_rate.forward_limit = 1.0 / 3;
  block_rate.backward = block_rate.backward_limit = 2.0 / 3;
  block_rate.update = 4;
  block_rate.dense_sync = 8;
  return block_rate;
}

// Of `microbatches`, two samples at a time in all.
ExecutionMode mode_at(const BlockRate& block_rate, std::int64_t microbatches) {
  const RateProblem problem{{{block_rate}}, {2}, {1, 0}, 2 * microbatches, 0.5};
  const auto modes = execution_modes_of(problem, merged({block_rate}, 0), {microbatches, microbatches}, 1, 1000);
  REQUIRE(modes.size() == 1);
  return modes.front();
}

}  // namespace

TEST_CASE("gradients hide under as much of the last backward as every ZeRO stage allows") {
  // Two copies: half of 8 s. 4 s - 0.8 * 2/3 s, over 4 microbatches.
  const ExecutionMode four = mode_at(second_rate(), 4);
  CHECK(four.sharded.passes == Approx(1));
  CHECK(four.sharded.with_sync == Approx(1 + (4 - 0.8 * 2 / 3) / 4));
  CHECK(four.whole.passes == Approx(1 + 4.0 / 4));
  CHECK(four.whole.with_sync == Approx(2 + (4 - 0.8 * 2 / 3) / 4));
  // ZeRO-2 with few microbatches: (4 - 2/3) s over two, half of it with one.
  CHECK(mode_at(second_rate(), 2).sharded.with_sync == Approx(1 + (4 - 2.0 / 3) / 2));
  CHECK(mode_at(second_rate(), 1).sharded.with_sync == Approx(1 + (4 - 2.0 / 3) / 2));
  // Short ones hide.
  BlockRate quick = second_rate();
  quick.dense_sync = 0.5;
  CHECK(mode_at(quick, 4).sharded.with_sync == Approx(1));
  CHECK(mode_at(quick, 1).sharded.with_sync == Approx(1));
}

TEST_CASE("degrees with the same GPUs and samples are as good as the best of them in everything") {
  BlockRate a = second_rate();
  BlockRate b = second_rate();
  a.forward = 0.2;
  b.backward = 0.7;
  b.kept = 1;
  const auto both = merged({a, b}, 0);
  REQUIRE(both.size() == 1);
  CHECK(both.front().total == Approx(0.2 + 2.0 / 3));
  CHECK(both.front().block_rate.backward == Approx(0.7));
  CHECK(both.front().block_rate.kept == 0);
  b.gpus = 2;
  CHECK(merged({a, b}, 0).size() == 2);
  CHECK(merged({a, b}, 1).empty());
}

TEST_CASE("modes that others beat in everything are left out") {
  BlockRate slow = second_rate();
  slow.gpus = 2;
  slow.dense_sync = 9;
  const RateProblem problem{{{second_rate(), slow}}, {4}, {1, 0}, 8, 0.5};
  CHECK(execution_modes_of(problem, merged(problem.block_rates.front(), 0), {4, 4}, 1, 1000).size() == 1);
  // What takes longer than there is time for is none.
  CHECK(execution_modes_of(problem, merged(problem.block_rates.front(), 0), {4, 4}, 1, 3.9).empty());
}
