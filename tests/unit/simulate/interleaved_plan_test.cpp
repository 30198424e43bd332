// Interleaved schedules whose stages wait for what they send forward, by hand; and launch plans that have them.
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/interleaved.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"
#include "unit/simulate/fixtures.hpp"

using namespace tangram;
using namespace tangram::simulate;
using namespace tangram::simulate::fixtures;
using namespace tangram::literals;

TEST_CASE("forward-blocking: a stage is taken until its output has arrived") {
  // Two stages, 10 + 20, one way 3, M = 3, warm-up 1 on stage 0:
  //   stage 0: F0@0-10 (sends until 13) F1@13-23 (26) | B0@46-66 F2@66-76 (79) B1@79-99 | B2@112-132
  //   stage 1: F0@13-23 B0@23-43 F1@43-53 B1@53-73 F2@79-89 B2@89-109
  // The gradient of B0 arrives at 46, that of B1 at 76, that of B2 at 112; stage 0 is free for B2 at 99.
  Schedule schedule = one_pipeline({stage(10, 20, 1, 3), stage(10, 20, 0)}, 3);
  schedule.pipelines[0].transfers = Transfers::kForwardBlocking;
  const Result result = simulate::simulate(schedule, true);
  CHECK(find(result, EventKind::kForward, 0, 1).start == 13_ns);
  CHECK(find(result, EventKind::kBackward, 0, 0).start == 46_ns);
  CHECK(find(result, EventKind::kForward, 0, 2).start == 66_ns);
  CHECK(find(result, EventKind::kBackward, 0, 1).start == 79_ns);
  CHECK(find(result, EventKind::kForward, 1, 2).start == 79_ns);
  CHECK(find(result, EventKind::kBackward, 0, 2).start == 112_ns);
  CHECK(result.iteration == 132_ns);
  CHECK(result.stages[0].busy == 90_ns);
}

TEST_CASE("forward-blocking: a transfer begins when its link is free") {
  // One way 9, of which the link is busy 4; passes of 1 + 1 and M = 2. Waiting keeps transfers apart: 1-10, 11-20.
  Schedule schedule = one_pipeline({stage(1, 1, 1, 9), stage(1, 1, 0)}, 2);
  schedule.pipelines[0].stages[0].occupancy = 4_ns;
  schedule.pipelines[0].transfers = Transfers::kForwardBlocking;
  const Result result = simulate::simulate(schedule, true);
  CHECK(find(result, EventKind::kForward, 0, 1).start == 10_ns);
  CHECK(find(result, EventKind::kSendActivation, 0, 1).start == 11_ns);
  CHECK(find(result, EventKind::kForward, 1, 1).start == 20_ns);
}

TEST_CASE("forward-blocking: two stages of two chunks, event by event") {
  // Chunks of 10 + 20; 2 one way, 4 round; M = 2 in a group of 2; warm-ups 4 (all) and 2. Chunks a c on 0, b d on 1:
  //   stage 0: Fa0@0-10(12) Fa1@12-22(24) Fc0@26-36(38) Fc1@40-50(52) | Bc0@72-92 Bc1@102-122 Ba0@122-142 Ba1@148-168
  //   stage 1: Fb0@12-22(26) Fb1@26-36(40) | Fd0@40-50 Bd0@50-70 Fd1@70-80 Bd1@80-100 | Bb0@100-120 Bb1@126-146
  // The gradient of Bd0 crosses from 1 to 0 at 72, that of Bd1 at 102; those of Bc0 and Bc1 go round: 96 and 126.
  // Ba0 waits for Bb0: 120 + 2 = 122, and runs behind Bc1; Ba1 for 146 + 2.
  SimPipeline pipeline;
  pipeline.kind = ScheduleKind::kInterleaved;
  pipeline.microbatches = 2;
  pipeline.transfers = Transfers::kForwardBlocking;
  for (const std::int64_t latency : {2, 4}) {
    SimStage next = stage(0, 0, 0, latency);
    next.parts[0].chunks = {{10_ns, 20_ns}, {10_ns, 20_ns}};
    pipeline.stages.push_back(next);
  }
  const Result result = simulate::simulate(Schedule{{with_classic_warmups(pipeline)}}, true);
  REQUIRE_FALSE(result.deadlock);
  const auto start = [&](EventKind kind, int s, int chunk, std::int64_t m) {
    return find(result, kind, s, m, 0, 0, chunk).start;
  };
  CHECK(start(EventKind::kForward, 0, 0, 1) == 12_ns);
  CHECK(start(EventKind::kForward, 0, 1, 0) == 26_ns);
  CHECK(start(EventKind::kForward, 0, 1, 1) == 40_ns);
  CHECK(start(EventKind::kForward, 1, 0, 1) == 26_ns);
  CHECK(start(EventKind::kForward, 1, 1, 0) == 40_ns);
  CHECK(start(EventKind::kBackward, 1, 1, 0) == 50_ns);
  CHECK(start(EventKind::kForward, 1, 1, 1) == 70_ns);
  CHECK(start(EventKind::kBackward, 0, 1, 0) == 72_ns);
  CHECK(start(EventKind::kBackward, 0, 1, 1) == 102_ns);
  CHECK(start(EventKind::kBackward, 1, 0, 0) == 100_ns);
  CHECK(start(EventKind::kBackward, 1, 0, 1) == 126_ns);
  CHECK(start(EventKind::kBackward, 0, 0, 0) == 122_ns);
  CHECK(start(EventKind::kBackward, 0, 0, 1) == 148_ns);
  CHECK(result.iteration == 168_ns);
}

TEST_CASE("forward-blocking: parts of a stage wait for the slowest") {
  // Parts of 10 and 14 forward, one way 3: both are free at 17.
  Schedule schedule = one_pipeline({stage(10, 20, 1, 3), stage(10, 20, 0)}, 2);
  schedule.pipelines[0].stages[0].parts.push_back({14_ns, 20_ns, 0_ns, 0_ns});
  schedule.pipelines[0].transfers = Transfers::kForwardBlocking;
  const Result result = simulate::simulate(schedule, true);
  CHECK(find(result, EventKind::kForward, 0, 1, 0).start == 17_ns);
  CHECK(find(result, EventKind::kForward, 0, 1, 1).start == 17_ns);
}

namespace {

// Chunks differ by a block, of three or four.
bool is_near(Nanoseconds iteration, Nanoseconds closed_form) {
  const double share = iteration.as_double() / closed_form.as_double();
  return share > 0.8 && share < 1.2;
}

}  // namespace

TEST_CASE("an interleaved plan becomes an interleaved schedule") {
  const plan::LaunchPlan plan = plan::example::interleaved_plan();
  const Schedule schedule = schedule_of(plan);
  const SimPipeline& pipeline = schedule.pipelines.front();
  CHECK(pipeline.kind == ScheduleKind::kInterleaved);
  CHECK(pipeline.group == 4);
  CHECK(pipeline.transfers == Transfers::kForwardBlocking);
  CHECK(chunks_of(pipeline) == 2);
  CHECK(pipeline.stages.back().latency == plan.boundaries.back().latency);
  for (std::size_t s = 0; s < 4; ++s)
    CHECK(pipeline.stages[s].warmup == with_classic_warmups(pipeline).stages[s].warmup);
  const Result result = simulate::simulate(schedule);
  REQUIRE_FALSE(result.deadlock);
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(result.stages[s].max_in_flight == plan.stages[s].parts[0].predicted.in_flight);
  }
  CHECK(is_near(result.iteration, plan.predicted.closed_form));
}

TEST_CASE("a simulated interleaved plan passes its check") {
  plan::LaunchPlan plan = plan::example::interleaved_plan();
  predict(plan, simulate::simulate(schedule_of(plan)), FlopsPerSecond(0));
  CHECK(plan::check(plan).ok());
  CHECK(differences(plan).empty());
  plan.predicted.iteration += 1_ns;
  CHECK_FALSE(differences(plan).empty());
}

TEST_CASE("the file that tests of the command line read is a simulated interleaved plan", "[golden]") {
  plan::LaunchPlan plan = plan::example::interleaved_plan();
  predict(plan, simulate::simulate(schedule_of(plan)), FlopsPerSecond(0));
  const std::string now = plan::write_plan(plan);
  CHECK(now == test::golden(std::string(TANGRAM_SOURCE_DIR) + "/tests/cli/inputs/interleaved.plan.json", now));
}

TEST_CASE("interleaved iterations are what the judge's closed form says, nearly") {
  plan::example::World world = plan::example::make_world();
  const auto alike = plan::example::strategy(2, 1, 4, 1, 1, 1);
  for (const std::int64_t microbatches : {4, 6, 9}) {
    const auto composition =
        plan::example::make_composition(world, 1, 4, microbatches, {{3, {{0, 8, 4, alike}}}, {8, {{0, 8, 4, alike}}}});
    const plan::LaunchPlan plain = plan::example::make_plan(world, composition);
    for (const std::size_t chunks : {2U, 3U, 4U}) {
      for (const std::int64_t group : {2, 4}) {
        const plan::LaunchPlan plan = test::interleaved(plain, chunks, group);
        const Result result = simulate::simulate(schedule_of(plan));
        if (result.deadlock) continue;  // a last group that is too short
        CAPTURE(microbatches, chunks, group);
        CHECK(is_near(result.iteration, plan.predicted.closed_form));
      }
    }
  }
}
