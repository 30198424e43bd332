// Decisions about a plan that runs: what became of it is told as data.
#include "tangram/planner/replan.hpp"

#include "inputs.hpp"
#include "tangram/evolve/refit.hpp"

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

TEST_CASE("replan: plans with colocated encoders are priced anew, kept and made") {
  const auto model = model_of_file("tests/cli/inputs/two_encoders.yaml");
  const cluster::Fleet fleet = tiny_fleet();
  PlanOptions options;
  options.search.placement = compose::EncoderPlacement::kColocated;
  for (const bool pipelines : {false, true}) {
    model::Model job = model;
    job.job.allow.pipeline = pipelines;
    const auto planned = make_plan(fleet, job, options);
    REQUIRE(planned);
    const evolve::Refit now = evolve::refit(planned->plan, fleet, job, {});
    REQUIRE(now.fits());
    REQUIRE(now.plan->colocated);
    CHECK(now.plan->predicted.closed_form == planned->plan.predicted.closed_form);
    for (std::size_t s = 0; s < now.plan->stages.size(); ++s) {
      const plan::PartPrediction& was = planned->plan.stages[s].parts.front().predicted;
      CHECK(now.plan->stages[s].parts.front().predicted.peak_memory == was.peak_memory);
    }
    const auto kept = replan(planned->plan, fleet, job, options, 0.05);
    REQUIRE(kept);
    CHECK_FALSE(kept->change);
    CHECK(kept->now->predicted.iteration == planned->plan.predicted.iteration);
  }

  // Unasked, where it is best: a fleet on which one with pipelines alone would be slower.
  PlanOptions usual = usual_options(fleet, model);
  const auto best = make_plan(fleet, model, usual);
  REQUIRE(best);
  const auto again = replan(best->plan, fleet, model, usual, 0.05);
  REQUIRE(again);
  CHECK_FALSE(again->change);
  const cluster::Fleet slower = fleet_of_file("tests/cli/inputs/tiny.json", {{}, {}, {"node(big-1).compute=50%"}});
  const auto moved = replan(best->plan, slower, model, usual, 0);
  const auto anew = make_plan(slower, model, usual);
  REQUIRE(moved);
  REQUIRE(anew);
  CHECK(moved->next.predicted.iteration <= anew->plan.predicted.iteration);
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
