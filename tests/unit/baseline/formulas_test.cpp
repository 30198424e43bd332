// The planners' own formulas, of plans in the form of launch plans.
#include "tangram/baseline/formulas.hpp"

#include "support/catch.hpp"
#include "tangram/baseline/baseline.hpp"

using namespace tangram;
using namespace tangram::baseline;

namespace {

constexpr const char* kFleet = R"({"schema": "tangram.cluster/1", "name": "small", "nodes": [
  {"name": "a", "gpus": [{"type": "A100-40GB-SXM", "count": 4}], "network": {"bandwidth_gbit_s": 50, "kind": "ethernet"}},
  {"name": "v", "gpus": [{"type": "V100-16GB-SXM", "count": 4}], "network": {"bandwidth_gbit_s": 25, "kind": "ethernet"}}]})";

constexpr const char* kModel = R"(schema: tangram.model/1
name: small
architecture: {vocabulary: 32000, hidden: 1024, layers: 8, heads: 16, ffn_hidden: 4096, gated: false, norm: layernorm}
training: {sequence_length: 1024, global_batch_samples: 64, precision: fp16}
)";

}  // namespace

TEST_CASE("a formula gives for a planner's plan what the planner claimed, and nothing where it has no words") {
  const cluster::Fleet fleet = *cluster::read_fleet(kFleet, "fleet.json");
  const model::Model model = *model::read_model(kModel, "model.yaml");
  const cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet, 0.1);
  const PlannerInput input = read_input(fleet, model, nullptr);
  const Judge judge{fleet, hierarchy, model, nullptr, FlopsPerSecond(1e15)};
  for (const char* name : {"metis", "sailor"}) {
    INFO(name);
    const Verdict verdict = first_usable(make_planner(name)->propose(input, Mode::kFaithful, {}), input, judge);
    const Candidate* usable = verdict.usable();
    REQUIRE(usable != nullptr);
    const auto claim = claim_of(name, *usable->plan, input);
    REQUIRE(claim);
    // A mis-costed claim is of the first stage alone.
    if (usable->label == Label::kOk) CHECK(*claim == Approx(usable->claimed));
    if (usable->label == Label::kMisCosted) CHECK(*claim > usable->claimed);
    plan::LaunchPlan other = *usable->plan;
    other.stages.front().parts.front().strategy.policy.recompute = cost::RecomputeMode::kFull;
    CHECK_FALSE(claim_of(name, other, input));
    CHECK_FALSE(claim_of("amp", *usable->plan, input));
  }
}
