// Selections by hand, and what is refused.
#include "tangram/multimodal/join.hpp"

#include "support/catch.hpp"
#include "tangram/multimodal/closed_form.hpp"
#include "tangram/multimodal/share.hpp"

using namespace tangram;
using namespace tangram::multimodal;

namespace {

Choice one_stage(std::vector<int> units, std::int64_t forward, std::int64_t backward, int key = 0) {
  Choice choice;
  choice.units = std::move(units);
  choice.key = key;
  choice.stages = {{{.T = forward + backward, .F = forward, .A = forward + backward, .o = 0, .n_max = 8}}};
  return choice;
}

// Four fast units and four slow ones; ten microbatches. The encoder runs on two units of either class.
JoinProblem old_and_new_cards() {
  JoinProblem problem;
  problem.microbatches = 10;
  problem.inventory = {4, 4};
  problem.language = {one_stage({4, 0}, 10, 20), one_stage({2, 0}, 20, 40)};
  problem.encoders.push_back({{one_stage({2, 0}, 4, 8), one_stage({0, 2}, 8, 16)}, {1, 1, Price{1, 1}}});
  return problem;
}

template <class Problem>
std::vector<std::string> refused(const Problem& problem) {
  std::vector<std::string> places;
  const auto answer = check(problem);
  if (answer) return places;
  for (const Diagnostic& diagnostic : answer.error()) places.push_back(diagnostic.pointer);
  return places;
}

using Places = std::vector<std::string>;

}  // namespace

TEST_CASE("the encoder goes to the old cards, because the language model needs the new ones") {
  // On old cards: 8 + 1 until the language model begins, 30 a microbatch, 1 + 16 back: 9 + 30 + 17 + 9 * 30 = 326.
  // On new ones the language model has two: 4 + 1 + 60 + 9 + 9 * 60.
  JoinProblem problem = old_and_new_cards();
  const JoinResult found = join(problem);
  REQUIRE(found.best.has_value());
  CHECK(found.best->language == 0);
  CHECK(found.best->encoders == std::vector<int>{1});
  CHECK(found.time == 326);
  CHECK(found.bound == 326);
  CHECK(found.finished);
  SECTION("no faster plan than one that is known") {
    const JoinResult none = join(problem, 326);
    CHECK_FALSE(none.best.has_value());
    CHECK(none.bound == 326);
  }
  SECTION("without old cards") {
    problem.inventory[1] = 0;
    CHECK(join(problem).time == 4 + 1 + 60 + 9 + 9 * 60);
  }
  SECTION("with too few cards") {
    problem.inventory = {2, 1};
    const JoinResult none = join(problem);
    CHECK_FALSE(none.best.has_value());
    CHECK(none.bound == INT64_MAX);
  }
  SECTION("a slow link to the old cards, and another to the new") {
    // 8 + 200 + 30 + 200 + 16 there and back, in five microbatches, which is the most the encoder holds.
    problem.encoders[0].choices[1].key = 1;
    problem.encoders[0].choices[1].stages[0].plan.n_max = 5;
    problem.encoders[0].boundary = {1, {Price{1, 1}, Price{200, 20}}};
    const JoinResult slow = join(problem);
    REQUIRE(slow.best.has_value());
    CHECK(slow.best->encoders == std::vector<int>{0});
    problem.inventory[0] = 4;
    problem.language.pop_back();
    CHECK(join(problem).time == 8 + 200 + 30 + 200 + 16 + 9 * 91);
  }
}

TEST_CASE("a join without time ends with what it has") {
  const JoinResult found = join(old_and_new_cards(), INT64_MAX, Deadline([] { return true; }));
  CHECK_FALSE(found.finished);
  CHECK_FALSE(found.best.has_value());
  CHECK(found.bound == 9 * 30);
}

TEST_CASE("a join is taken as it is, or every fault is named by its place") {
  JoinProblem problem = old_and_new_cards();
  CHECK(refused(problem).empty());
  SECTION("units") {
    problem.language[1].units = {1};
    problem.encoders[0].choices[0].units[1] = -1;
    CHECK(refused(problem) == Places{"/language/1/units", "/encoders/0/choices/0/units"});
  }
  SECTION("stages and hops") {
    problem.language[0].hops.emplace_back();
    problem.language[1].stages[0].plan.T = 0;
    CHECK(refused(problem) == Places{"/language/0/hops", "/language/1/stages/0/F", "/language/1/stages/0/T"});
  }
  SECTION("nothing to train") {
    Stage& stage = problem.language[1].stages[0];
    stage.plan.T = stage.plan.A = stage.plan.F;
    stage.prefetch = 2;
    CHECK(refused(problem) == Places{"/language"});
  }
  SECTION("keys without prices, modules without choices") {
    problem.language[0].key = 1;
    problem.encoders.push_back({{}, {1, 2, Price{-1, 0}}});
    problem.microbatches = 0;
    CHECK(refused(problem) ==
          Places{"/microbatches", "/encoders/0/boundary", "/encoders/1/choices", "/encoders/1/boundary"});
  }
}

TEST_CASE("a faster encoder that keeps more may cost the language model its pipeline") {
  // Two stages of 10 + 20 with 100 bytes free and 20 a microbatch: two microbatches in flight on the first leave 60.
  ShareProblem problem;
  problem.microbatches = 4;
  problem.graph_warmup = true;
  SharedPipeline& pipeline = problem.language.emplace_back();
  pipeline.stages.assign(2, {{.T = 30, .F = 10, .A = 30, .o = 7, .n_max = 8}});
  pipeline.hops.emplace_back();
  pipeline.memory.assign(2, {100, 20});
  pipeline.sync = 3;
  problem.layouts = {1, 1, {}};
  problem.layouts(0, 0) = {{.forward = 40, .backward = 80, .step = 9, .reserve = 60},
                           {.forward = 20, .backward = 40, .sync = 1, .reserve = 61}};
  const auto found = share(problem);
  REQUIRE(found.has_value());
  CHECK(found->layouts == std::vector<int>{0});
  CHECK(found->time == 40 + 60 + 3 * 30 + 80 + 3 + 9);
  SECTION("with a byte more") {
    pipeline.memory.assign(2, {101, 20});
    CHECK(share(problem)->layouts == std::vector<int>{1});
    CHECK(share(problem)->time == 20 + 60 + 3 * 30 + 40 + 3 + 1 + 7);
  }
  SECTION("with too few") {
    pipeline.memory.assign(2, {99, 20});
    CHECK_FALSE(share(problem).has_value());
  }
  SECTION("faults are named by their places") {
    CHECK(refused(problem).empty());
    problem.rounds = 0;
    pipeline.allocation = 1;
    pipeline.sync = -1;
    pipeline.memory.pop_back();
    problem.layouts(0, 0)[1].reserve = -1;
    CHECK(refused(problem) ==
          Places{"/rounds", "/layouts", "/language/0/allocation", "/language/0/sync", "/language/0"});
  }
}
