// Interleaved 1F1B worked out by hand, to the nanosecond. Fa3@20-30 reads: forward of microbatch 3 through the first
// chunk of the model runs from 20 to 30; with two stages of two chunks, stage 0 holds chunks a and c, stage 1 b and d.
#include "unit/simulate/fixtures.hpp"

using namespace tangram;
using namespace tangram::simulate;
using namespace tangram::simulate::fixtures;
using namespace tangram::literals;

namespace {

/// Times of each stage's chunks, the same latency after each stage, Megatron-LM's warm-up.
SimPipeline interleaved(const std::vector<std::vector<SimChunk>>& stages, std::int64_t microbatches,
                        std::int64_t latency = 0) {
  SimPipeline pipeline;
  pipeline.kind = ScheduleKind::kInterleaved;
  pipeline.microbatches = microbatches;
  for (const std::vector<SimChunk>& chunks : stages) {
    SimStage next = stage(0, 0, 0, latency);
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

TEST_CASE("interleaved: a chunk with the embedding, one with the head, and a slower way round") {
  // a = 12 + 24, b = c = 10 + 20, d = 16 + 32; 3 one way from stage 0 to 1, 4 from 1 round to 0; M = 2:
  //   stage 0: Fa0@0-12 Fa1@12-24 Fc0@29-39 Fc1@41-51 | Bc0@93-113 Bc1@141-161 Ba0@161-185 Ba1@188-212
  //   stage 1: Fb0@15-25 Fb1@27-37 | Fd0@42-58 Bd0@58-90 Fd1@90-106 Bd1@106-138 | Bb0@138-158 Bb1@165-185
  // Bb0 could start when the gradient of Fc0 arrives at 117, but comes after Bd1. Bb1 waits for Bc1: 161 + 4.
  SimPipeline pipeline = interleaved({{{12_ns, 24_ns}, {10_ns, 20_ns}}, {{10_ns, 20_ns}, {16_ns, 32_ns}}}, 2, 3);
  pipeline.stages[1].latency = 4_ns;
  pipeline.stages[0].parts[0].exposed_sync = 5_ns;
  pipeline.stages[1].parts[0].optimizer_step = 2_ns;
  const Result result = simulate::simulate(Schedule{{pipeline}}, true);
  CHECK(find(result, EventKind::kForward, 0, 0, 0, 0, 1).start == 29_ns);
  CHECK(find(result, EventKind::kBackward, 1, 1, 0, 0, 1).start == 106_ns);
  CHECK(find(result, EventKind::kBackward, 1, 0, 0, 0, 0).start == 138_ns);
  CHECK(find(result, EventKind::kBackward, 1, 1, 0, 0, 0).start == 165_ns);
  CHECK(find(result, EventKind::kBackward, 0, 0, 0, 0, 0).start == 161_ns);
  CHECK(result.last_backward == 212_ns);
  CHECK(result.optimizer_start == 217_ns);
  CHECK(result.iteration == 219_ns);
  CHECK(result.stages[0].busy == 132_ns);  // 2 x (36 + 30)
  CHECK(result.stages[1].busy == 156_ns);  // 2 x (30 + 48)
}

TEST_CASE("interleaved: four stages of two chunks with a latency") {
  // Chunks of 10 + 20, one way 5, M = 4. Microbatch 0 reaches place k of the model at 15 k. Stages 0 and 1 run all
  // their forward passes first; F and B are those of the first chunk, F' and B' those of the second:
  //   stage 3: F0..F3@45-85 | F'0@105-115 B'0@115-135 F'1 B'1@145-165 F'2 B'2@175-195 F'3@195-205 B'3@205-225
  //            | B0@225-245 B1@245-265 B2@275-295 B3@305-325
  //   stage 2: ... F'0@90-100 F'1 | F'2@110-120 B'0@140-160 F'3@160-170 B'1@170-190 | B'2@200-220 B'3@230-250
  //            B0@250-270 B1@270-290 B2@300-320 B3@330-350
  //   stage 1: ... | B'0@165-185 B'1@195-215 B'2@225-245 B'3@255-275 B0@275-295 B1@295-315 B2@325-345 B3@355-375
  //   stage 0: ... | B'0@190-210 B'1@220-240 B'2@250-270 B'3@280-300 B0@300-320 B1@320-340 B2@350-370 B3@380-400
  const Result result = simulate::simulate(Schedule{{equal_chunks(4, 2, 4, 5)}}, true);
  CHECK(find(result, EventKind::kForward, 3, 0, 0, 0, 1).start == 105_ns);
  CHECK(find(result, EventKind::kForward, 2, 3, 0, 0, 1).start == 160_ns);
  CHECK(find(result, EventKind::kBackward, 3, 3, 0, 0, 1).end == 225_ns);
  CHECK(find(result, EventKind::kBackward, 0, 3, 0, 0, 1).end == 300_ns);
  CHECK(find(result, EventKind::kBackward, 3, 2, 0, 0, 0).start == 275_ns);
  CHECK(find(result, EventKind::kBackward, 1, 0, 0, 0, 0).start == 275_ns);
  CHECK(result.iteration == 400_ns);
}

TEST_CASE("interleaved: all chunks of a stage share its link") {
  // Two stages of two chunks, passes of 1 + 1, M = 2; the way from stage 0 to 1 takes 9 and is busy for 8 a transfer,
  // the way round takes no time. Stage 0 runs Fa0@0-1 Fa1@1-2; its activations leave at 1 and 9, arrive at 10 and 18:
  //   stage 1: Fb0@10-11 Fb1@18-19;  stage 0: Fc0@11-12 Fc1@19-20
  // Their activations leave at 17, behind that of Fa1, and at 25: Fd0@26-27 Bd0@27-28, Fd1@34-35 Bd1@35-36.
  SimPipeline pipeline = interleaved({{{1_ns, 1_ns}, {1_ns, 1_ns}}, {{1_ns, 1_ns}, {1_ns, 1_ns}}}, 2);
  pipeline.stages[0].latency = 9_ns;
  pipeline.stages[0].occupancy = 8_ns;
  const Result result = simulate::simulate(Schedule{{pipeline}}, true);
  CHECK(find(result, EventKind::kSendActivation, 0, 1, 0, 0, 0).start == 9_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 0, 0, 0, 1).start == 17_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 1, 0, 0, 1).start == 25_ns);
  CHECK(find(result, EventKind::kBackward, 1, 1, 0, 0, 1).end == 36_ns);
}

TEST_CASE("interleaved: one chunk is 1F1B") {
  SimPipeline pipeline = equal_chunks(4, 1, 6, 7);
  for (SimStage& s : pipeline.stages) s.parts[0].chunks[0] = {11_ns, 23_ns};
  const Result one = simulate::simulate(Schedule{{pipeline}});
  CHECK(pipeline.stages[0].warmup == 3);
  CHECK(one.iteration ==
        simulate::simulate(
            one_pipeline({stage(11, 23, 3, 7), stage(11, 23, 2, 7), stage(11, 23, 1, 7), stage(11, 23, 0)}, 6))
            .iteration);
}

TEST_CASE("interleaved: a backward pass never runs before the chunk's own forward pass") {
  // Without a warm-up stage 1 would start with Fb0 Bd0, and Fd0 comes after Bd0.
  SimPipeline pipeline = equal_chunks(2, 2, 2);
  for (SimStage& s : pipeline.stages) s.warmup = 0;
  CHECK(simulate::simulate(Schedule{{pipeline}}).deadlock);
}

TEST_CASE("interleaved: groups that Megatron-LM takes, and those it does not") {
  CHECK(interleaving_refusal(8, 4, 4).empty());
  CHECK(interleaving_refusal(11, 4, 7).empty());  // the last group has 4
  CHECK(interleaving_refusal(4, 4, 3) == "groups of 3 microbatches are shorter than the 4 stages");
  CHECK(interleaving_refusal(3, 4, 4) == "groups of 4 microbatches are longer than the 3 there are");
  CHECK(interleaving_refusal(9, 4, 4) ==
        "9 microbatches in groups of 4 leave a last group of 1, shorter than the 4 stages");
}
