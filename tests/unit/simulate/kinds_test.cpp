// GPipe and the split backward pass worked out by hand, to the nanosecond. W3@20-30 reads: the weight gradient of
// microbatch 3 is computed from 20 to 30; B is then the input gradient alone.
#include "unit/simulate/fixtures.hpp"

using namespace tangram;
using namespace tangram::simulate;
using namespace tangram::simulate::fixtures;
using namespace tangram::literals;

namespace {

SimPipeline classic(ScheduleKind kind, std::vector<SimStage> stages, std::int64_t microbatches) {
  SimPipeline pipeline{std::move(stages), microbatches, kind};
  return with_classic_warmups(pipeline);
}

SimStage split(std::int64_t forward, std::int64_t input, std::int64_t weight, std::int64_t latency = 0) {
  SimStage result = stage(forward, input + weight, 0, latency);
  result.parts[0].weight_gradient = Nanoseconds(weight);
  return result;
}

Result zero_bubble(std::vector<SimStage> stages, std::int64_t microbatches) {
  return simulate::simulate(Schedule{{classic(ScheduleKind::kZeroBubble, std::move(stages), microbatches)}}, true);
}

/// "F0 B0 W0": the passes of one stage in the order of their start.
std::string order_of(const Result& result, int stage_index) {
  std::string text;
  for (const Event& e : result.events) {
    if (e.stage != stage_index) continue;
    const char* name = e.kind == EventKind::kForward          ? "F"
                       : e.kind == EventKind::kBackward       ? "B"
                       : e.kind == EventKind::kWeightGradient ? "W"
                                                              : nullptr;
    if (name != nullptr) text += (text.empty() ? "" : " ") + (name + std::to_string(e.microbatch));
  }
  return text;
}

}  // namespace

TEST_CASE("gpipe: all forward passes, then all backward passes") {
  // Two stages of 10 + 20, one way 3, M = 3:
  //   stage 0: F0@0-10 F1@10-20 F2@20-30                          B0@66-86 B1@86-106 B2@106-126
  //   stage 1:     F0@13-23 F1@23-33 F2@33-43 B0@43-63 B1@63-83 B2@83-103
  // That is sum T + 2 c + (M - 1) (max f + max w) = 60 + 6 + 2 x 30.
  const SimPipeline pipeline = classic(ScheduleKind::kGPipe, {stage(10, 20, 0, 3), stage(10, 20, 0)}, 3);
  const Result result = simulate::simulate(Schedule{{pipeline}}, true);
  CHECK(order_of(result, 0) == "F0 F1 F2 B0 B1 B2");
  CHECK(order_of(result, 1) == "F0 F1 F2 B0 B1 B2");
  CHECK(find(result, EventKind::kForward, 1, 2).start == 33_ns);
  CHECK(find(result, EventKind::kBackward, 1, 0).start == 43_ns);
  CHECK(find(result, EventKind::kBackward, 0, 0).start == 66_ns);
  CHECK(find(result, EventKind::kBackward, 0, 2).start == 106_ns);
  CHECK(result.iteration == 126_ns);
  CHECK(result.stages[0].max_in_flight == 3);
  CHECK(result.stages[1].max_in_flight == 3);
}

TEST_CASE("gpipe: unequal stages wait for the slowest forward and the slowest backward pass") {
  // Four stages without latency, M = 5: sum T = 12 + 50 + 30 + 28 = 120, max f = 20, max w = 40: 120 + 4 x 60. The
  // warm-ups of the stages are not read.
  const std::vector<SimStage> stages{stage(4, 8, 0), stage(10, 40, 3), stage(20, 10, 1), stage(8, 20, 9)};
  const SimPipeline pipeline{stages, 5, ScheduleKind::kGPipe};
  const Result result = simulate::simulate(Schedule{{pipeline}});
  CHECK_FALSE(result.deadlock);
  CHECK(result.iteration == 360_ns);
}

TEST_CASE("zero bubble: two stages, event by event") {
  // F, B and W of 10 each, M = 3. Stage 0 warms up with 1 and may hold 2: W0 comes before F2. Stage 1 warms up with 0,
  // may put one weight gradient off, and so holds 2 as well.
  //   stage 0: F0@0-10 F1@10-20      B0@30-40 W0@40-50 F2@50-60 B1@60-70 W1@70-80 B2@80-90 W2@90-100
  //   stage 1:      F0@10-20 B0@20-30 F1@30-40 B1@40-50 W0@50-60 F2@60-70 B2@70-80 W1@80-90 W2@90-100
  // The bubble is (p - 1) (F + B - W) = 10 instead of (p - 1) (F + B + W) = 30 (arXiv 2401.10241, table 2).
  const Result result = zero_bubble({split(10, 10, 10), split(10, 10, 10)}, 3);
  CHECK(order_of(result, 0) == "F0 F1 B0 W0 F2 B1 W1 B2 W2");
  CHECK(order_of(result, 1) == "F0 B0 F1 B1 W0 F2 B2 W1 W2");
  CHECK(find(result, EventKind::kBackward, 0, 0).start == 30_ns);
  CHECK(find(result, EventKind::kForward, 0, 2).start == 50_ns);
  CHECK(find(result, EventKind::kBackward, 0, 2).start == 80_ns);
  CHECK(find(result, EventKind::kWeightGradient, 1, 0).start == 50_ns);
  CHECK(find(result, EventKind::kSendGradient, 1, 0).start == 30_ns);  // it does not wait for W0
  CHECK(result.last_backward == 100_ns);
  CHECK(result.iteration == 100_ns);
  CHECK(result.stages[0].busy == 90_ns);
  CHECK(result.stages[0].idle == 10_ns);
  CHECK(result.stages[0].max_in_flight == 2);
  CHECK(result.stages[1].max_in_flight == 2);
}

TEST_CASE("zero bubble: a weight gradient once begun is finished") {
  // As above with one way 3: F2 arrives at stage 1 at 69, but W1 began at 63 and ends at 73.
  //   stage 0: F0@0-10 F1@10-20 B0@36-46 W0@46-56 F2@56-66 B1@66-76 W1@76-86 B2@96-106 W2@106-116
  //   stage 1: F0@13-23 B0@23-33 F1@33-43 B1@43-53 W0@53-63 W1@63-73 F2@73-83 B2@83-93 W2@93-103
  const Result result = zero_bubble({split(10, 10, 10, 3), split(10, 10, 10)}, 3);
  CHECK(order_of(result, 1) == "F0 B0 F1 B1 W0 W1 F2 B2 W2");
  CHECK(find(result, EventKind::kForward, 1, 2).start == 73_ns);
  CHECK(find(result, EventKind::kBackward, 0, 2).start == 96_ns);
  CHECK(result.iteration == 116_ns);
}

TEST_CASE("zero bubble: four equal stages run ZB-H1") {
  // F, B and W of 10 each, M = 8: 8 x 30 + 3 x 10. No stage holds more than 4, what stage 0 holds under 1F1B. Stage s
  // puts s weight gradients off in the steady state.
  const Result result = zero_bubble(std::vector<SimStage>(4, split(10, 10, 10)), 8);
  CHECK(result.iteration == 270_ns);
  CHECK(order_of(result, 0) == "F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7");
  CHECK(order_of(result, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7");
  for (const StageUse& use : result.stages) CHECK(use.max_in_flight == 4);
  CHECK(simulate::simulate(one_pipeline({stage(10, 20, 3), stage(10, 20, 2), stage(10, 20, 1), stage(10, 20, 0)}, 8))
            .iteration == 330_ns);
}

TEST_CASE("zero bubble: nothing to put off is 1F1B") {
  const Result result = zero_bubble({split(10, 20, 0, 3), split(10, 20, 0)}, 3);
  CHECK(result.iteration == 132_ns);  // as 1F1B with the same times
}

TEST_CASE("zero bubble: a synchronisation waits for the last weight gradient") {
  // The two stages above: stage 1 ends at 100 with W2; its sync of 7 and a step of 2 follow.
  std::vector<SimStage> stages{split(10, 10, 10), split(10, 10, 10)};
  stages[1].parts[0].exposed_sync = 7_ns;
  stages[0].parts[0].optimizer_step = 2_ns;
  const Result result = zero_bubble(stages, 3);
  CHECK(find(result, EventKind::kGradientSync, 1, 0).start == 100_ns);
  CHECK(result.iteration == 109_ns);
}
