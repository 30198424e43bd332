// What ranks of context parallelism exchange for attention: a ring beside the kernels, all keys and values, or heads.
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/validity.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;
using model::ContextExchange;

namespace {

constexpr double kTokens = 2'048, kHidden = 4'096, kKeys = 1'024;  // a sample; of Llama 3 8B, keys of 8 heads

model::Model exchanging(ContextExchange exchange, double tokens = kTokens) {
  model::JobOverrides overrides;
  overrides.sequence_length = static_cast<std::int64_t>(tokens);
  model::Model model = shipped_model("llama-3-8b.yaml", overrides);
  model.job.context_exchange = exchange;
  model.job.fused_kernels = true;
  model.job.recompute_modules = {model::RecomputeModule::kCoreAttention};
  return model;
}

constexpr double kSlow = 1e9;  // bytes a second: latencies do not matter

cluster::DeviceShape slow_shape(int gpus) {
  cluster::DeviceShape shape = shape_of(round_gpu(), 1, gpus);
  shape.intra = {BytesPerSecond(kSlow), 0_us};
  return shape;
}

BlockTime time_of(ContextExchange exchange, int cp, const cluster::DeviceShape& shape, double tokens = kTokens) {
  const model::Model model = exchanging(exchange, tokens);
  return block_time(model.block(0), model.job, {.cp = cp}, 1, shape);
}

double collective(Collective kind, double bytes, int cp) {
  const cluster::DeviceShape shape = slow_shape(cp);
  return collective_seconds(kind, bytes, process_groups({.cp = cp}, shape).context, shape);
}

/// Of a layer whose attention holds more at a time than what is behind it.
ActivationBytes bytes_of(ContextExchange exchange, int cp) {
  model::Model model = exchanging(exchange);
  model.types.front().feed_forward.hidden = 128;
  return block_activation(model.block(0), model.job, {.cp = cp}, 1);
}

}  // namespace

TEST_CASE("context exchange: gathered keys and values are waited for, and their gradients go back") {
  const BlockTime time = time_of(ContextExchange::kAllGather, 4, slow_shape(4));
  const double bytes = 2 * kTokens * 2 * kKeys;  // two bytes of K and of V of all positions
  CHECK(time.communication.forward == Approx(collective(Collective::kAllGather, bytes, 4)));
  CHECK(time.communication.backward ==
        Approx(collective(Collective::kAllGather, bytes, 4) + collective(Collective::kReduceScatter, bytes, 4)));
  CHECK(time.overlapped.forward == 0);
}

TEST_CASE("context exchange: heads are exchanged for positions and back, whatever the number of ranks") {
  for (const int cp : {2, 8}) {
    const BlockTime time = time_of(ContextExchange::kAllToAll, cp, slow_shape(cp));
    const double rank = 2 * kTokens / cp;
    const double all = 2 * collective(Collective::kAllToAll, rank * kHidden, cp) +
                       2 * collective(Collective::kAllToAll, rank * kKeys, cp);
    CHECK(time.communication.forward == Approx(all));
    CHECK(time.communication.backward == Approx(all));
  }
}

TEST_CASE("context exchange: where there are fewer key-value heads than ranks, each has one") {
  const BlockTime time = time_of(ContextExchange::kAllToAll, 16, slow_shape(16));
  const double rank = 2 * kTokens / 16;
  CHECK(time.communication.forward == Approx(2 * collective(Collective::kAllToAll, rank * kHidden, 16) +
                                             2 * collective(Collective::kAllToAll, rank * 2 * kKeys, 16)));
  // Q and the repeated K and V are kept.
  const double kept = bytes_of(ContextExchange::kAllToAll, 16).none - bytes_of(ContextExchange::kRing, 16).none;
  CHECK(kept == Approx(rank * 2 * kKeys));
}

TEST_CASE("context exchange: one kernel attends where a ring has one for each step") {
  const cluster::DeviceShape fast = shape_of(a100(), 1, 8);
  const auto forward = [&](ContextExchange exchange, int cp) {
    return time_of(exchange, cp, fast, 65'536).compute.forward;
  };
  const double ring = forward(ContextExchange::kRing, 8);
  const double heads = forward(ContextExchange::kAllToAll, 8);
  const double alone = forward(ContextExchange::kRing, 1);
  CHECK(heads < ring);
  CHECK(heads > alone / 8);
}

TEST_CASE("context exchange: the ring is unlike the others hidden, and holds least") {
  for (const ContextExchange other : {ContextExchange::kAllGather, ContextExchange::kAllToAll}) {
    CHECK(bytes_of(other, 4).working > bytes_of(ContextExchange::kRing, 4).working);
    CHECK(bytes_of(other, 4).none == bytes_of(ContextExchange::kRing, 4).none);
    CHECK(bytes_of(other, 1).working == bytes_of(ContextExchange::kRing, 1).working);
    CHECK(time_of(other, 1, slow_shape(1)).compute.forward ==
          time_of(ContextExchange::kRing, 1, slow_shape(1)).compute.forward);
  }
}

TEST_CASE("context exchange: attention that is worked out again exchanges again") {
  for (const ContextExchange exchange : {ContextExchange::kAllGather, ContextExchange::kAllToAll}) {
    const BlockTime time = time_of(exchange, 4, slow_shape(4));
    CHECK(time.selective_compute > time.communication.forward);
    CHECK(time_of(exchange, 1, slow_shape(1)).selective_compute < time.communication.forward);
  }
}

TEST_CASE("context exchange: tp x cp divides heads that are exchanged, and key-value heads divide or are repeated") {
  model::Model model = exchanging(ContextExchange::kAllToAll);  // 32 heads, 8 of keys and values
  CHECK(why_unsupported(model, {.tp = 4, .cp = 8}, 1).empty());
  CHECK(why_unsupported(model, {.tp = 4, .cp = 16}, 1) == "32 attention heads cannot be divided by tp x cp = 64");
  CHECK_FALSE(repeats_heads(model, {.tp = 2, .cp = 4}));
  CHECK(repeats_heads(model, {.tp = 4, .cp = 4}));
  CHECK_FALSE(repeats_heads(model, {.tp = 16}));
  model.types.front().attention.kv_heads = 6;
  CHECK(why_unsupported(model, {.cp = 4}, 1) == "6 key-value heads cannot be divided by tp x cp = 4");
  model.job.context_exchange = ContextExchange::kRing;
  CHECK(why_unsupported(model, {.cp = 4}, 1).empty());
  CHECK_FALSE(repeats_heads(model, {.tp = 4, .cp = 4}));
}
