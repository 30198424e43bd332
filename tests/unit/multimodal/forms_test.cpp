// Closed forms and timetables by hand.
#include "support/catch.hpp"
#include "tangram/multimodal/closed_form.hpp"
#include "tangram/multimodal/colocated.hpp"
#include "tangram/multimodal/timetable.hpp"

using namespace tangram;
using namespace tangram::multimodal;

namespace {

using Counts = std::vector<std::int64_t>;

Stage stage_of(std::int64_t forward, std::int64_t backward, std::int64_t sync = 0) {
  return {{.T = forward + backward, .F = forward, .A = forward + backward + sync, .o = 3, .n_max = 100}};
}

// An image encoder of two stages and an audio encoder of one, a language model of two.
StageGraph two_encoders() {
  StageGraph graph;
  graph.microbatches = 8;
  graph.stages = {stage_of(2, 4), stage_of(2, 4), stage_of(3, 6, 20), stage_of(4, 8), stage_of(4, 8)};
  graph.edges = {{0, 1, {1, 1}}, {1, 3, {2, 1}}, {2, 3, {1, 1}}, {3, 4, {1, 1}}};
  return graph;
}

}  // namespace

TEST_CASE("two encoders and a language model, by hand") {
  // Forward: 0 ends at 2, 1 begins at 3 and ends at 5; the language model begins at max(5 + 2, 3 + 1) = 7, its second
  // stage at 12, which ends at 16. Back: 24 there, 25 to 33 on its first stage. The image encoder has its gradient at
  // 35 to 39, then 40 to 44; the audio encoder at 34 to 40, and synchronises until 60. P = 12.
  const StageGraph graph = two_encoders();
  const auto form = closed_form(graph);
  REQUIRE(form.has_value());
  CHECK(form->period == 12);
  CHECK(form->latency == 44);
  CHECK(form->time == 60 + 7 * 12 + 3);
  // Last: 1. Language model's first: x = 12 + 2 + 12 = 26, n = 3, Q = 36. Audio: x = 9 + 2 + 36 = 47, n = 4. Image: x =
  // 6 + 4 + 36 = 46, n = 4, Q = 46; x = 6 + 2 + 46 = 54, n = 5.
  CHECK(form->in_flight == Counts{5, 4, 4, 3, 1});
}

TEST_CASE("graph warm-ups count the longest path in front") {
  StageGraph graph = two_encoders();
  CHECK(graph_warmups(graph) == Counts{3, 2, 3, 1, 0});
  graph.graph_warmup = true;
  const auto form = closed_form(graph);
  REQUIRE(form.has_value());
  CHECK(form->in_flight == Counts{4, 3, 4, 2, 1});
  // The language model alone: 26 / 2 = 13. The image encoder's second stage and both: 6 + 4 + 26 = 36 in 3 - 1 + 1: 12.
  CHECK(form->period == 13);
  SECTION("memory for fewer than the graph asks for") {
    graph.stages[2].plan.n_max = 3;
    CHECK_FALSE(closed_form(graph).has_value());
    graph.microbatches = 3;
    CHECK(closed_form(graph).has_value());
  }
}

TEST_CASE("a frozen encoder costs its way forward, and its prefetch") {
  StageGraph graph;
  graph.microbatches = 4;
  graph.stages = {stage_of(9, 0), stage_of(4, 8)};
  graph.stages[0].prefetch = 2;
  graph.edges = {{0, 1, {1, 1}}};
  // 10 until the language model begins, 12 a microbatch.
  REQUIRE(closed_form(graph).has_value());
  CHECK(closed_form(graph)->time == 10 + 12 + 3 * 12 + 3);
  CHECK(timetable(graph, Counts{2, 1}) == 10 + 4 * 12 + 3);
  SECTION("slower than the language model, it is the period") {
    graph.stages[0].plan.T = graph.stages[0].plan.F = graph.stages[0].plan.A = 20;
    CHECK(closed_form(graph)->time == 21 + 12 + 3 * 20 + 3);
    CHECK(timetable(graph, Counts{2, 1}) == 21 + 12 + 3 * 20 + 3);
  }
  SECTION("its outputs are on the way for long: two of them in 9 + 31") {
    graph.edges[0].price.latency = 31;
    CHECK(closed_form(graph)->period == 20);
  }
  SECTION("memory for one output of two") {
    graph.stages[0].plan.n_max = 1;
    CHECK_FALSE(closed_form(graph).has_value());
  }
}

TEST_CASE("a frozen encoder that is prefetched costs no more than a hundredth while it is faster than a period") {
  // Behind the encoder's first pass and its way the language model runs as if it were alone.
  const auto time_of = [](std::optional<std::int64_t> forward) {
    StageGraph graph;
    graph.microbatches = 128;
    if (forward) {
      graph.stages.push_back(stage_of(*forward, 0));
      graph.stages.back().prefetch = 2;
    }
    const int before = static_cast<int>(graph.stages.size());
    for (int s = before; s < before + 4; ++s) {
      graph.stages.push_back(stage_of(40, 80));
      if (s > 0) graph.edges.push_back({s - 1, s, {1, 1}});
    }
    const auto form = closed_form(graph);
    REQUIRE(form.has_value());
    return form->time;
  };
  const std::int64_t alone = time_of(std::nullopt);
  for (const std::int64_t forward : {10, 60, 110}) {
    INFO("forward " << forward);
    CHECK(time_of(forward) - alone == forward + 1);
    CHECK(static_cast<double>(time_of(forward)) <= 1.01 * static_cast<double>(alone));
  }
}

TEST_CASE("encoders in front of a language model that blocks take their turns") {
  StageGraph graph;
  graph.microbatches = 1;
  graph.graph_warmup = graph.blocking_transfers = true;
  graph.stages = {stage_of(2, 4), stage_of(3, 6), stage_of(4, 8)};
  graph.edges = {{0, 2, {5, 5}}, {1, 2, {7, 7}}};
  // Outputs at 2 and 3, received one after the other until 7 and 14; 14 to 26; gradients are there at 31 and 38.
  CHECK(timetable(graph, Counts{2, 2, 1}) == 38 + 6 + 3);
  REQUIRE(closed_form(graph).has_value());
  CHECK(closed_form(graph)->time == 38 + 6 + 3);
  CHECK(closed_form(graph)->period == 12 + 5 + 7);
}

TEST_CASE("three phases by hand") {
  // Lanes of 10 and 12 forward, gather 2; four microbatches on two stages of 6 + 12: 2 * 18 + 3 * 18; broadcast 1;
  // lanes of 20 and 24; 5 to synchronise and 4 to step.
  Colocated plan;
  SuperLane& own = plan.super_lanes.emplace_back();
  own.lanes = {{0, 10, 20}, {1, 12, 24}};
  own.gather = 2;
  own.broadcast = 1;
  own.language.microbatches = 4;
  own.language.stages = {stage_of(6, 12), stage_of(6, 12)};
  own.language.edges = {{0, 1, {}}};
  plan.sync = 5;
  plan.step = 4;
  CHECK(closed_form(plan) == 12 + 2 + 90 + 1 + 24 + 5 + 4);
  CHECK(timetable(plan) == 12 + 2 + 90 + 1 + 24 + 5 + 4);
  SECTION("two rounds of half of it") {
    plan.rounds = 2;
    own.language.microbatches = 2;
    own.lanes = {{0, 5, 10}, {1, 6, 12}};
    CHECK(closed_form(plan) == 2 * (6 + 2 + 54 + 1 + 12) + 5 + 4);
    CHECK(timetable(plan) == 2 * (6 + 2 + 54 + 1 + 12) + 5 + 4);
  }
}
