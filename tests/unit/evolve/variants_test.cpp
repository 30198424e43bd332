#include "tangram/evolve/variants.hpp"
#include "support/catch.hpp"
#include "tangram/evolve/refit.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::evolve;
using namespace tangram::plan::example;

namespace {

plan::LaunchPlan two_pipelines(World& world) {
  return make_plan(world, make_composition(world, 2, 4, 4,
                                           {{4, {{0, 8, 4, strategy(2, 1, 4)}}}, {8, {{1, 8, 4, strategy(4, 1, 2)}}}}));
}

}  // namespace

TEST_CASE("a cut moves in all pipelines that have it") {
  World world = make_world();
  const plan::LaunchPlan plan = two_pipelines(world);
  const auto later = with_cut_moved(plan, 0, 1);
  REQUIRE(later);
  for (const plan::Stage& stage : later->stages) {
    CHECK(stage.first() == (stage.id % 2 == 0 ? 0 : 5));
    CHECK(stage.last() == (stage.id % 2 == 0 ? 5 : 8));
  }
  // The variant can be priced: the first stage computes longer, the second shorter.
  const auto before = refit(plan, world.fleet, world.model, {});
  const auto after = refit(*later, world.fleet, world.model, {});
  for (const Incompatibility& m : before.incompatibilities) UNSCOPED_INFO(m.code << " " << m.where << " " << m.text);
  REQUIRE((before.fits() && after.plan));
  const auto forward = [](const Refit& r, std::size_t stage) {
    return r.plan->stages[stage].parts[0].predicted.forward;
  };
  CHECK(forward(after, 0) > forward(before, 0));
  CHECK(forward(after, 1) < forward(before, 1));
}

TEST_CASE("no stage is left without blocks, and the end of the model is no cut") {
  World world = make_world();
  plan::LaunchPlan plan = two_pipelines(world);
  CHECK_FALSE(with_cut_moved(plan, 1, 1));
  for (plan::Stage& stage : plan.stages)
    (stage.first() == 0 ? stage.chunks.front().last : stage.chunks.front().first) = 1;
  CHECK_FALSE(with_cut_moved(plan, 0, -1));
  CHECK(with_cut_moved(plan, 0, 1));
}

TEST_CASE("a strategy changes in all pipelines that have the stage") {
  World world = make_world();
  const plan::LaunchPlan plan = two_pipelines(world);
  const plan::LaunchPlan variant = with_strategy(plan, 0, 0, strategy(4, 1, 2));
  CHECK(variant.stages[0].parts[0].strategy == strategy(4, 1, 2));
  CHECK(variant.stages[2].parts[0].strategy == strategy(4, 1, 2));
  CHECK(variant.stages[1].parts[0].strategy == plan.stages[1].parts[0].strategy);
}
