// Plans whose encoders run on the GPUs of the language model: what they promise, and that mistakes in them are found.
#include <algorithm>

#include "inputs.hpp"
#include "support/catch.hpp"
#include "tangram/execute/verify.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/planner/explain.hpp"
#include "tangram/planner/plan.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

namespace {

plan::LaunchPlan colocated(bool pipelines) {
  auto model = model_of_file("tests/cli/inputs/two_encoders.yaml");
  model.job.allow.pipeline = pipelines;
  if (pipelines) model.job.allow.dp = model.job.allow.replicas = model.job.allow.tp = false;
  PlanOptions options;
  options.search.placement = compose::EncoderPlacement::kColocated;
  auto planned = make_plan(tiny_fleet(), model, options);
  REQUIRE(planned);
  return std::move(planned->plan);
}

/// Codes of what check finds.
bool finds(const plan::LaunchPlan& plan, const std::string& code) {
  const plan::CheckReport report = plan::check(plan);
  return std::ranges::any_of(report.violations, [&](const plan::Violation& v) { return v.code == code; });
}

}  // namespace

TEST_CASE("colocated: without pipelines encoders take their turns for each microbatch or for all") {
  const plan::LaunchPlan plan = colocated(false);
  REQUIRE(plan.colocated);
  CHECK(plan.colocated->encoders.size() == 2);
  CHECK(plan.pipelined().block_count() == 8);
  CHECK(plan.model.block_count() == 18);
  CHECK(full_check(plan).ok());
  CHECK(plan.predicted.iteration <= plan.predicted.closed_form);
  CHECK(plan.provenance.search_bound <= plan.predicted.closed_form);
  CHECK(plan.provenance.relaxed_bound <= plan.provenance.search_bound);
}

TEST_CASE("colocated: pipelines of several stages take three phases") {
  const plan::LaunchPlan plan = colocated(true);
  REQUIRE(plan.colocated);
  REQUIRE(plan.pipelines.front().stages.size() > 1);
  CHECK(plan.colocated->turns == cost::EncoderTurns::kThreePhases);
  CHECK(full_check(plan).ok());
  for (const plan::Stage& stage : plan.stages) {
    const plan::Part& part = stage.parts.front();
    CHECK(part.predicted.peak_memory <= part.predicted.usable_memory);
    CHECK(part.encoders->held > Bytes(0));
    CHECK((part.encoders->embeddings > Bytes(0)) == stage.embedding);
    CHECK(part.predicted.gradient_sync_exposed == part.predicted.gradient_sync);
  }
}

TEST_CASE("colocated: a plan is read as it was written") {
  plan::LaunchPlan plan = colocated(true);
  const std::string text = plan::write_plan(plan);
  auto read = plan::read_plan(text, "plan.json");
  REQUIRE(read);
  CHECK(plan::write_plan(*read) == text);
  CHECK(read->colocated->encoders == plan.colocated->encoders);
  CHECK(full_check(*read).ok());
}

TEST_CASE("colocated: samples that differ cost what the slowest lane takes") {
  auto model = model_of_file("tests/cli/inputs/two_encoders.yaml");
  PlanOptions options;
  options.search.placement = compose::EncoderPlacement::kColocated;
  const auto even = make_plan(tiny_fleet(), model, options);
  for (model::Module& module : model.graph.modules) {
    if (module.kind == model::ModuleKind::kEncoder) module.items.p95 = 2.13 * module.items.mean;
  }
  const auto uneven = make_plan(tiny_fleet(), model, options);
  REQUIRE(even);
  REQUIRE(uneven);
  CHECK(full_check(uneven->plan).ok());
  CHECK(uneven->plan.predicted.iteration > even->plan.predicted.iteration);
  CHECK(uneven->plan.provenance.search_bound > even->plan.provenance.search_bound);
}

TEST_CASE("colocated: mistakes are found") {
  const plan::LaunchPlan good = colocated(true);
  const auto with = [&](auto change) {
    plan::LaunchPlan plan = good;
    plan.plan_id.clear();
    change(plan);
    return plan;
  };
  using Plan = plan::LaunchPlan;
  const auto encoders = [](Plan& plan) -> plan::EncoderPrediction& {
    return *plan.stages.back().parts.front().encoders;
  };
  CHECK(finds(with([&](Plan& p) { encoders(p).forward += Nanoseconds(1); }), "encoders-differ"));
  CHECK(finds(with([&](Plan& p) { encoders(p).held -= Bytes(1); }), "encoders-differ"));
  CHECK(
      finds(with([&](Plan& p) { p.stages.back().parts.front().predicted.peak_memory -= Bytes(1); }), "memory-differs"));
  CHECK(finds(with([](Plan& p) { p.colocated->gather += Nanoseconds(1); }), "encoders-differ"));
  CHECK(finds(with([](Plan& p) { p.colocated->encoders.front().layout.tp = 3; }), "encoder-lanes"));
  CHECK(finds(with([](Plan& p) { p.colocated->encoders.front().module = "sound"; }), "encoder-module"));
  CHECK(finds(with([](Plan& p) { p.colocated->turns = cost::EncoderTurns::kPerMicrobatch; }), "encoder-turns"));
  CHECK(finds(with([](Plan& p) { p.predicted.closed_form += Nanoseconds(1); }), "closed-form-differs"));
  CHECK(finds(with([](Plan& p) { p.colocated->encoders.pop_back(); }), "bad-reference"));
  CHECK(finds(with([](Plan& p) { p.stages.front().parts.front().encoders.reset(); }), "bad-reference"));
  CHECK(finds(with([](Plan& p) { p.model.job.allow.recompute_full = p.model.job.allow.zero1 = false; }),
              "technique-forbidden"));
}

TEST_CASE("colocated: a plan is executed and explained") {
  for (const bool pipelines : {false, true}) {
    const plan::LaunchPlan plan = colocated(pipelines);
    const auto verified = execute::verify(plan);
    REQUIRE(verified);
    CHECK(verified->ok());
    CHECK(verified->executed);
    const auto explained = explain(plan, tiny_fleet(), {}, {});
    REQUIRE(explained);
    CHECK(explained->iteration == plan.predicted.iteration);
    CHECK(explained->limits.empty());
    CHECK(std::ranges::all_of(explained->memory, [](const MemoryUse& use) { return use.encoders.has_value(); }));
    std::vector<compose::EncoderPlacement> elsewhere;
    for (const Alternative& other : explained->placements) {
      elsewhere.push_back(std::get<OtherPlacement>(other.change).placement);
      CHECK(other.iteration.has_value() == other.why_not.empty());
    }
    std::ranges::sort(elsewhere);
    using compose::EncoderPlacement;
    CHECK(elsewhere == std::vector{EncoderPlacement::kHomogeneous, EncoderPlacement::kDisjoint});
    CHECK(!explained->more.empty());
  }
}

TEST_CASE("colocated: a plan that the fleet does not hold is not explained") {
  cluster::Edits edits;
  edits.drop = {"gpu=Big"};
  CHECK(!explain(colocated(true), fleet_of_file("tests/cli/inputs/tiny.json", edits), {}, {}));
}

TEST_CASE("colocated: no runtime takes them, and each says so") {
  const plan::LaunchPlan plan = colocated(true);
  for (const auto target : {runtime::Target::kMegatron, runtime::Target::kFlagscale, runtime::Target::kMimo}) {
    const auto reasons = plan::reasons_against(plan, target);
    REQUIRE(reasons.size() == 1);
    CHECK(reasons.front().code == "COLOCATED_ENCODERS");
  }
}
