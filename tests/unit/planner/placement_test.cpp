// Plans with the encoders of a multimodal model where they are wanted.
#include <algorithm>

#include "inputs.hpp"
#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/planner/plan.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

namespace {

// Encoders: blocks 0 to 5 and 6 to 9.
Planned placed(compose::EncoderPlacement placement, runtime::Target target = runtime::Target::kGeneric) {
  const auto model = model_of_file("tests/cli/inputs/two_encoders.yaml");
  PlanOptions options;
  options.target = target;
  options.search.placement = placement;
  auto planned = make_plan(tiny_fleet(), model, options);
  REQUIRE(planned);
  CHECK(plan::check(planned->plan).ok());
  return *std::move(planned);
}

const cost::Degrees& degrees_of(const plan::Stage& stage) { return stage.parts.front().strategy.degrees; }

bool has_stage(const plan::LaunchPlan& plan, int first, int last) {
  return std::ranges::any_of(plan.stages, [&](const plan::Stage& s) { return s.first() == first && s.last() == last; });
}

}  // namespace

TEST_CASE("placement: homogeneous plans have one set of degrees, and all encoders in the first stage") {
  const Planned planned = placed(compose::EncoderPlacement::kHomogeneous);
  for (const plan::Stage& stage : planned.plan.stages) {
    CHECK(stage.parts.size() == 1);
    CHECK(degrees_of(stage) == degrees_of(planned.plan.stages.front()));
    CHECK((stage.first() >= 10 || (stage.first() == 0 && stage.last() >= 10)));
  }
  CHECK(planned.plan.provenance.space.find("placement homogeneous") != std::string::npos);
}

TEST_CASE("placement: disjoint plans have a stage for each encoder, which has degrees of its own") {
  const Planned planned = placed(compose::EncoderPlacement::kDisjoint);
  CHECK(has_stage(planned.plan, 0, 6));
  CHECK(has_stage(planned.plan, 6, 10));
  CHECK(planned.plan.provenance.space.find("placement disjoint") != std::string::npos);
}

TEST_CASE("placement: none is better than the best of any, and the bounds of all hold") {
  const Planned any = placed(compose::EncoderPlacement::kAny);
  REQUIRE(any.plan.provenance.optimal);
  for (const auto placement : {compose::EncoderPlacement::kHomogeneous, compose::EncoderPlacement::kDisjoint}) {
    const Planned planned = placed(placement);
    CHECK(planned.plan.predicted.closed_form >= any.plan.provenance.search_bound);
    CHECK(planned.plan.provenance.search_bound >= any.plan.provenance.search_bound);
    CHECK(planned.plan.provenance.search_bound <= planned.plan.predicted.closed_form);
  }
}

TEST_CASE("placement: MIMO runs encoders apart, with degrees of their own, and the language model in one set") {
  const Planned planned = placed(compose::EncoderPlacement::kAny, runtime::Target::kMimo);
  CHECK(has_stage(planned.plan, 0, 6));
  CHECK(has_stage(planned.plan, 6, 10));
  const plan::Stage& last = planned.plan.stages.back();
  for (const plan::Stage& stage : planned.plan.stages) {
    if (stage.first() >= 10) CHECK(degrees_of(stage) == degrees_of(last));
    const auto [small, large] = std::minmax(degrees_of(stage).dp, degrees_of(last).dp);
    CHECK(large % small == 0);
  }
}

TEST_CASE("placement: words") {
  CHECK(compose::placement_named("disjoint") == compose::EncoderPlacement::kDisjoint);
  CHECK(compose::placement_named("homogeneous") == compose::EncoderPlacement::kHomogeneous);
  CHECK_FALSE(compose::placement_named("any"));
  CHECK(compose::placement_named("colocated") == compose::EncoderPlacement::kColocated);
  CHECK_FALSE(compose::placement_named("elsewhere"));
}
