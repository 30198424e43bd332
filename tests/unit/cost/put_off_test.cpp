// What zero bubble puts off of a backward pass, beside published figures and products counted by hand.
#include "tangram/cost/put_off.hpp"

#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

PutOffCost put_off_of(const model::Model& model, const Degrees& degrees, int samples) {
  const auto units = unit_costs(model, shape_of(a100(), 1, degrees.gpus()), degrees, samples);
  REQUIRE(units);
  return put_off_cost(model, *units, model::signature(model, 0, model.block_count()));
}

}  // namespace

TEST_CASE("zero bubble, arXiv 2401.10241, table 1: a layer's weight gradients wait for 32 s b h bytes") {
  constexpr double kTokenValues = 2048.0 * 4 * 6144;
  const model::Model model = megatron_22b();
  CHECK(put_off_bytes(model.types.front(), model.job, tensor(1, false), 4) == Approx(32 * kTokenValues));
  // Heads and feed-forward columns are split; what four projections read or give of width h is not: 8 s b h.
  CHECK(put_off_bytes(model.types.front(), model.job, tensor(8, true), 4) == Approx(kTokenValues * (8 + 24.0 / 8)));
}

TEST_CASE("put off of grouped queries and gated feed-forwards, by hand") {
  // Llama-3-8B as in memory_test.cpp, tp 2, cp 2: 4096 tokens. A token: projections 4096 + 128 (16 + 4 + 4) and
  // 2048 + 4096; feed-forward 4096 + 2 * 7168 and 7168 + 4096.
  const model::Model model = model_of(llama_block(4096, 32, 8, 14336, 8192), 32, 128'256);
  Degrees degrees = tensor(2, true);
  degrees.cp = 2;
  CHECK(put_off_bytes(model.types.front(), model.job, degrees, 1) ==
        Approx(2 * 4096.0 * (4096 + 3072 + 2048 + 4096 + 4096 + 14336 + 7168 + 4096)));
}

TEST_CASE("weight gradients are a product of three, of blocks alone") {
  const model::Model model = model_of(llama_block(4096, 32, 8, 14336, 8192), 4, 128'256);
  const auto units = unit_costs(model, shape_of(a100(), 1, 1), tensor(1, false), 1);
  REQUIRE(units);
  const PutOffCost blocks = put_off_cost(model, *units, model::signature(model, 1, 3));
  const PutOffCost ends = put_off_cost(model, *units, model::signature(model, 2, 4));
  CHECK(blocks == ends);  // the head's are not put off
  const StageCost cost = stage_cost(*units, model::signature(model, 1, 3), {});
  // Less than half of backward: attention and norms have none. They take about as long as forward's products.
  CHECK(blocks.weight_gradient < cost.backward * 1 / 2);
  CHECK(blocks.weight_gradient > cost.backward * 1 / 4);
  CHECK(blocks.weight_gradient < cost.forward);
  CHECK(put_off_cost(model, *units, model::signature(model, 0, 4)).held == blocks.held * 2);
}

TEST_CASE("experts put off what they received, and the router's products") {
  // h 1024, 8 heads, 8 experts of 2048 (gated), top 2, s 1024; ep 4: received 2048 rows * imbalance.
  const model::Model model = model_of(moe_block(1024, 8, 8, 2048, 1024), 4, 32'000);
  Degrees degrees = data(4);
  degrees.ep = 4;
  const double attention = 1024.0 * (1024 + 3 * 1024 + 1024 + 1024);
  const double experts = 2048 * model::Job{}.routing_imbalance * (2 * 1024 + 3 * 2048) + 1024.0 * (1024 + 8);
  CHECK(put_off_bytes(model.types.front(), model.job, degrees, 1) == Approx(2 * (attention + experts)));
}

TEST_CASE("nothing is put off of frozen weights") {
  model::Model model = megatron_22b();
  for (model::BlockType& type : model.types) type.gradients.weights = false;
  const PutOffCost frozen = put_off_of(model, tensor(1, false), 1);
  CHECK(frozen.weight_gradient == Nanoseconds(0));
  CHECK(frozen.held == Bytes(0));
}

TEST_CASE("activations and what is put off peak where all are before their backward pass, or none is") {
  CHECK(put_off_peak(Bytes(10), Bytes(8), 4, 3) == Bytes(4 * 10 + 3 * 8));
  CHECK(put_off_peak(Bytes(2), Bytes(8), 4, 3) == Bytes(7 * 8));  // under full recompute
  for (std::int64_t activation : {0, 2, 8, 10}) {
    std::int64_t most = 0;
    for (std::int64_t before = 0; before <= 4; ++before) most = std::max(most, before * activation + (7 - before) * 8);
    CHECK(put_off_peak(Bytes(activation), Bytes(8), 4, 3).value() == most);
  }
}
