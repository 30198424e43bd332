// The planners' own formulas, of plans in the form of launch plans.
#include "tangram/baseline/formulas.hpp"

#include "small_setting.hpp"
#include "support/catch.hpp"
#include "tangram/baseline/baseline.hpp"

using namespace tangram;
using namespace tangram::baseline;

TEST_CASE("a formula gives for a planner's plan what the planner claimed, and nothing where it has no words") {
  const SmallSetting setting;
  const PlannerInput& input = setting.input;
  for (const char* name : {"metis", "sailor"}) {
    INFO(name);
    const Verdict verdict = first_usable(make_planner(name)->propose(input, Mode::kFaithful, {}), input, setting.judge);
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
