// Schedules worked out by hand, to the nanosecond. F3@20-30 reads: forward of microbatch 3 runs from 20 to 30.
#include "unit/simulate/fixtures.hpp"

using namespace tangram;
using namespace tangram::simulate;
using namespace tangram::simulate::fixtures;
using namespace tangram::literals;

TEST_CASE("simulate: one stage is a sum") {
  // Three microbatches of 10 + 20, a sync of 7 after them, an optimizer step of 5: 90 + 7 + 5.
  SimStage only = stage(10, 20, 0);
  only.parts[0].exposed_sync = 7_ns;
  only.parts[0].optimizer_step = 5_ns;
  const Result result = simulate::simulate(one_pipeline({only}, 3));
  CHECK_FALSE(result.deadlock);
  CHECK(result.last_backward == 90_ns);
  CHECK(result.optimizer_start == 97_ns);
  CHECK(result.iteration == 102_ns);
  REQUIRE(result.stages.size() == 1);
  CHECK(result.stages[0].busy == 90_ns);
  CHECK(result.stages[0].exposed_sync == 7_ns);
  CHECK(result.stages[0].idle == 0_ns);
  CHECK(result.stages[0].max_in_flight == 1);
  CHECK(result.events.empty());
}

TEST_CASE("simulate: two stages with a latency, event by event") {
  // f = 10, w = 20 on both; one way 3; M = 3; warm-up 1 and 0.
  //   stage 0: F0@0-10 F1@10-20                 B0@46-66 F2@66-76 B1@76-96            B2@112-132
  //   stage 1:         F0@13-23 B0@23-43 F1@43-53 B1@53-73        F2@79-89 B2@89-109
  const Result result = simulate::simulate(one_pipeline({stage(10, 20, 1, 3), stage(10, 20, 0)}, 3), true);
  CHECK(find(result, EventKind::kForward, 0, 1).start == 10_ns);
  CHECK(find(result, EventKind::kForward, 1, 0).start == 13_ns);
  CHECK(find(result, EventKind::kBackward, 1, 0).end == 43_ns);
  CHECK(find(result, EventKind::kBackward, 0, 0).start == 46_ns);
  CHECK(find(result, EventKind::kForward, 0, 2).start == 66_ns);
  CHECK(find(result, EventKind::kBackward, 0, 1).start == 76_ns);
  CHECK(find(result, EventKind::kForward, 1, 1).start == 43_ns);
  CHECK(find(result, EventKind::kForward, 1, 2).start == 79_ns);
  CHECK(find(result, EventKind::kBackward, 1, 2).end == 109_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 2).start == 76_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 2).end == 79_ns);
  CHECK(find(result, EventKind::kSendGradient, 1, 2).start == 109_ns);
  CHECK(find(result, EventKind::kSendGradient, 1, 2).end == 112_ns);
  CHECK(result.iteration == 132_ns);
  CHECK(result.stages[0].max_in_flight == 2);
  CHECK(result.stages[1].max_in_flight == 1);
  CHECK(result.stages[0].idle == 42_ns);  // 132 - 3 x 30
}

TEST_CASE("simulate: equal stages without latency take (M + S - 1) T") {
  // Four stages of 10 + 20, M = 8: (8 + 4 - 1) x 30 = 330.
  const Result result =
      simulate::simulate(one_pipeline({stage(10, 20, 3), stage(10, 20, 2), stage(10, 20, 1), stage(10, 20, 0)}, 8));
  CHECK(result.iteration == 330_ns);
  for (int s = 0; s < 4; ++s) CHECK(result.stages[static_cast<std::size_t>(s)].max_in_flight == 4 - s);
}

TEST_CASE("simulate: a round trip through a slow link sets the period, and extra warm-up hides it") {
  // Two stages of T = 10 + 20 = 30, one way c = 15. With n = (2, 1) the round trip 30 + 30 + 2 x 15 = 90 must fit in
  // n_0 - n_1 + 1 = 2 periods: P = 45, and with M = 9 the form says 90 + 8 x 45 = 450.
  //   stage 0: F0@0-10 F1@10-20 | B0@70-90 F2@90-100 B1@100-120 F3@120-130 | B2@160-180 ...
  //   stage 1: F0@25-35 B0@35-55 F1@55-65 B1@65-85 | F2@115-125 B2@125-145 F3@145-155 B3@155-175 | ...
  // Every 90 ns the pattern repeats with two more microbatches: B(2k) ends at 90 + 90 k, the last, B8, at 450.
  const Result slow = simulate::simulate(one_pipeline({stage(10, 20, 1, 15), stage(10, 20, 0)}, 9), true);
  CHECK(find(slow, EventKind::kBackward, 0, 0).end == 90_ns);
  CHECK(find(slow, EventKind::kBackward, 0, 2).end == 180_ns);
  CHECK(slow.iteration == 450_ns);
  // One more in flight: the round trip fits in 3 periods of 30, form: 90 + 8 x 30 = 330.
  const Result hidden = simulate::simulate(one_pipeline({stage(10, 20, 2, 15), stage(10, 20, 0)}, 9));
  CHECK(hidden.iteration == 330_ns);
  CHECK(hidden.stages[0].max_in_flight == 3);
}

TEST_CASE("simulate: a busy link queues in order, each direction by itself") {
  // Stage 0 forwards three microbatches in 1 ns each; the link takes 10 per transfer, latency 12, both ways:
  //   activations leave at 1, 11, 21 and arrive at 13, 23, 33.
  // Stage 1: F0@13-14 B0@14-15 F1@23-24 B1@24-25 F2@33-34 B2@34-35; gradients leave at 15, 25, 35 (the link back is
  // free by then), arrive at 27, 37, 47; stage 0: B2@47-48.
  const Result result = simulate::simulate(one_pipeline({stage(1, 1, 3, 12, 10), stage(1, 1, 0)}, 3), true);
  CHECK(find(result, EventKind::kSendActivation, 0, 1).start == 11_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 2).start == 21_ns);
  CHECK(find(result, EventKind::kForward, 1, 2).start == 33_ns);
  CHECK(find(result, EventKind::kSendGradient, 1, 1).start == 25_ns);
  CHECK(result.iteration == 48_ns);
  // Without occupancy the activations leave at 1, 2, 3, the last arrives at 15. Stage 1 is busy without a gap
  // F0@13-14 B0@14-15 F1@15-16 B1@16-17 F2@17-18 B2@18-19, B2 arrives at 31: 32.
  CHECK(simulate::simulate(one_pipeline({stage(1, 1, 3, 12), stage(1, 1, 0)}, 3)).iteration == 32_ns);
}

TEST_CASE("simulate: a synchronisation binds where it does not hide under the stages before") {
  // Two stages of 10 + 20, c = 0, M = 2, warm-up 1 and 0:
  //   stage 1: F0@10-20 B0@20-40 F1@40-50 B1@50-70;  stage 0: B0@40-60 B1@70-90.
  // Stage 1 is through at 70, stage 0 at 90. A sync of 25 on stage 1 ends at 95 > 90: it binds by 5 = g - w_0.
  SimStage first = stage(10, 20, 1);
  SimStage second = stage(10, 20, 0);
  second.parts[0].exposed_sync = 25_ns;
  first.parts[0].optimizer_step = 3_ns;
  second.parts[0].optimizer_step = 4_ns;
  const Result binding = simulate::simulate(one_pipeline({first, second}, 2), true);
  CHECK(binding.last_backward == 90_ns);
  CHECK(binding.optimizer_start == 95_ns);
  CHECK(binding.iteration == 99_ns);
  CHECK(find(binding, EventKind::kGradientSync, 1, 0).start == 70_ns);
  CHECK(find(binding, EventKind::kOptimizer, 0, 0).start == 95_ns);
  CHECK(find(binding, EventKind::kOptimizer, 0, 0).end == 98_ns);
  // A sync of 15 ends at 85 and costs nothing.
  second.parts[0].exposed_sync = 15_ns;
  CHECK(simulate::simulate(one_pipeline({first, second}, 2)).iteration == 94_ns);
}

TEST_CASE("simulate: fewer microbatches than stages") {
  // Four stages of 10 + 20, M = 2 < S: (2 + 4 - 1) x 30 = 150. All forwards of stages 0 to 2 come first.
  const Result result = simulate::simulate(
      one_pipeline({stage(10, 20, 3), stage(10, 20, 2), stage(10, 20, 1), stage(10, 20, 0)}, 2), true);
  CHECK(result.iteration == 150_ns);
  CHECK(result.stages[0].max_in_flight == 2);
  CHECK(find(result, EventKind::kForward, 0, 1).end <= find(result, EventKind::kBackward, 0, 0).start);
}

TEST_CASE("simulate: pipelines run side by side and meet at the optimizer") {
  // One stage each: 4 x 30 = 120 and 2 x 50 = 100 + sync 30 = 130; the longer optimizer step is 6.
  SimStage fast = stage(10, 20, 0);
  SimStage slow = stage(20, 30, 0);
  slow.parts[0].exposed_sync = 30_ns;
  fast.parts[0].optimizer_step = 6_ns;
  const Result result = simulate::simulate(Schedule{{SimPipeline{{fast}, 4}, SimPipeline{{slow}, 2}}}, true);
  CHECK(result.last_backward == 120_ns);
  CHECK(result.optimizer_start == 130_ns);
  CHECK(result.iteration == 136_ns);
  REQUIRE(result.stages.size() == 2);
  CHECK(result.stages[0].pipeline == 0);
  CHECK(result.stages[0].idle == 10_ns);
  CHECK(result.stages[1].pipeline == 1);
  CHECK(result.stages[1].idle == 0_ns);
  CHECK(find(result, EventKind::kForward, 0, 0, 0, 1).end == 20_ns);
}

TEST_CASE("simulate: parts of a mixed stage run by themselves, a transfer waits for the last") {
  // Stage 0 has a part of 10 + 20 and one of 12 + 24, warm-up 1; stage 1 of 5 + 5; c = 2, M = 2.
  //   part 0: F0@0-10 F1@10-20          part 1: F0@0-12 F1@12-24
  //   activations leave at 12 and 24:   stage 1: F0@14-19 B0@19-24 F1@26-31 B1@31-36
  //   gradients arrive at 26 and 38:    part 0: B0@26-46 B1@46-66    part 1: B0@26-50 B1@50-74
  // Their sync (9 and 1) starts together at 74: 83.
  SimStage mixed = stage(10, 20, 1, 2);
  mixed.parts.push_back({12_ns, 24_ns, 1_ns, 0_ns});
  mixed.parts[0].exposed_sync = 9_ns;
  const Result result = simulate::simulate(one_pipeline({mixed, stage(5, 5, 0)}, 2), true);
  CHECK(find(result, EventKind::kForward, 0, 1, 0).end == 20_ns);
  CHECK(find(result, EventKind::kForward, 0, 1, 1).end == 24_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 1).start == 24_ns);
  CHECK(find(result, EventKind::kForward, 1, 0).start == 14_ns);
  CHECK(find(result, EventKind::kBackward, 0, 0, 1).start == 26_ns);
  CHECK(find(result, EventKind::kBackward, 0, 1, 0).end == 66_ns);
  CHECK(find(result, EventKind::kGradientSync, 0, 0, 0).start == 74_ns);
  CHECK(result.last_backward == 74_ns);
  CHECK(result.iteration == 83_ns);
  CHECK(result.stages[0].busy == 72_ns);  // of the slower part
  // A mixed stage downstream: its gradient leaves when its last part is through.
  //   stage 0 F0@0-5, parts 10 + 20 and 12 + 24: B0 ends at 35 and 41, leaves at 41: stage 0 B0@43-48 with c = 2 and
  //   forward arrival at 7: F0@7-17 B0@17-37 and F0@7-19 B0@19-43: leaves 43, arrives 45, B0@45-50.
  SimStage last = mixed;
  last.warmup = 0;
  last.parts[0].exposed_sync = 0_ns;
  last.parts[1].exposed_sync = 0_ns;
  CHECK(simulate::simulate(one_pipeline({stage(5, 5, 1, 2), last}, 1)).iteration == 50_ns);
}

TEST_CASE("simulate: a warm-up that grows downstream is a deadlock, not a hang") {
  // Stage 0 runs F0 B0 F1 B1, stage 1 F0 F1 B0 B1: stage 1 waits for F1, stage 0 for B0.
  const Result result = simulate::simulate(one_pipeline({stage(10, 20, 0), stage(10, 20, 1)}, 2), true);
  CHECK(result.deadlock);
  CHECK(result.iteration == 0_ns);
  CHECK(result.events.empty());
  // With one microbatch there is nothing to wait for: 30 + 30.
  CHECK(simulate::simulate(one_pipeline({stage(10, 20, 0), stage(10, 20, 1)}, 1)).iteration == 60_ns);
}

TEST_CASE("simulate: equal warm-ups serialize the stages without a deadlock") {
  // Warm-up 0 on both, M = 2: one microbatch at a time, 2 x (30 + 30).
  CHECK(simulate::simulate(one_pipeline({stage(10, 20, 0), stage(10, 20, 0)}, 2)).iteration == 120_ns);
}

TEST_CASE("simulate: events come in order and none overlaps on one executor") {
  const Result result =
      simulate::simulate(one_pipeline({stage(7, 11, 2, 3, 2), stage(9, 13, 1, 4, 4), stage(8, 12, 0)}, 6), true);
  for (std::size_t i = 1; i < result.events.size(); ++i) CHECK(result.events[i - 1].start <= result.events[i].start);
  Nanoseconds busy_until[3];
  std::size_t passes = 0;
  for (const Event& e : result.events) {
    if (e.kind != EventKind::kForward && e.kind != EventKind::kBackward) continue;
    ++passes;
    CHECK(e.start >= busy_until[e.stage]);
    busy_until[e.stage] = e.end;
  }
  CHECK(passes == 3 * 6 * 2);
}
