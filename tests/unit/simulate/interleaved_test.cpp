// Interleaved 1F1B worked out by hand, to the nanosecond. Fa3@20-30 reads: forward of microbatch 3 through the first
// chunk of the model runs from 20 to 30; with two stages of two chunks, stage 0 holds chunks a and c, stage 1 b and d.
#include "unit/simulate/fixtures.hpp"

using namespace tangram;
using namespace tangram::simulate;
using namespace tangram::simulate::fixtures;
using namespace tangram::literals;

namespace {

/// `stages` times (forward, backward) of each chunk, latency after each stage, Megatron-LM's warm-up.
SimPipeline interleaved(const std::vector<std::vector<SimChunk>>& stages, std::int64_t microbatches,
                        std::int64_t latency = 0, std::int64_t occupancy = 0) {
  SimPipeline pipeline;
  pipeline.kind = ScheduleKind::kInterleaved;
  pipeline.microbatches = microbatches;
  for (const std::vector<SimChunk>& chunks : stages) {
    SimStage next = stage(0, 0, 0, latency, occupancy);
    next.parts[0].chunks = chunks;
    pipeline.stages.push_back(next);
  }
  return with_classic_warmups(pipeline);
}

SimPipeline equal_chunks(std::size_t stages, std::size_t chunks, std::int64_t microbatches, std::int64_t latency = 0) {
  const std::vector<SimChunk> stage_chunks(chunks, SimChunk{10_ns, 20_ns});
  return interleaved(std::vector<std::vector<SimChunk>>(stages, stage_chunks), microbatches, latency);
}

}  // namespace

TEST_CASE("interleaved: two stages of two chunks, event by event") {
  // Chunks of 10 + 20, M = 4 in groups of 2, warm-up 2 + 2 = 4 on stage 0 and 2 on stage 1:
  //   stage 0: Fa0@0-10 Fa1@10-20 Fc0@20-30 Fc1@30-40 | Fa2@40-50 Bc0@60-80 Fa3@80-90 Bc1@90-110 Fc2@110-120
  //            Ba0@120-140 Fc3@140-150 Ba1@150-170 | Bc2@180-200 Bc3@210-230 Ba2@230-250 Ba3@250-270
  //   stage 1: Fb0@10-20 Fb1@20-30 | Fd0@30-40 Bd0@40-60 Fd1@60-70 Bd1@70-90 Fb2@90-100 Bb0@100-120 Fb3@120-130
  //            Bb1@130-150 Fd2@150-160 Bd2@160-180 Fd3@180-190 Bd3@190-210 | Bb2@210-230 Bb3@230-250
  // That is M v t + (p - 1) t = 8 x 30 + 30, where 1F1B takes 4 x 60 + 60 = 300.
  const Result result = simulate::simulate(Schedule{{equal_chunks(2, 2, 4)}}, true);
  REQUIRE_FALSE(result.deadlock);
  const auto start = [&](EventKind kind, int s, int chunk, std::int64_t m) {
    return find(result, kind, s, m, 0, 0, chunk).start;
  };
  CHECK(start(EventKind::kForward, 0, 0, 1) == 10_ns);
  CHECK(start(EventKind::kForward, 0, 1, 0) == 20_ns);
  CHECK(start(EventKind::kForward, 0, 0, 2) == 40_ns);
  CHECK(start(EventKind::kBackward, 0, 1, 0) == 60_ns);
  CHECK(start(EventKind::kForward, 0, 0, 3) == 80_ns);
  CHECK(start(EventKind::kBackward, 0, 1, 1) == 90_ns);
  CHECK(start(EventKind::kForward, 0, 1, 2) == 110_ns);
  CHECK(start(EventKind::kBackward, 0, 0, 0) == 120_ns);
  CHECK(start(EventKind::kBackward, 0, 0, 1) == 150_ns);
  CHECK(start(EventKind::kBackward, 0, 1, 2) == 180_ns);
  CHECK(start(EventKind::kBackward, 0, 1, 3) == 210_ns);
  CHECK(start(EventKind::kBackward, 0, 0, 3) == 250_ns);
  CHECK(start(EventKind::kForward, 1, 0, 1) == 20_ns);
  CHECK(start(EventKind::kForward, 1, 1, 0) == 30_ns);
  CHECK(start(EventKind::kBackward, 1, 1, 0) == 40_ns);
  CHECK(start(EventKind::kForward, 1, 0, 2) == 90_ns);
  CHECK(start(EventKind::kBackward, 1, 0, 0) == 100_ns);
  CHECK(start(EventKind::kForward, 1, 1, 3) == 180_ns);
  CHECK(start(EventKind::kBackward, 1, 0, 2) == 210_ns);
  CHECK(start(EventKind::kBackward, 1, 0, 3) == 230_ns);
  // The activation of chunk b goes round to stage 0, the gradient of chunk c back to stage 1.
  CHECK(find(result, EventKind::kSendActivation, 1, 0, 0, 0, 0).end == 20_ns);
  CHECK(find(result, EventKind::kSendGradient, 0, 0, 0, 0, 1).end == 80_ns);
  CHECK(result.iteration == 270_ns);
  CHECK(result.stages[0].busy == 240_ns);
  CHECK(result.stages[0].idle == 30_ns);
  CHECK(result.stages[0].max_in_flight == 5);
  CHECK(result.stages[1].max_in_flight == 3);
}

TEST_CASE("interleaved: equal chunks without latency take M v t + (p - 1) t") {
  // The bubble is (p - 1) t, v times smaller than that of 1F1B with the same layers (arXiv 2104.04473, section 2.2).
  for (const std::size_t p : {2U, 4U}) {
    for (const std::size_t v : {2U, 3U}) {
      for (const std::int64_t groups : {1, 2, 3}) {
        const auto M = groups * static_cast<std::int64_t>(p);
        const auto t = static_cast<std::int64_t>(v) * M + static_cast<std::int64_t>(p) - 1;
        CAPTURE(p, v, M);
        CHECK(simulate::simulate(Schedule{{equal_chunks(p, v, M)}}).iteration == Nanoseconds(30 * t));
      }
    }
  }
}
