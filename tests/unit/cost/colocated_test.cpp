// Encoders on the GPUs of the language model: what a lane takes and keeps, beside published measurements.
#include "tangram/cost/colocated.hpp"

#include "support/catch.hpp"
#include "tangram/model/split.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;

namespace {

/// The vision encoder of 3B: 48 layers of 2304, as a model of its own; gradients of 2 bytes.
model::Model vision_3b() {
  const auto whole = model::read_model(
      "schema: tangram.model/1\nname: m\narchitecture:\n  vocabulary: 128000\n  hidden: 8192\n  layers: 80\n  heads: "
      "64\n"
      "  ffn_hidden: 28672\n  encoders:\n    - {name: vision, hidden: 2304, layers: 48, heads: 16, ffn_hidden: 9216, "
      "gated: false, tokens_in: 4096, tokens_out: 4096}\n"
      "training: {sequence_length: 8192, global_batch_samples: 16}\n",
      "m.yaml");
  REQUIRE(whole);
  model::Model encoder = model::encoder_of(*whole, 0);
  encoder.job.gradient_bytes = 2;
  return encoder;
}

EncoderCost on_64_gpus(int tp, std::int64_t samples) {
  const auto cost = encoder_cost(vision_3b(), 4096 * 8192 * 2, shape_of(round_gpu(), 8, 8),
                                 {tp, tp > 1, true, RecomputeMode::kFull}, samples, 64 / tp);
  REQUIRE(cost);
  return *cost;
}

double gigabytes(Bytes bytes) { return bytes.as_double() / 1e9; }

}  // namespace

TEST_CASE("colocated: states of a narrower encoder take as much more memory as was measured") {
  // Peak memory of 3B+70B in three phases on 64 H100 with the encoder at tp 8, 4 and 2: 50.07, 51.61 and 54.73 GB
  // (github.com/yashaswikarnati/Megatron-LM, the benchmark of its author).
  const double tp8 = gigabytes(on_64_gpus(8, 1).static_memory);
  const double tp4 = gigabytes(on_64_gpus(4, 1).static_memory);
  const double tp2 = gigabytes(on_64_gpus(2, 1).static_memory);
  CHECK(tp4 - tp8 == Approx(51.61 - 50.07).epsilon(0.05));
  CHECK(tp2 - tp4 == Approx(54.73 - 51.61).epsilon(0.05));
}

TEST_CASE("colocated: a lane's passes take as long as its samples, and lanes share optimizer state alone") {
  const EncoderCost one = on_64_gpus(4, 1);
  const EncoderCost two = on_64_gpus(4, 2);
  CHECK(two.forward > one.forward);
  CHECK(two.forward <= one.forward * 2);
  CHECK(two.held == one.held * 2);
  CHECK(two.static_memory == one.static_memory);
  CHECK(slowed(one, 1.5).forward == ceil_to_nanoseconds(to_seconds(one.forward) * 1.5));
  CHECK(slowed(one, 1.5).held == one.held);
}

TEST_CASE("colocated: lanes lie inside a member") {
  const auto refused = encoder_cost(vision_3b(), 1, shape_of(round_gpu(), 1, 4), {8, true, true, {}}, 1, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "encoder-lanes");
}

TEST_CASE("colocated: what encoders hand over goes through the first stage, unless each lane is a replica of it") {
  EncoderHandover handover;
  handover.bytes = Bytes(67'000'000);
  handover.link = {BytesPerSecond(50e9), Nanoseconds(5'000)};
  handover.lanes = handover.replicas = 4;
  CHECK(handover_time(handover) == Nanoseconds(0));
  handover.stages = 2;
  CHECK(to_seconds(handover_time(handover)) == Approx(67e6 / (50e9 * kNetworkShare) + 5e-6));
  handover.lanes = 16;
  CHECK(to_seconds(handover_time(handover)) == Approx(67e6 / (50e9 * kNetworkShare) + 4 * 5e-6));
}

TEST_CASE("colocated: encoders add up, but for the buffers of the one that is at work") {
  EncoderCost sum = on_64_gpus(4, 1);
  const EncoderCost other = on_64_gpus(2, 1);
  sum += other;
  CHECK(sum.forward == on_64_gpus(4, 1).forward + other.forward);
  CHECK(sum.transient == std::max(on_64_gpus(4, 1).transient, other.transient));
  CHECK(sum.reserve() == sum.static_memory + sum.transient + sum.held);
}
