// Colocated encoders in turn with a pipeline: the simulator beside the closed form and the timetable in plain numbers.
#include <algorithm>

#include "draws.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/multimodal/colocated.hpp"
#include "tangram/simulate/simulate.hpp"

using namespace tangram;
using namespace tangram::simulate;
using tangram::testing::cases;

namespace {

constexpr int kTurns = 1500;

struct TurnsCase {
  SimPipeline pipeline;
  multimodal::Colocated plan;
};

struct TurnsFlavour {
  bool alike = false;  ///< stages and lanes
  bool latency = false;
};

/// Warm-ups are the classic ones, and stages hold that many.
TurnsCase random_turns(Draws& draws, const TurnsFlavour& flavour) {
  TurnsCase out;
  const std::int64_t stages = draws.pick(1, 6);
  const bool each = stages == 1 && draws.pick(0, 1) == 0;
  const std::int64_t microbatches = draws.pick(1, 20);
  SimTurns turns;
  turns.rounds = each ? microbatches : 1;
  turns.gather = Nanoseconds(draws.sometimes(500));
  const bool frozen = draws.pick(0, 3) == 0;
  turns.broadcast = Nanoseconds(frozen ? 0 : draws.sometimes(500));  // of no gradients
  multimodal::SuperLane& own = out.plan.super_lanes.emplace_back();
  own.gather = turns.gather.value();
  own.broadcast = turns.broadcast.value();
  own.language.microbatches = microbatches / turns.rounds;
  const std::int64_t alike = draws.pick(100, 400);
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int64_t f = flavour.alike ? alike : draws.pick(100, 400);
    const std::int64_t encoder = flavour.alike ? 5 * alike : draws.pick(50, 3000);
    const std::int64_t latency = flavour.latency && s + 1 < stages ? draws.pick(0, 40) : 0;
    SimStage stage;
    stage.parts.push_back({Nanoseconds(f), Nanoseconds(2 * f), Nanoseconds(0), Nanoseconds(0)});
    stage.latency = Nanoseconds(latency);
    stage.warmup = stages - 1 - s;
    out.pipeline.stages.push_back(stage);
    const std::int64_t backward = frozen ? 0 : 2 * encoder;
    turns.encoders.push_back({Nanoseconds(encoder), Nanoseconds(backward), Nanoseconds(0), Nanoseconds(0)});
    own.lanes.push_back({static_cast<int>(s), encoder, backward});
    multimodal::Stage& language = own.language.stages.emplace_back();
    language.plan = {.T = 3 * f, .F = f, .A = 3 * f, .o = 0, .n_max = stages - s};
    if (s > 0) {
      const std::int64_t before = out.pipeline.stages[static_cast<std::size_t>(s - 1)].latency.value();
      own.language.edges.push_back({static_cast<int>(s - 1), static_cast<int>(s), {before, 0}});
    }
  }
  out.pipeline.microbatches = microbatches;
  out.pipeline.turns = turns;
  out.plan.rounds = turns.rounds;
  return out;
}

}  // namespace

TEST_CASE("property turns: no simulation is above the closed form, and where all are alike it is the closed form") {
  for (const TurnsFlavour& flavour : {TurnsFlavour{}, TurnsFlavour{false, true}, TurnsFlavour{true, false}}) {
    Draws draws(23);
    for (int i = 0; i < cases(kTurns); ++i) {
      const TurnsCase one = random_turns(draws, flavour);
      REQUIRE(multimodal::check(one.plan));
      const auto form = multimodal::closed_form(one.plan);
      const Result result = simulate::simulate({{one.pipeline}});
      REQUIRE(!result.deadlock);
      if (!form) continue;  // so few in flight hide no latency
      CHECK(result.iteration.value() <= *form);
      if (flavour.alike) CHECK(result.iteration.value() == *form);
    }
  }
}

TEST_CASE("property turns: the simulation is the timetable, pass by pass") {
  Draws draws(29);
  for (int i = 0; i < cases(kTurns); ++i) {
    const TurnsCase one = random_turns(draws, {});
    const auto timetable = multimodal::timetable(one.plan);
    REQUIRE(timetable);
    CHECK(simulate::simulate({{one.pipeline}}).iteration.value() == *timetable);
  }
}

TEST_CASE("turns: events of every round, encoders around the pipeline") {
  Draws draws(31);
  for (int i = 0; i < cases(100); ++i) {
    TurnsCase one = random_turns(draws, {});
    const Result result = simulate::simulate({{one.pipeline}}, /*record=*/true);
    const SimTurns& turns = *one.pipeline.turns;
    const auto stages = std::ssize(one.pipeline.stages);
    CHECK(std::ranges::count(result.events, EventKind::kEncoderForward, &Event::kind) == turns.rounds * stages);
    CHECK(std::ranges::count(result.events, EventKind::kForward, &Event::kind) == one.pipeline.microbatches * stages);
    // No GPU does two things at once.
    for (std::int64_t s = 0; s < stages; ++s) {
      Nanoseconds free;
      for (const Event& event : result.events) {
        const bool computes = event.kind == EventKind::kForward || event.kind == EventKind::kBackward ||
                              event.kind == EventKind::kEncoderForward || event.kind == EventKind::kEncoderBackward;
        if (event.stage != s || !computes) continue;
        CHECK(event.start >= free);
        free = event.end;
      }
    }
  }
}
