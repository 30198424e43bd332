// What of a large plan is executed.
#include "reduction.hpp"

#include "scale.hpp"
#include "support/catch.hpp"
#include "unit/execute/tiny_plan.hpp"

using namespace tangram;
using namespace tangram::execute;
using namespace tangram::execute::tiny;

namespace {

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const std::vector<Window>& windows) {
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const Window& w : windows) result.emplace_back(w.first, w.last);
  return result;
}

}  // namespace

// Replicas end every 2 samples in stage 0; expert groups of four replicas end every 16 in stage 1: windows of 16.
TEST_CASE("two windows of samples stay, cut where neither a replica nor an expert group is") {
  const plan::LaunchPlan plan = make_plan(
      make_model("mm"), {{128, 4, {{1, {{{1, 1, 64, 1, 1, false}, 128}}}, {2, {{{2, 1, 32, 8, 1, true}, 128}}}}}});
  CHECK(pairs(kept_windows(plan, plan.pipelines[0])) ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 16}, {16, 32}});
  const Job job = reduce(plan).job;
  // Shares of 2 and 4 samples: units of 2, so that stage 0 has 16 replicas of 1 and stage 1 8 of 2.
  CHECK(job.pipelines[0].microbatch == 16);
  CHECK(job.pipelines[0].stages[0].parts[0].degrees.dp == 16);
  CHECK(job.pipelines[0].stages[1].parts[0].degrees.dp == 8);
  CHECK(job.pipelines[0].stages[1].parts[0].lanes.front() == Range{0, 2});
  CHECK(job.ranks.size() == 16 + 16);
}

// 32 samples on 6 replicas: windows end at 6, 12, 17, 22, 27 and 32, and 30 is the end of the last microbatch.
TEST_CASE("of unequal replicas two of each kind stay, and that in which the last microbatch ends") {
  PipelineSpec spec{32, 4, {{2, {{{1, 1, 6, 1, 1, false}, 32}}}}};
  spec.missing = 2;
  const plan::LaunchPlan plan = make_plan(make_model("dd"), {spec});
  CHECK(pairs(kept_windows(plan, plan.pipelines[0])) ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 6}, {6, 12}, {12, 17}, {17, 22}, {27, 32}});
  const Job job = reduce(plan).job;
  CHECK(job.pipelines[0].microbatch == 27);
  CHECK(job.pipelines[0].last_microbatch == 25);
  CHECK(job.pipelines[0].stages[0].parts[0].lanes == std::vector<Range>{{0, 6}, {6, 12}, {12, 17}, {17, 22}, {22, 27}});
}

TEST_CASE("both parts of a mixed stage stay") {
  const plan::LaunchPlan plan =
      make_plan(make_model("d"), {{24, 1, {{1, {{{1, 1, 8, 1, 1, false}, 16}, {{1, 1, 8, 1, 1, false}, 8}}}}}});
  CHECK(pairs(kept_windows(plan, plan.pipelines[0])) ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 2}, {2, 4}, {16, 17}, {17, 18}});
}

TEST_CASE("of pipelines that are alike two stay, of others all") {
  const PipelineSpec one{2, 4, {{1, {{{}, 2}}}, {2, {{{}, 2}}}}};
  const PipelineSpec other{4, 2, {{2, {{{2, 1, 1, 1, 1, false}, 4}}}}};
  const plan::LaunchPlan plan = make_plan(make_model("dd"), {one, one, other, one});
  CHECK(kept_pipelines(plan) == std::vector<int>{0, 1, 2});
}

// Ends of the model, the change from dense to experts at 4, the cut at 10 and recompute up to block 12.
TEST_CASE("blocks stay on both sides of everything that changes") {
  const plan::LaunchPlan plan =
      make_plan(make_model("ddddmmmmmmmmmmmmmmmm"),
                {{1, 2, {{10, {{{}, 1}}}, {20, {{{}, 1, {0, cost::RecomputeMode::kFull, 2}}}}}}});
  CHECK(kept_blocks(plan, {0}) == std::vector<int>{0, 3, 4, 9, 10, 11, 12, 19});
  const std::vector<cost::BlockPolicy> kept = reduce(plan).job.pipelines[0].stages[1].parts[0].blocks;
  CHECK(std::ranges::count(kept, cost::RecomputeMode::kFull, &cost::BlockPolicy::recompute) == 2);
}

TEST_CASE("microbatches fill the deepest warm-up and two more") {
  const plan::LaunchPlan plan = make_plan(make_model("dd"), {{1, 500, {{1, {{{}, 1}}, 3}, {2, {{{}, 1}}}}}});
  CHECK(plan.stages[0].warmup == 4);
  CHECK(reduce(plan).job.pipelines[0].microbatches == 7);
}

TEST_CASE("sequences end where every cp is cut, with two ranks left and no expert group torn") {
  const auto folds = [](cost::Degrees one, cost::Degrees other) {
    return context_folds(make_plan(make_model("mm"), {{4, 1, {{1, {{one, 4}}}, {2, {{other, 4}}}}}}));
  };
  CHECK(folds({4, 64, 1, 1, 1, true}, {8, 64, 1, 1, 1, true}) == 32);  // two of 64 are left
  CHECK(folds({1, 4, 1, 1, 1, false}, {1, 6, 1, 1, 1, false}) == 2);   // two of four, three of six
  CHECK(folds({1, 4, 1, 1, 1, false}, {1, 1, 1, 1, 1, false}) == 1);
  CHECK(folds({1, 2, 1, 1, 1, false}, {1, 2, 1, 1, 1, false}) == 1);
  CHECK(folds({2, 8, 1, 8, 1, true}, {1, 8, 1, 1, 1, false}) == 2);    // experts on 8 ranks: tp 2 x cp 4
  CHECK(folds({1, 8, 2, 16, 1, false}, {1, 8, 1, 1, 1, false}) == 1);  // experts over two replicas
}

// tp 4 beside tp 8: 8 lines of the grid for each of the two context ranks that are left, of 64.
TEST_CASE("ranks behind the end of the sequence are left out") {
  const plan::LaunchPlan plan =
      make_plan(make_model("dd"), {{1, 1, {{1, {{{4, 64, 1, 1, 1, true}, 1}}}, {2, {{{8, 64, 1, 1, 1, true}, 1}}}}}});
  const Job job = reduce(plan).job;
  CHECK(job.model.positions == 16);
  CHECK(job.pipelines[0].stages[0].parts[0].degrees.cp == 2);
  CHECK(job.ranks.size() == 2 * 4 + 2 * 8);
}

// A grid of 8 lines on 64 positions; the plan lists a transfer that ends at 30 instead of 32.
TEST_CASE("a transfer that ends beside the grid keeps a place of its own") {
  plan::LaunchPlan plan =
      make_plan(make_model("dd"), {{1, 1, {{1, {{{1, 2, 1, 1, 1, false}, 1}}}, {2, {{{1, 1, 1, 1, 1, false}, 1}}}}}});
  CHECK(PositionScale(plan, 8).at(64, 32) == 4);
  plan.boundaries[0].transfers[0].seq_last = 30;
  const PositionScale scale(plan, 8);
  CHECK(scale.total() == 16);
  CHECK(scale.at(64, 0) == 0);
  CHECK(scale.at(64, 30) == 1);
  CHECK(scale.at(64, 32) == 8);
  CHECK(scale.at(64, 64) == 16);
}
