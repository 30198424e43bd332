// Stages that stop for their transfers, worked out by hand.
#include "unit/simulate/fixtures.hpp"

using namespace tangram;
using namespace tangram::simulate;
using namespace tangram::simulate::fixtures;
using namespace tangram::literals;

namespace {

Schedule blocking(std::vector<SimStage> stages, std::int64_t microbatches) {
  Schedule schedule = one_pipeline(std::move(stages), microbatches);
  schedule.pipelines.front().transfers = Transfers::kBlocking;
  return schedule;
}

}  // namespace

TEST_CASE("blocking: a stage goes on when what it sent was taken and what it expects is there") {
  // f = 10, w = 20 on both; one way 3; M = 2; warm-up 1 and 0. Between the passes: when both ends are there, and 3
  // more.
  //   stage 0: F0@0-10  send   F1@13-23  send, receive       B0@46-66  receive       B1@79-99
  //   stage 1:          10-13  F0@13-23  B0@23-43 43-46      F1@46-56  B1@56-76 76-79
  // Transfers that do not block take 96: F1 then runs at 10 and B1 of stage 1 ends at 73.
  const std::vector<SimStage> stages{stage(10, 20, 1, 3), stage(10, 20, 0)};
  const Result result = simulate::simulate(blocking(stages, 2), true);
  CHECK_FALSE(result.deadlock);
  CHECK(find(result, EventKind::kForward, 0, 1).start == 13_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 1).start == 43_ns);
  CHECK(find(result, EventKind::kSendGradient, 1, 0).end == 46_ns);
  CHECK(find(result, EventKind::kBackward, 0, 0).start == 46_ns);
  CHECK(find(result, EventKind::kBackward, 0, 1).start == 79_ns);
  CHECK(result.iteration == 99_ns);
  CHECK(result.stages[0].max_in_flight == 2);
  CHECK(result.stages[1].max_in_flight == 1);
  CHECK(simulate::simulate(one_pipeline(stages, 2)).iteration == 96_ns);
}

TEST_CASE("blocking: one stage has nothing to wait for, and parts of a mixed stage wait for the slowest") {
  CHECK(simulate::simulate(blocking({stage(10, 20, 0)}, 3)).iteration == 90_ns);
  SimStage mixed = stage(10, 20, 0);
  mixed.parts.push_back(stage(15, 18, 0).parts.front());
  CHECK(simulate::simulate(blocking({mixed}, 2)).iteration == 70_ns);  // 2 x (15 + 20)
}

TEST_CASE("blocking: warm-ups other than the classic ones stop for ever") {
  // Stage 0 wants to hand over microbatch 2 before it asks for the first gradient, which stage 1 wants to hand over.
  CHECK(simulate::simulate(blocking({stage(1, 2, 3, 1), stage(1, 2, 0)}, 4)).deadlock);
  CHECK_FALSE(simulate::simulate(blocking({stage(1, 2, 1, 1), stage(1, 2, 0)}, 4)).deadlock);
}

TEST_CASE("blocking: classic warm-ups finish, never sooner than transfers that do not block") {
  std::uint32_t state = 1;
  const auto pick = [&](std::uint32_t below) {  // a linear congruence (Numerical Recipes), its high bits
    state = state * 1'664'525 + 1'013'904'223;
    return static_cast<std::int64_t>((state >> 16) % below);
  };
  for (int trial = 0; trial < 300; ++trial) {
    SimPipeline pipeline{{}, 1 + pick(8)};
    const std::int64_t stages = 1 + pick(5);
    for (std::int64_t s = 0; s < stages; ++s) pipeline.stages.push_back(stage(1 + pick(30), 1 + pick(30), 0, pick(12)));
    pipeline = with_classic_warmups(pipeline);
    const Result beside = simulate::simulate({{pipeline}});
    pipeline.transfers = Transfers::kBlocking;
    const Result result = simulate::simulate({{pipeline}});
    REQUIRE_FALSE(result.deadlock);
    CHECK(result.last_backward >= beside.last_backward);
    for (std::size_t s = 0; s < result.stages.size(); ++s) {
      CHECK(result.stages[s].max_in_flight == beside.stages[s].max_in_flight);
    }
  }
}
