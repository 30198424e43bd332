// Bounds of whole blocks, by hand.
#include "whole_blocks.hpp"

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::relax;

namespace {

// Samples one by one on one GPU each, a third of a block's second forward.
BlockRate sharding_rate() {
  BlockRate block_rate;
  block_rate.forward = block_rate.forward_limit = 1.0 / 3;
  block_rate.backward = block_rate.backward_limit = 2.0 / 3;
  block_rate.update = 1000;  // all stages shard
  return block_rate;
}

RateProblem sharded_problem(const BlockRate& block_rate, double gpus, double blocks, std::int64_t batch) {
  return {{{block_rate}}, {gpus}, {blocks, 0}, batch, 0.5};
}

// The search of prices and times stops a little below.
constexpr double kFound = 0.99;

}  // namespace

TEST_CASE("a stage runs whole microbatches of whole blocks") {
  // 6 samples of 1 block of 1 s on 4 GPUs: 1.5 s of work each, but within less than 2 s a GPU runs one sample.
  const double t = whole_blocks_bound(sharded_problem(sharding_rate(), 4, 1, 6), 1.5);
  CHECK(t <= 2);
  CHECK(t >= 2 * kFound);
  // On 6 GPUs, one round.
  CHECK(whole_blocks_bound(sharded_problem(sharding_rate(), 6, 1, 6), 0.9) <= 1);
  // 2 blocks for each of 3 samples, 3 GPUs: all at once, 2 s.
  CHECK(whole_blocks_bound(sharded_problem(sharding_rate(), 3, 2, 3), 1.5) <= 2);
}

TEST_CASE("what is proven already is never lost") {
  CHECK(whole_blocks_bound(sharded_problem(sharding_rate(), 4, 1, 6), 3) == 3);
  CHECK(whole_blocks_bound({{{}}, {8}, {1, 0}, 4, 0.5}, 3) == 3);
}

TEST_CASE("parameters are gathered after the step where memory wants them sharded") {
  // 4 samples at once on 4 GPUs, each its own node; a block's state needs 4 of them. Half of the parameters, 0.5 of
  // what gradients take, come from other nodes even if there were only just more than 2: 1 s + 0.5 * 0.5 * 0.3 s.
  // Gradients hide under backward. All four would gather three quarters.
  BlockRate block_rate = sharding_rate();
  block_rate.dense_sync = 0.3;
  block_rate.held = 1;
  block_rate.room = 0.25;
  const double t = whole_blocks_bound(sharded_problem(block_rate, 4, 1, 4), 1);
  CHECK(t >= 1.075 * kFound);
  CHECK(t <= 1 + 0.5 * 0.75 * 0.3);
  // A runtime that shards nothing steps on all of them.
  block_rate.update = 0.01;
  CHECK(whole_blocks_bound(sharded_problem(block_rate, 4, 1, 4), 1) <= 1.01 + 1e-9);
}

TEST_CASE("gradients that outlast backward count at the front, filling behind") {
  // 2 blocks, 2 microbatches: gradients take 2 s a block, of which the last backward hides at most 2/3 s. One stage on
  // each of 2 GPUs needs 2 s and 1 s to fill; a GPU alone for a sample needs 2 s and 2 * (2 - 2/3) s at half of what
  // one microbatch proves.
  BlockRate block_rate = sharding_rate();
  block_rate.dense_sync = 4;
  const double with = whole_blocks_bound(sharded_problem(block_rate, 2, 2, 2), 2);
  block_rate.dense_sync = 0;
  const double without = whole_blocks_bound(sharded_problem(block_rate, 2, 2, 2), 2);
  CHECK(without <= 2 * (1 + 1e-9));
  CHECK(with >= 2.5);
  CHECK(with <= 3);
}

TEST_CASE("blocks that do not fit need more stages") {
  // 4 blocks, one sample: 4 s, by one GPU. Where a GPU holds one of them, four GPUs take as long; two never do.
  BlockRate block_rate = sharding_rate();
  block_rate.kept = 1;
  block_rate.room = 1;
  CHECK(whole_blocks_bound(sharded_problem(block_rate, 4, 4, 1), 3.9) <= 4);
  CHECK(whole_blocks_bound(sharded_problem(block_rate, 2, 4, 1), 3.9) >= 7);
}
