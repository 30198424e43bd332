// Decisions about a plan that runs: what became of it is told as data.
#include "tangram/planner/replan.hpp"

#include "inputs.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

namespace {

plan::LaunchPlan plan_of_today() {
  auto planned = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(planned);
  return std::move(planned->plan);
}

}  // namespace

TEST_CASE("replan: on the same fleet the plan is kept, and nothing is against it") {
  const auto replanned = replan(plan_of_today(), tiny_fleet(), mini_model(), {}, 0.05);
  REQUIRE(replanned);
  CHECK_FALSE(replanned->change);
  CHECK(replanned->fits);
  CHECK_FALSE(replanned->slower);
  CHECK(replanned->gone.empty());
  CHECK(replanned->incompatibilities.empty());
  REQUIRE(replanned->now);
  CHECK(replanned->now->predicted.iteration == replanned->old.predicted.iteration);
}

TEST_CASE("replan: GPUs that are gone are named, and the plan changes") {
  // big-2 has two of the four Big, which every good plan uses.
  const cluster::Fleet smaller = fleet_of_file("tests/cli/inputs/tiny.json", {{"node=big-2"}, {}, {}});
  const auto replanned = replan(plan_of_today(), smaller, mini_model(), {}, 0.05);
  REQUIRE(replanned);
  CHECK(replanned->change);
  CHECK_FALSE(replanned->fits);
  CHECK_FALSE(replanned->spares);  // no host is left over
  CHECK(replanned->gone == std::vector<evolve::Gpu>{{"big-2", 0}, {"big-2", 1}});
  CHECK(replanned->moves.difference.gpus.left == 2);
}

TEST_CASE("replan: a slower host makes the plan slower, stage by stage") {
  const cluster::Fleet slower = fleet_of_file("tests/cli/inputs/tiny.json", {{}, {}, {"node(big-1).compute=50%"}});
  const auto replanned = replan(plan_of_today(), slower, mini_model(), {}, 0.05);
  REQUIRE(replanned);
  CHECK(replanned->fits);
  CHECK(replanned->slower);
  REQUIRE_FALSE(replanned->slowdowns.empty());
  CHECK(replanned->slowdowns.front().factor > 1.5);
}

TEST_CASE("replan: a plan for a runtime is kept with a job that does not say what the runtime's loss is") {
  PlanOptions options;
  options.target = runtime::Target::kMegatron;
  auto planned = make_plan(tiny_fleet(), mini_model(), options);
  REQUIRE(planned);
  const auto replanned = replan(std::move(planned->plan), tiny_fleet(), mini_model(), {}, 0.05);
  REQUIRE(replanned);
  CHECK(replanned->fits);
  CHECK(replanned->incompatibilities.empty());
  CHECK_FALSE(replanned->change);
}
