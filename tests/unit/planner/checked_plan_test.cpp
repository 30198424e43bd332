// What is written passes its check, and what is wrong with a plan that is read is found.
#include "tangram/planner/checked_plan.hpp"

#include "inputs.hpp"
#include "tangram/planner/plan.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

TEST_CASE("planner: a plan that somebody changed is a mistake, other figures of one that nobody changed are not") {
  const auto planned = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(planned);
  plan::LaunchPlan plan = planned->plan;
  plan.plan_id = plan::plan_digest(plan);
  CHECK(mistakes_in(plan, "plan.json").empty());
  plan.predicted.tokens_per_s *= 2;
  REQUIRE(mistakes_in(plan, "plan.json").size() == 2);
  CHECK(mistakes_in(plan, "plan.json").front().code == "plan-id");
  CHECK(mistakes_in(plan, "plan.json").front().where.file == "plan.json");
  CHECK(mistakes_in(plan, "plan.json").front().kind == ErrorKind::kInput);
  plan.plan_id = plan::plan_digest(plan);  // as a program writes it that counts otherwise
  CHECK(mistakes_in(plan, "plan.json").empty());
  CHECK_FALSE(full_check(plan).ok());
  plan.stages.front().embedding = false;
  plan.plan_id = plan::plan_digest(plan);
  CHECK(mistakes_in(plan, "plan.json").size() == 1);
  plan = planned->plan;
  plan.plan_id = plan::plan_digest(plan);
  plan.provenance.search_gap = 1;  // outside of the digest
  CHECK_FALSE(mistakes_in(plan, "plan.json").empty());
}

TEST_CASE("planner: a plan is written only if it reads back and passes its check") {
  auto planned = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(planned);
  CHECK(checked_text(planned->plan, tiny_fleet(), mini_model()));
  planned->plan.provenance.relaxed_bound = Nanoseconds::max();
  const auto refused = checked_text(planned->plan, tiny_fleet(), mini_model());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().kind == ErrorKind::kInternal);
}
