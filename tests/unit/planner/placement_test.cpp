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

namespace {

/// Nodes of H100 and, if any, two of an older type, of 8 GPUs each.
cluster::Fleet hopper_and(const std::string& old_type, int hoppers = 8) {
  const auto nodes = [](const std::string& name, const std::string& gpu, int gigabits) {
    return R"({"name": ")" + name + R"(", "gpus": [{"type": ")" + gpu + R"(", "count": 8}], "network": {"cards": 8,
      "bandwidth_gbit_s": )" +
           std::to_string(gigabits) + R"(, "kind": "infiniband"}})";
  };
  std::string text = R"({"schema": "tangram.cluster/1", "name": "mixed", "nodes": [)" +
                     nodes("new-[1-" + std::to_string(hoppers) + "]", "H100-80GB-SXM", 400);
  if (!old_type.empty()) text += ", " + nodes("old-[1-2]", old_type, 200);
  return fleet_of_text(text + "]}");
}

/// Of `configs/models/hf`, with so many tiles a sample.
model::Model tiled_model(const std::string& name, int tiles) {
  const std::string text = R"({"schema": "tangram.model/1", "from": "configs/models/hf/)" + name +
                           R"(.json", "data": {"vision": {"mean": )" + std::to_string(tiles) +
                           R"(}}, "training": {"sequence_length": 8192, "global_batch_samples": 256}})";
  auto model = model::read_any_model(text, in_tree("model.json"));
  REQUIRE(model);
  return *std::move(model);
}

plan::LaunchPlan planned_on(const cluster::Fleet& fleet, const model::Model& model) {
  auto planned = make_plan(fleet, model, {});
  REQUIRE(planned);
  CHECK(plan::check(planned->plan).ok());
  return std::move(planned->plan);
}

}  // namespace

// What the search minimises is the closed form. The simulator chooses among the few best by it, and may find one of a
// smaller fleet faster by what the two differ: less than a hundredth.
TEST_CASE("placement: two older nodes never make InternVL3-78B slower, and are left out where they would") {
  const model::Model model = tiled_model("internvl3-78b", 6);
  const plan::LaunchPlan alone = planned_on(hopper_and(""), model);
  for (const char* old_type : {"V100-32GB-SXM", "A100-80GB-SXM"}) {
    INFO(old_type);
    const plan::LaunchPlan mixed = planned_on(hopper_and(old_type), model);
    CHECK(mixed.predicted.closed_form <= alone.predicted.closed_form);
    CHECK(to_seconds(mixed.predicted.iteration) <= 1.01 * to_seconds(alone.predicted.iteration));
    CHECK(mixed.provenance.relaxed_bound > Nanoseconds(0));
    CHECK(mixed.provenance.relaxed_bound <= mixed.provenance.search_bound);
    const bool uses_old = std::ranges::any_of(mixed.stages, [&](const plan::Stage& stage) {
      return std::ranges::any_of(
          stage.parts, [&](const plan::Part& part) { return mixed.island(part.island).device.name == old_type; });
    });
    if (uses_old) CHECK(mixed.predicted.closed_form < alone.predicted.closed_form);
  }
}

TEST_CASE("placement: encoders are colocated unasked where that is faster, on large fleets too") {
  const cluster::Fleet fleet = hopper_and("", 16);
  const model::Model model = tiled_model("llava-onevision-7b", 5);
  const plan::LaunchPlan in_pipelines = planned_on(fleet, model);
  const auto usual = make_plan(fleet, model, usual_options(fleet, model));
  REQUIRE(usual);
  CHECK(usual->plan.colocated);
  CHECK(usual->plan.predicted.iteration < in_pipelines.predicted.iteration);
}

TEST_CASE("placement: what is fixed of modules holds in all stages that have their blocks") {
  const cluster::Fleet fleet = tiny_fleet();
  const auto planned_with = [&](const std::vector<std::string>& words, compose::EncoderPlacement placement) {
    model::JobOverrides overrides;
    overrides.constraints = *model::read_constraints(words);
    PlanOptions options;
    options.search.placement = placement;
    return make_plan(fleet, model_of_file("tests/cli/inputs/two_encoders.yaml", overrides), options);
  };
  const auto free = planned_with({}, compose::EncoderPlacement::kAny);
  REQUIRE(free);
  for (const auto placement : {compose::EncoderPlacement::kAny, compose::EncoderPlacement::kDisjoint}) {
    const auto fixed = planned_with({"vision:tp=2", "gpus=Big", "audio:gpus=Small"}, placement);
    REQUIRE(fixed);
    plan::LaunchPlan plan = fixed->plan;
    CHECK(plan::check(plan).ok());
    CHECK(plan.predicted.closed_form >= free->plan.predicted.closed_form);
    CHECK(plan.provenance.search_bound <= plan.predicted.closed_form);
    for (const plan::Stage& stage : plan.stages) {
      const std::string& type = plan.island(stage.parts.front().island).device.name;
      if (stage.first() < 6) CHECK((degrees_of(stage).tp == 2 && type == "Big"));
      if (stage.first() < 10 && stage.last() > 6) CHECK(type == "Small");
    }
    // Its own constraints refuse another plan of the same model.
    plan.model.types[static_cast<std::size_t>(plan.model.blocks[0])].constraint.tp = 1;
    CHECK_FALSE(plan::check(plan).ok());
  }
  const auto colocated = planned_with({"vision:tp=1", "gpus=Big"}, compose::EncoderPlacement::kColocated);
  REQUIRE(colocated);
  CHECK(colocated->plan.colocated->encoders.front().layout.tp == 1);
  for (const auto& island : colocated->plan.islands) CHECK(island.device.name == "Big");

  CHECK_FALSE(planned_with({"vision:tp=3"}, compose::EncoderPlacement::kAny));
  const auto nowhere = planned_with({"vision:gpus=H100"}, compose::EncoderPlacement::kAny);
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().front().code == "no-gpus");
}

TEST_CASE("placement: a module fixed to what its plan has is planned the same") {
  const cluster::Fleet fleet = tiny_fleet();
  const plan::LaunchPlan free = placed(compose::EncoderPlacement::kDisjoint).plan;
  model::JobOverrides overrides;
  for (const auto& [first, module] : {std::pair(0, "vision"), std::pair(6, "audio")}) {
    const auto stage = std::ranges::find_if(free.stages, [&](const plan::Stage& s) { return s.first() == first; });
    REQUIRE(stage != free.stages.end());
    overrides.constraints.push_back(
        {module, {degrees_of(*stage).tp, 0, 0, {free.island(stage->parts.front().island).device.name}}});
  }
  PlanOptions options;
  options.search.placement = compose::EncoderPlacement::kDisjoint;
  const auto fixed = make_plan(fleet, model_of_file("tests/cli/inputs/two_encoders.yaml", overrides), options);
  REQUIRE(fixed);
  CHECK(fixed->plan.predicted.iteration == free.predicted.iteration);
}

TEST_CASE("placement: words") {
  CHECK(compose::placement_named("disjoint") == compose::EncoderPlacement::kDisjoint);
  CHECK(compose::placement_named("homogeneous") == compose::EncoderPlacement::kHomogeneous);
  CHECK_FALSE(compose::placement_named("any"));
  CHECK(compose::placement_named("colocated") == compose::EncoderPlacement::kColocated);
  CHECK_FALSE(compose::placement_named("elsewhere"));
}
