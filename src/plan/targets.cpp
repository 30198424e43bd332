#include "tangram/plan/assemble.hpp"
#include "target_rules.hpp"

namespace tangram::plan {

std::vector<TargetVerdict> target_verdicts(const LaunchPlan& plan) {
  return {Rules("generic").verdict(), megatron_verdict(plan), flagscale_verdict(plan), mimo_verdict(plan)};
}

std::vector<TargetReason> model_refusals(runtime::Target target, const model::Model& model) {
  Rules rules{std::string(to_string(target))};
  if (target == runtime::Target::kMegatron) refuse_model(rules, model, "MLM");
  if (target == runtime::Target::kFlagscale) refuse_model(rules, model, "FS");
  return std::move(rules).verdict().reasons;
}

}  // namespace tangram::plan
