// What formats refuse, and how they say it. The rules of the targets have their own tests beside the plan module.
#include "plans.hpp"
#include "support/catch.hpp"
#include "tangram/export/export.hpp"

using namespace tangram;
using namespace tangram::exporting;

TEST_CASE("a refusal names the rule, the stages and what to do") {
  const auto made = export_plan(example::unequal_stages(), Format::kMegatron);
  REQUIRE_FALSE(made);
  const Diagnostic& first = made.error().front();
  CHECK(first.kind == ErrorKind::kInfeasible);
  CHECK(first.code == "MLM_TP_VARIES");
  CHECK(first.message ==
        "megatron cannot run this plan: MLM_TP_VARIES: tensor parallelism is one value for all stages (stages 1, 2)");
  CHECK(
      first.hint ==
      "tangram plan --target megatron finds the best plan that megatron can run; the format generic takes every plan");
}

TEST_CASE("a plan that does not pass its check is exported in no format") {
  plan::LaunchPlan plan = example::equal_stages();
  plan.ranks[3].gpu = plan.ranks[2].gpu;
  for (const FormatName& format : format_names()) {
    const auto made = export_plan(plan, format.format);
    REQUIRE_FALSE(made);
    CHECK(made.error().front().message.starts_with("the plan does not pass its check: "));
    CHECK(made.error().front().hint == "tangram check lists all that does not hold");
  }
}
