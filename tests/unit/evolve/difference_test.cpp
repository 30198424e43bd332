#include "tangram/evolve/difference.hpp"

#include <fmt/format.h>

#include "support/catch.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::evolve;
using namespace tangram::plan::example;

namespace {

/// Two stages of four blocks, on a0 (tp 2, dp 4) and on b0 and b1 (tp 4, dp 2), but for what a test changes.
plan::LaunchPlan two_stages(World& world, int cut = 4, const cost::Strategy& second = strategy(4, 1, 2)) {
  return make_plan(world,
                   make_composition(world, 1, 4, 8, {{cut, {{0, 8, 4, strategy(2, 1, 4)}}}, {8, {{1, 8, 4, second}}}}));
}

/// The same plan with the names of two hosts exchanged.
void swap_hosts(plan::LaunchPlan& plan, const std::string& a, const std::string& b) {
  for (plan::Rank& rank : plan.ranks) {
    if (rank.host == a || rank.host == b) rank.host = rank.host == a ? b : a;
  }
}

}  // namespace

TEST_CASE("a plan does not differ from itself") {
  World world = make_world();
  const plan::LaunchPlan plan = two_stages(world);
  const Difference d = difference(plan, plan);
  CHECK(d.same_body);
  CHECK(d.same_structure());
  CHECK(d.gpus == GpuCounts{16, 0, 0, 0});
}

TEST_CASE("other provenance is no difference, other predictions are none of the structure") {
  World world = make_world();
  const plan::LaunchPlan plan = two_stages(world);
  plan::LaunchPlan other = plan;
  other.provenance.note = "found otherwise";
  CHECK(difference(plan, other).same_body);
  other.predicted.iteration += Nanoseconds(1);
  CHECK_FALSE(difference(plan, other).same_body);
  CHECK(difference(plan, other).same_structure());
}

TEST_CASE("a moved cut changes the work of both stages' GPUs") {
  // Four layers each, then five and three: all 8 + 8 GPUs hold other layers than before.
  World world = make_world();
  const plan::LaunchPlan before = two_stages(world);
  const Difference d = difference(before, two_stages(world, 5));
  REQUIRE(d.stages.size() == 2);
  CHECK(d.stages[0] == StagePair{0, 0, true, false, 0, false});
  CHECK(d.stages[1] == StagePair{1, 1, true, false, 0, false});
  CHECK(d.gpus == GpuCounts{0, 16, 0, 0});
  CHECK(d.gpus.moved() == 16);
}

TEST_CASE("degrees change the work of one stage alone") {
  World world = make_world();
  const plan::LaunchPlan before = two_stages(world);
  const Difference d = difference(before, two_stages(world, 4, strategy(2, 1, 4)));
  CHECK(d.stages[0].same());
  CHECK(d.stages[1] == StagePair{1, 1, false, false, 0, true});
  CHECK(d.gpus == GpuCounts{8, 8, 0, 0});
}

TEST_CASE("ZeRO is a difference of the stage, not of what its GPUs compute") {
  World world = make_world();
  const plan::LaunchPlan before = two_stages(world);
  const Difference d = difference(before, two_stages(world, 4, strategy(4, 1, 2, 1, 1, 1)));
  CHECK(d.stages[1].inside);
  CHECK(d.gpus == GpuCounts{16, 0, 0, 0});
}

TEST_CASE("another host of the same kind joins and one leaves") {
  // Stage 1 ran on b0 and b1, now on b0 and b2: four GPUs leave, four join.
  World world = make_world();
  const plan::LaunchPlan before = two_stages(world);
  plan::LaunchPlan after = before;
  swap_hosts(after, "b1", "b2");
  const Difference d = difference(before, after);
  CHECK(d.stages[0].same());
  CHECK(d.stages[1] == StagePair{1, 1, false, true, 4, false});
  CHECK(d.gpus == GpuCounts{12, 0, 4, 4});
}

TEST_CASE("hosts of one stage in another order are the same GPUs") {
  World world = make_world();
  const plan::LaunchPlan before = two_stages(world);
  plan::LaunchPlan after = before;
  swap_hosts(after, "b0", "b1");
  const Difference d = difference(before, after);
  CHECK(d.stages[1] == StagePair{1, 1, false, true, 0, false});
  CHECK(d.gpus == GpuCounts{16, 0, 0, 0});
}

TEST_CASE("a stage is paired with the one it shares most GPUs with; what is left is new or gone") {
  // Three stages become two: the last on B, which takes its layers, is the old stage 1; the old stage 2 on C is gone.
  World world = make_world();
  const plan::LaunchPlan before = make_plan(world, make_composition(world, 1, 4, 8,
                                                                    {{4, {{0, 8, 4, strategy(2, 1, 4)}}},
                                                                     {7, {{1, 8, 4, strategy(4, 1, 2)}}},
                                                                     {8, {{2, 2, 4, strategy(2, 1, 1)}}}}));
  const plan::LaunchPlan after = two_stages(world);
  const Difference d = difference(before, after);
  REQUIRE(d.stages.size() == 3);
  CHECK(d.stages[0].same());
  CHECK(d.stages[1] == StagePair{1, 1, true, false, 0, false});
  CHECK(d.stages[2] == StagePair{2, -1, false, false, 0, false});
  CHECK(d.gpus == GpuCounts{8, 8, 0, 2});
  const Difference back = difference(after, before);
  REQUIRE(back.stages.size() == 3);
  CHECK(back.stages[2] == StagePair{-1, 2, false, false, 0, false});
}

TEST_CASE("a stage that moves to GPUs that did nothing before is the same stage") {
  World world = make_world();
  const plan::LaunchPlan before = two_stages(world);
  plan::LaunchPlan after = before;
  swap_hosts(after, "a0", "a1");
  const Difference d = difference(before, after);
  CHECK(d.stages[0] == StagePair{0, 0, false, true, 8, false});
  CHECK(d.gpus == GpuCounts{8, 0, 8, 8});
}

TEST_CASE("what changes of a job has no name of its own") {
  World world = make_world();
  model::Model other = world.model;
  other.job.dropout = !other.job.dropout;
  CHECK(job_change(world.model, other) == "other settings of training");
}

TEST_CASE("a batch is of the job, a layer more of the model, what a plan may use of neither") {
  World world = make_world();
  const model::Model& model = world.model;
  model::Model other = model;
  other.job.allow.tp = false;
  CHECK((same_model(model, other) && job_change(model, other).empty()));
  other.job.global_batch = model.job.global_batch + 1;
  CHECK(same_model(model, other));
  CHECK(job_change(model, other) ==
        fmt::format("global batch {}, not {}", other.job.global_batch, model.job.global_batch));
  other.job.cuda_graphs = model::kGraphsOfBlocks;
  CHECK(job_change(model, other).ends_with("; cuda_graphs blocks, not none"));
  other.blocks.push_back(0);
  CHECK_FALSE(same_model(model, other));
}
