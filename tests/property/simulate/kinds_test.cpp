// Schedules of every kind against other evaluations of them, and against each other: random pipelines.
#include <algorithm>

#include "draws.hpp"
#include "reference.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::simulate;

namespace {

Nanoseconds ns(Int value) { return Nanoseconds(value); }

/// Links that take up to `latency`, busy for a part of it.
void draw_link(Draws& draws, SimStage& stage, Int latency) {
  stage.latency = ns(draws.sometimes(latency));
  stage.occupancy = ns(draws.pick(0, stage.latency.value()));
}

SimPipeline draw_interleaved(Draws& draws) {
  SimPipeline pipeline;
  pipeline.kind = ScheduleKind::kInterleaved;
  pipeline.microbatches = draws.pick(1, 20);
  pipeline.stages.resize(static_cast<std::size_t>(draws.pick(1, 5)));
  const Int stages = static_cast<Int>(pipeline.stages.size());
  pipeline.group = draws.pick(0, 3) == 0 ? draws.pick(1, 8) : stages + draws.sometimes(2);
  const Int chunks = draws.pick(1, 3);
  for (SimStage& stage : pipeline.stages) {
    stage.parts.emplace_back();
    for (Int c = 0; c < chunks; ++c) {
      const Nanoseconds forward = ns(draws.pick(0, 10));
      stage.parts[0].chunks.push_back({forward, ns(draws.pick(0, 20))});
    }
    draw_link(draws, stage, 12);
  }
  return with_classic_warmups(pipeline);
}

/// Warm-ups fall downstream by at least one a stage.
SimPipeline draw_plain(Draws& draws, ScheduleKind kind) {
  SimPipeline pipeline;
  pipeline.kind = kind;
  pipeline.microbatches = draws.pick(1, 16);
  pipeline.stages.resize(static_cast<std::size_t>(draws.pick(1, 6)));
  for (SimStage& stage : pipeline.stages) {
    const Int weight = draws.pick(1, 10);
    const Int forward = draws.pick(1, 10);
    stage.parts.push_back({ns(forward), ns(draws.pick(1, 10) + weight), ns(0), ns(0)});
    stage.parts[0].weight_gradient = ns(weight);
    draw_link(draws, stage, 12);
  }
  pipeline = with_classic_warmups(pipeline);
  Int extra = 0;
  for (std::size_t s = pipeline.stages.size(); s-- > 0;) {
    extra += draws.pick(0, 1);
    pipeline.stages[s].warmup += extra;
    if (draws.pick(0, 1) == 0) pipeline.stages[s].deferrable = draws.pick(0, 4);
  }
  return pipeline;
}

Result run(const SimPipeline& pipeline) { return simulate::simulate(Schedule{{pipeline}}, true); }

/// When each stage ended its last backward pass, by the events.
Ends ends_of(const Result& result, std::size_t stages) {
  Ends ends(stages, 0);
  for (const Event& e : result.events) {
    if (e.kind != EventKind::kBackward && e.kind != EventKind::kWeightGradient) continue;
    Int& end = ends[static_cast<std::size_t>(e.stage)];
    end = std::max(end, e.end.value());
  }
  return ends;
}

void require_same(const SimPipeline& pipeline, const std::optional<Ends>& reference, int number) {
  const Result result = run(pipeline);
  const bool same = result.deadlock ? !reference : reference && ends_of(result, pipeline.stages.size()) == *reference;
  if (same) return;
  FAIL("pipeline " << number << " differs from its reference");
}

}  // namespace

TEST_CASE("property simulate: interleaved schedules are the longest paths of their lists, or have none") {
  Draws draws(1);
  int stuck = 0;
  for (int i = 0; i < 10'000; ++i) {
    SimPipeline pipeline = draw_interleaved(draws);
    if (draws.pick(0, 4) == 0) pipeline.stages[0].warmup = draws.pick(0, 12);
    const std::optional<Ends> reference = longest_path(pipeline);
    stuck += reference ? 0 : 1;
    require_same(pipeline, reference, i);
  }
  CHECK(stuck > 100);
  CHECK(stuck < 5'000);
}

TEST_CASE("property simulate: 1F1B and GPipe are the longest paths of their lists") {
  Draws draws(2);
  for (int i = 0; i < 10'000; ++i) {
    SimPipeline pipeline = draw_plain(draws, i % 2 == 0 ? ScheduleKind::k1F1B : ScheduleKind::kGPipe);
    if (draws.pick(0, 9) == 0) pipeline.stages[0].warmup = draws.pick(0, 4);
    require_same(pipeline, longest_path(pipeline), i);
  }
}

TEST_CASE("property simulate: zero-bubble schedules agree with a clock that ticks") {
  Draws draws(3);
  for (int i = 0; i < 10'000; ++i) {
    const SimPipeline pipeline = draw_plain(draws, ScheduleKind::kZeroBubble);
    require_same(pipeline, tick_zero_bubble(pipeline), i);
  }
}

TEST_CASE("property simulate: what Megatron-LM interleaves never waits for itself, and holds what the warm-up says") {
  Draws draws(4);
  int taken = 0;
  for (int i = 0; i < 10'000; ++i) {
    const SimPipeline pipeline = draw_interleaved(draws);
    const Int stages = static_cast<Int>(pipeline.stages.size());
    if (!interleaving_refusal(pipeline.microbatches, stages, group_of(pipeline)).empty()) continue;
    ++taken;
    const Result result = simulate::simulate(Schedule{{pipeline}});
    REQUIRE_FALSE(result.deadlock);
    Int one_alone = 0;
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const SimStage& stage = pipeline.stages[s];
      const std::vector<SimChunk>& chunks = stage.parts[0].chunks;
      const Int v = static_cast<Int>(chunks.size());
      const Int crossed = s + 1 < pipeline.stages.size() ? v : v - 1;
      for (const SimChunk& chunk : chunks) one_alone += (chunk.forward + chunk.backward).value();
      one_alone += 2 * crossed * stage.latency.value();
      REQUIRE(result.stages[s].max_in_flight == std::min(pipeline.microbatches * v, stage.warmup + 1));
      REQUIRE(result.stages[s].idle >= ns(0));
    }
    REQUIRE(result.last_backward >= ns(one_alone));
  }
  CHECK(taken > 2'000);
}

TEST_CASE("property simulate: one chunk, interleaved, is 1F1B") {
  Draws draws(5);
  for (int i = 0; i < 5'000; ++i) {
    const SimPipeline plain = draw_plain(draws, ScheduleKind::k1F1B);
    SimPipeline interleaved = plain;
    interleaved.kind = ScheduleKind::kInterleaved;
    interleaved.group = draws.pick(0, 7);
    for (SimStage& stage : interleaved.stages) {
      stage.parts[0].chunks = {{stage.parts[0].forward, stage.parts[0].backward}};
    }
    const Result a = run(plain);
    const Result b = run(interleaved);
    REQUIRE(a.deadlock == b.deadlock);
    REQUIRE(ends_of(a, plain.stages.size()) == ends_of(b, plain.stages.size()));
    for (std::size_t s = 0; s < plain.stages.size(); ++s) {
      REQUIRE(a.stages[s].busy == b.stages[s].busy);
      REQUIRE(a.stages[s].max_in_flight == b.stages[s].max_in_flight);
    }
  }
}

TEST_CASE("property simulate: GPipe takes its form, and 1F1B with enough in flight is never slower") {
  // All forward passes queue at the slowest of them or at the busiest link, all backward passes likewise:
  //   sum T + 2 sum c + (M - 1) (max(f, busy) + max(w, busy)).
  Draws draws(6);
  for (int i = 0; i < 10'000; ++i) {
    Numbers p(static_cast<std::size_t>(draws.pick(1, 8)));
    p.M = draws.pick(1, 24);
    Int slowest_f = 0, slowest_w = 0;
    for (std::size_t s = 0; s < p.size(); ++s) {
      p.f[s] = draws.pick(1, 600);
      p.w[s] = draws.pick(1, 1200);
      p.c[s] = draws.sometimes(1500);
      p.busy[s] = draws.pick(0, p.c[s]);
      const Int link = s + 1 < p.size() ? p.busy[s] : 0;
      slowest_f = std::max({slowest_f, p.f[s], link});
      slowest_w = std::max({slowest_w, p.w[s], link});
    }
    set_in_flight(p, period(p));
    SimPipeline pipeline = pipeline_of(p);
    const Int one_by_one = simulate::simulate(Schedule{{pipeline}}).iteration.value();
    pipeline.kind = ScheduleKind::kGPipe;
    const Result all = simulate::simulate(Schedule{{pipeline}});
    REQUIRE(all.iteration.value() == latency(p) + (p.M - 1) * (slowest_f + slowest_w));
    REQUIRE(all.stages[0].max_in_flight == p.M);
    REQUIRE(one_by_one <= all.iteration.value());
  }
}

TEST_CASE("property simulate: a split backward pass is never slower than 1F1B, and holds no more than it may") {
  // While an executor works without a pause it has done all it was given; so each pass begins after at most the work
  // that 1F1B puts before it, and gradients leave earlier.
  Draws draws(7);
  int faster = 0;
  for (int i = 0; i < 10'000; ++i) {
    SimPipeline pipeline = draw_plain(draws, ScheduleKind::kZeroBubble);
    const Result split = simulate::simulate(Schedule{{pipeline}});
    REQUIRE_FALSE(split.deadlock);
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      REQUIRE(split.stages[s].max_in_flight <= pipeline.stages[s].warmup + 1 + pipeline.stages[s].deferrable);
    }
    pipeline.kind = ScheduleKind::k1F1B;
    const Result whole = simulate::simulate(Schedule{{pipeline}});
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) REQUIRE(split.stages[s].busy == whole.stages[s].busy);
    REQUIRE(split.iteration <= whole.iteration);
    faster += split.iteration < whole.iteration ? 1 : 0;
  }
  CHECK(faster > 5'000);
}

TEST_CASE("property simulate: no split backward pass beats a stage's work behind the forward passes in front of it") {
  Draws draws(8);
  int close = 0;
  for (int i = 0; i < 10'000; ++i) {
    const SimPipeline pipeline = draw_plain(draws, ScheduleKind::kZeroBubble);
    Nanoseconds fill;
    Nanoseconds passage;
    Nanoseconds least;
    for (const SimStage& stage : pipeline.stages) {
      const SimPart& part = stage.parts[0];
      least = std::max(least, fill + (part.forward + part.backward) * pipeline.microbatches);
      const bool last = &stage == &pipeline.stages.back();
      fill += part.forward + (last ? Nanoseconds(0) : stage.latency);
      passage += part.forward + part.backward - part.weight_gradient + (last ? Nanoseconds(0) : stage.latency * 2);
    }
    const Result result = simulate::simulate(Schedule{{pipeline}});
    REQUIRE(result.last_backward >= std::max(least, passage));
    close += result.last_backward * 10 < std::max(least, passage) * 11 ? 1 : 0;
  }
  CHECK(close > 1'000);
}

TEST_CASE("property simulate: equal stages and thirds have the bubble of ZB-H1") {
  // (p - 1) (F + B - W) (arXiv 2401.10241, table 2), with no more than p microbatches in flight anywhere.
  for (Int p = 1; p <= 8; ++p) {
    for (Int M = p; M <= 3 * p; ++M) {
      SimPipeline pipeline{{}, M, ScheduleKind::kZeroBubble};
      SimPart part{ns(10), ns(20), ns(0), ns(0)};
      part.weight_gradient = ns(10);
      pipeline.stages.resize(static_cast<std::size_t>(p));
      for (SimStage& stage : pipeline.stages) stage.parts = {part};
      const Result result = simulate::simulate(Schedule{{with_classic_warmups(pipeline)}});
      CAPTURE(p, M);
      CHECK(result.iteration == ns(30 * M + 10 * (p - 1)));
      for (const StageUse& use : result.stages) CHECK(use.max_in_flight <= p);
    }
  }
}
