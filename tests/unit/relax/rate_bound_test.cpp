// Bounds of block rates, by hand.
#include "rate_bound.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::relax;

namespace {

// One sample at a time on so many GPUs, a third of it forward.
BlockRate rate_of_block(double gpus, double seconds) {
  BlockRate block_rate;
  block_rate.gpus = gpus;
  block_rate.forward = block_rate.forward_limit = seconds / 3;
  block_rate.backward = block_rate.backward_limit = seconds * 2 / 3;
  return block_rate;
}

RateProblem problem_of(std::vector<BlockRate> block_rates, double gpus, double blocks, std::int64_t batch) {
  return {{std::move(block_rates)}, {gpus}, {blocks, 0}, batch};
}

}  // namespace

TEST_CASE("one sample passes its blocks one after the other") {
  // 12 blocks of 1 s; a second sample would need a second GPU at the same time, but one microbatch is all there is.
  CHECK(rate_bound(problem_of({rate_of_block(1, 1)}, 8, 12, 1)) == Approx(12));
  // Twice the GPUs a sample make it 0.6 s a block, four of them do not fit.
  CHECK(rate_bound(problem_of({rate_of_block(1, 1), rate_of_block(2, 0.6)}, 8, 12, 1)) == Approx(7.2));
}

TEST_CASE("a pipeline has to be filled") {
  // 64 samples of 10 blocks of 1 s on 40 GPUs are 16 s of work. Each sample takes 10 s to pass, whatever is done: with
  // the share x = 10 / t of the iteration, GPUs do at best x / -ln(1 - x) of their work, t = 16 * -ln(1 - x) / x, or
  // -ln(1 - x) = 10 / 16: x = 0.4647, t = 21.52. Whole stages with 64 microbatches and fewer cost a little less; no
  // number of microbatches is as good as to let all samples run at once where GPUs are: 40 of them do, two rounds.
  const double t = rate_bound(problem_of({rate_of_block(1, 1)}, 40, 10, 64));
  CHECK(t > 16);
  CHECK(t <= 20);  // two microbatches of 32 samples, one stage: 2 * 10 s
}

TEST_CASE("few passes long, many passes cheap") {
  // With ever more samples the fill no longer counts: what is left is the cheapest work, 1 GPU-second a block.
  const std::vector<BlockRate> both{rate_of_block(1, 1), rate_of_block(4, 0.5)};
  const double many = rate_bound(problem_of(both, 16, 8, 16'000));
  CHECK(many >= 8000 * 0.98);
  CHECK(many <= 8000 * 1.001);
  // With 16 samples on 16 GPUs the cheap way takes 8 s and nothing is faster: the other needs twice the GPU-seconds.
  CHECK(rate_bound(problem_of(both, 16, 8, 16)) <= 8.0 * 1.001);
  CHECK(rate_bound(problem_of(both, 16, 8, 16)) >= 8.0 * 0.8);
  // One sample: 8 * 0.5 s.
  CHECK(rate_bound(problem_of(both, 16, 8, 1)) == Approx(4));
}

TEST_CASE("gradients cross the network once wherever several copies hold a block") {
  // A quarter of a node a copy, 8 copies: two nodes, of whose gradients half come from outside. One copy: nothing does.
  BlockRate block_rate = rate_of_block(2, 1);
  block_rate.dense_span = 8;
  block_rate.dense_sync = 10;
  CHECK(block_rate.sync(8) == Approx(5));
  CHECK(block_rate.sync(4) == Approx(0));
  CHECK(block_rate.sync(1) == Approx(0));
  // Experts that are dealt out to 32 GPUs have one copy there.
  block_rate.expert_span = 32;
  block_rate.expert_sync = 3;
  CHECK(block_rate.sync(16) == Approx(10 * 0.75));
  CHECK(block_rate.sync(32) == Approx(10 * 0.875 + 3 * 0.5));
  // It never lowers a bound.
  CHECK(rate_bound(problem_of({block_rate}, 16, 4, 8)) >=
        rate_bound(problem_of({rate_of_block(2, 1)}, 16, 4, 8)) * 0.999);
}

TEST_CASE("what no class can run takes for ever") { CHECK(std::isinf(rate_bound({{{}}, {8}, {1, 0}, 4}))); }
