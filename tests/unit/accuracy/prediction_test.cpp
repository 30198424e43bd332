// Prices of chunks with fractions, and predictions that can be worked out from the times of one block.
#include "tangram/accuracy/prediction.hpp"

#include "slice_price.hpp"
#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::accuracy;
using namespace tangram::literals;
namespace samples = tangram::cost::samples;

namespace {

/// A pipeline of round GPUs (samples.hpp), one a stage, over free links: blocks of 1024 tokens and hidden 1024 alone,
/// `blocks` of them in each chunk, `chunks` chunks a stage.
Experiment round_pipeline(int stages, int chunks, int blocks, std::int64_t microbatches) {
  Experiment experiment;
  experiment.model = samples::model_of(samples::llama_block(1024, 8, 8, 4096, 1024), stages * chunks * blocks, 32'000);
  experiment.gpus = stages;
  experiment.microbatches = microbatches;
  for (int s = 0; s < stages; ++s) {
    Stage stage;
    Part part;
    part.shape = samples::shape_of(samples::round_gpu(), 1, 1);
    stage.parts = {part};
    for (int c = 0; c < chunks; ++c) {
      Chunk chunk;
      chunk.first = (c * stages + s) * blocks;
      chunk.last = chunk.first + blocks;
      stage.chunks.push_back(chunk);
    }
    stage.to_next = {BytesPerSecond(1e18), 0_ns};
    experiment.stages.push_back(stage);
  }
  return experiment;
}

struct BlockSeconds {
  double forward = 0;
  double backward = 0;
  [[nodiscard]] double both() const { return forward + backward; }
};

BlockSeconds block_seconds(const Experiment& experiment) {
  const auto time = cost::block_time(experiment.model.types.front(), experiment.model.job, {}, 1,
                                     samples::shape_of(samples::round_gpu(), 1, 1));
  return {time.compute.forward, time.compute.backward};
}

Prediction predicted(const Experiment& experiment) {
  auto prediction = predict(experiment, {});
  if (!prediction) FAIL(prediction.error().front().message);
  return *prediction;
}

/// Price of a chunk of some blocks, of which shares are recomputed.
SlicePrice price(double blocks, double full = 0, double selective = 0, bool ends = true) {
  Experiment experiment = round_pipeline(1, 1, 8, 1);
  const auto units = cost::unit_costs(experiment.model, experiment.stages[0].parts[0].shape, {}, 1);
  REQUIRE(units);
  Chunk chunk;
  chunk.last = blocks;
  chunk.embedding = chunk.head = ends;
  chunk.recomputed = full;
  chunk.selective = selective;
  return price_chunk(experiment, chunk, *units);
}

void check_mix(const SlicePrice& mixed, const SlicePrice& a, const SlicePrice& b, double of_b) {
  const auto between = [&](double x, double y) { return Approx(x + of_b * (y - x)); };
  CHECK(mixed.forward == between(a.forward, b.forward));
  CHECK(mixed.backward == between(a.backward, b.backward));
  CHECK(mixed.sync == between(a.sync, b.sync));
  CHECK(mixed.step == between(a.step, b.step));
  CHECK(mixed.static_memory == between(a.static_memory, b.static_memory));
  CHECK(mixed.activation == between(a.activation, b.activation));
  CHECK(mixed.gradient_volume == between(a.gradient_volume, b.gradient_volume));
  CHECK(mixed.transient == std::max(a.transient, b.transient));
}

}  // namespace

TEST_CASE("a fraction of a block is priced by the line between whole ones") {
  check_mix(price(2.25), price(2), price(3), 0.25);
  check_mix(price(0.5), price(0), price(1), 0.5);
  check_mix(price(7.0 / 3 + 2.0 / 3), price(3), price(3), 0);
  CHECK(price(3).forward > price(2).forward);
  CHECK(price(0, 0, 0, false).forward == 0);
}

TEST_CASE("blocks recomputed in different ways are priced by their shares") {
  check_mix(price(4, 1, 0), price(4), price(4, 4, 0), 0.25);
  check_mix(price(4, 0, 2), price(4), price(4, 0, 4), 0.5);
  check_mix(price(4, 1, 3), price(4, 0, 4), price(4, 4, 0), 0.25);
  CHECK(price(4, 4, 0).backward > price(4).backward);
  CHECK(price(4, 4, 0).activation < price(4).activation);
}

TEST_CASE("one stage runs its microbatches one after the other") {
  const Experiment experiment = round_pipeline(1, 1, 4, 3);
  const Prediction prediction = predicted(experiment);
  const double busy = 3 * 4 * block_seconds(experiment).both();
  CHECK(prediction.iteration_s == Approx(busy + prediction.step_s));
  CHECK(prediction.step_s > 0);
  CHECK(prediction.sync_s == 0);
  CHECK(prediction.provenance == cost::Provenance::kModelled);
}

TEST_CASE("a pipeline waits for its depth") {
  // 1F1B of S equal stages: (M + S - 1) (f + w); the busiest stage works M of these.
  const Experiment experiment = round_pipeline(3, 1, 2, 5);
  const Prediction prediction = predicted(experiment);
  const double stage = 2 * block_seconds(experiment).both();
  CHECK(prediction.iteration_s == Approx((5 + 2) * stage + prediction.step_s).epsilon(1e-5));
  CHECK(prediction.bubble == Approx(1 - 5 * stage / prediction.iteration_s).epsilon(1e-3));
}

TEST_CASE("interleaving divides the wait by the chunks") {
  // (M v + S - 1) (f + w) of one chunk.
  const Experiment experiment = round_pipeline(2, 2, 1, 4);
  const Prediction prediction = predicted(experiment);
  const double chunk = block_seconds(experiment).both();
  CHECK(prediction.iteration_s == Approx((4 * 2 + 1) * chunk + prediction.step_s).epsilon(1e-5));
}

TEST_CASE("microbatches pass a chunk in groups") {
  // Five microbatches in groups of four: the fifth would come to its second chunk before it has left the last stage.
  Experiment experiment = round_pipeline(4, 3, 1, 5);
  const auto refused = predict(experiment, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().message == "the schedule cannot finish with this number of microbatches");
  experiment.microbatch_group = 5;
  const Prediction prediction = predicted(experiment);
  const double chunk = block_seconds(experiment).both();
  CHECK(prediction.iteration_s == Approx((5 * 3 + 3) * chunk + prediction.step_s).epsilon(1e-5));
}

TEST_CASE("memory is that of the fullest stage under its schedule") {
  const auto peak = [](const Experiment& experiment, double held) {
    const auto units = cost::unit_costs(experiment.model, experiment.stages[0].parts[0].shape, {}, 1);
    REQUIRE(units);
    SlicePrice all;
    for (const Chunk& chunk : experiment.stages[0].chunks) all.add(price_chunk(experiment, chunk, *units), 1);
    return all.static_memory + all.transient + held * all.activation;
  };
  const auto check = [&](const Experiment& experiment, double held) {
    const Prediction prediction = predicted(experiment);
    CHECK(prediction.peak_allocated == Approx(peak(experiment, held)));
    CHECK(prediction.peak_memory == Approx(peak(experiment, held) * (1 + kFragmentation) + kContextBytes));
    CHECK(prediction.usable_share == Approx(peak(experiment, held) / (100.0 * 1024 * 1024 * 1024)));
  };
  check(round_pipeline(1, 1, 2, 8), 1);
  check(round_pipeline(3, 1, 2, 8), 3);    // the first stage is two ahead of its first backward
  check(round_pipeline(3, 1, 2, 2), 2);    // there are no more
  check(round_pipeline(2, 2, 1, 4), 2.5);  // 2 (S - 1) + (v - 1) S + 1 chunks of two
  Experiment grouped = round_pipeline(2, 2, 1, 6);
  grouped.microbatch_group = 3;
  check(grouped, 3);  // 2 (S - 1) + (v - 1) G + 1 chunks of two
}

TEST_CASE("a transfer between stages is waited for twice") {
  // One microbatch of 1024 x 1024 values in 2 bytes over 1 GB/s and 1 ms: forward and back.
  Experiment experiment = round_pipeline(2, 1, 1, 1);
  const double free = predicted(experiment).iteration_s;
  experiment.stages[0].to_next = {BytesPerSecond(1e9), Nanoseconds(1'000'000)};
  const cost::BoundaryCost boundary =
      cost::boundary_cost(Bytes(2 * 1024 * 1024), experiment.stages[0].to_next, 1, 1, 1, 1);
  CHECK(predicted(experiment).iteration_s == Approx(free + 2 * to_seconds(boundary.latency)).epsilon(1e-4));
  CHECK(to_seconds(boundary.latency) > 3e-3);
}

TEST_CASE("transfers that block take their stage's time") {
  // Two equal stages, c the boundary: T = f + w + c in both, (M + 1) T. Beside compute the same transfers cost less.
  Experiment experiment = round_pipeline(2, 1, 1, 8);
  experiment.stages[0].to_next = {BytesPerSecond(1e12), Nanoseconds(100'000)};
  const double c =
      to_seconds(cost::boundary_cost(Bytes(2 * 1024 * 1024), experiment.stages[0].to_next, 1, 1, 1, 1).latency);
  const Prediction beside = predicted(experiment);
  experiment.blocking_transfers = true;
  const Prediction blocking = predicted(experiment);
  const double stage = block_seconds(experiment).both() + c;
  CHECK(blocking.iteration_s == Approx((8 + 1) * stage + blocking.step_s).epsilon(1e-3));
  CHECK(beside.iteration_s < blocking.iteration_s);
}

TEST_CASE("software without overlap waits for gradients and transfers") {
  Experiment experiment = round_pipeline(2, 2, 1, 4);
  restrict_methods(experiment, {true, false});
  CHECK_FALSE(experiment.overlaps_sync);
  CHECK(experiment.blocking_transfers);
  CHECK_FALSE(experiment.stages[1].parts[0].shape.methods.overlapped);
  CHECK(experiment.stages[1].parts[0].shape.methods.hierarchical);
  CHECK(predicted(experiment).iteration_s > 0);  // chunks that go round, over free links
}

TEST_CASE("replicas on two GPU types reduce their gradients in one ring") {
  // One GPU in each of four nodes, two of each type, 10 and 40 GB/s: a ring of four at 10 GB/s.
  Experiment experiment = round_pipeline(1, 1, 2, 1);
  experiment.overlaps_sync = false;
  Part fast = experiment.stages[0].parts[0];
  fast.shape = samples::shape_of(samples::round_gpu(), 2, 1);
  fast.shape.inter = {BytesPerSecond(40e9), 5_us};
  fast.degrees.dp = fast.samples = 2;
  Part slow = fast;
  slow.shape.device.name = "other";
  slow.shape.inter = {BytesPerSecond(10e9), 8_us};
  experiment.stages[0].parts = {fast, slow};
  experiment.microbatch = 4;
  const auto units = cost::unit_costs(experiment.model, fast.shape, fast.degrees, fast.samples);
  REQUIRE(units);
  const double volume = price_chunk(experiment, experiment.stages[0].chunks[0], *units).gradient_volume;
  cluster::DeviceShape ring = slow.shape;
  ring.nodes = 4;
  const double seconds = cost::collective_seconds(cost::Collective::kAllReduce, volume, {1, 4, 1}, ring);
  CHECK(predicted(experiment).sync_s == Approx(seconds).epsilon(1e-6));
}

TEST_CASE("gradients hide under backward only where software reduces beside it") {
  Experiment experiment = round_pipeline(1, 1, 2, 1);
  Part& part = experiment.stages[0].parts[0];
  part.shape = samples::shape_of(samples::round_gpu(), 1, 4);
  part.degrees.dp = 4;
  part.samples = 4;
  experiment.microbatch = 4;
  experiment.overlaps_sync = false;
  const Prediction after = predicted(experiment);
  experiment.overlaps_sync = true;
  const Prediction beside = predicted(experiment);
  CHECK(after.sync_s > 0);
  CHECK(beside.sync_s < after.sync_s);
  CHECK(after.iteration_s - beside.iteration_s == Approx(after.sync_s - beside.sync_s).epsilon(1e-6));
}

TEST_CASE("degrees that the model refuses are told") {
  Experiment experiment = round_pipeline(1, 1, 2, 1);
  Part& part = experiment.stages[0].parts[0];
  part.shape = samples::shape_of(samples::round_gpu(), 1, 3);
  part.degrees.tp = 3;
  const auto prediction = predict(experiment, {});
  REQUIRE_FALSE(prediction);
  CHECK(prediction.error().front().code == "not-expressible");
  CHECK_FALSE(prediction.error().front().message.empty());
}

TEST_CASE("schedules without an end in sight are refused") {
  const auto prediction = predict(round_pipeline(2, 1, 1, 1'000'000'000), {});
  REQUIRE_FALSE(prediction);
  CHECK(prediction.error().front().message ==
        "1000000000 microbatches through 2 pipeline positions are too many to simulate");
}

TEST_CASE("memory holds 16-bit gradients beside wide ones, and buffers of communicators, where software does") {
  Experiment experiment = round_pipeline(1, 1, 2, 4);
  const double plain = predicted(experiment).peak_allocated;
  experiment.keeps_both_gradients = true;
  const double parameters = 2 * static_cast<double>(model::parameters(experiment.model.types.front()).total());
  const Prediction both = predicted(experiment);
  CHECK(both.peak_allocated - plain == Approx(2 * parameters));
  experiment.communicators = 3;
  CHECK(predicted(experiment).peak_allocated == both.peak_allocated);
  CHECK(predicted(experiment).peak_memory - both.peak_memory == Approx(3 * kCommunicatorBytes));
}
