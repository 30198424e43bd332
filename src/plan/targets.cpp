#include "tangram/plan/assemble.hpp"
#include "target_rules.hpp"

namespace tangram::plan {

namespace {

TargetVerdict verdict_of(const LaunchPlan& plan, runtime::Target target) {
  if (plan.colocated && target != runtime::Target::kGeneric) {
    Rules rules{std::string(to_string(target))};
    rules.refuse("COLOCATED_ENCODERS", {},
                 target == runtime::Target::kMimo
                     ? "Megatron-Bridge gives each module ranks of its own, rank_offset ranges must not overlap: take "
                       "--placement disjoint"
                     : "no GPU runs encoders and language model in turn: take another --placement");
    return std::move(rules).verdict();
  }
  switch (target) {
    case runtime::Target::kGeneric: break;
    case runtime::Target::kMegatron: return megatron_verdict(plan);
    case runtime::Target::kFlagscale: return flagscale_verdict(plan);
    case runtime::Target::kMimo: return mimo_verdict(plan);
  }
  return Rules(std::string(to_string(target))).verdict();
}

}  // namespace

std::vector<TargetVerdict> target_verdicts(const LaunchPlan& plan) {
  std::vector<TargetVerdict> verdicts;
  for (const runtime::Runtime& runtime : runtime::runtimes()) verdicts.push_back(verdict_of(plan, runtime.target));
  return verdicts;
}

std::vector<TargetReason> reasons_against(const LaunchPlan& plan, runtime::Target target) {
  return verdict_of(plan, target).reasons;
}

model::Job as_run_by(runtime::Target target, model::Job job) {
  job.in_place_loss |= runtime::runtime_of(target).in_place_loss;
  return job;
}

std::vector<TargetReason> option_refusals(const runtime::ExecutionOptions& has, const model::Model& model,
                                          const std::string& prefix) {
  Rules rules{{}};
  refuse_options(rules, model, has, prefix);
  return std::move(rules).verdict().reasons;
}

std::vector<TargetReason> model_refusals(runtime::Target target, const model::Model& model) {
  Rules rules{std::string(to_string(target))};
  switch (target) {
    case runtime::Target::kGeneric: break;
    case runtime::Target::kMegatron:
      refuse_model(rules, model, "MLM");
      refuse_megatron_options(rules, model);
      break;
    case runtime::Target::kFlagscale:
      refuse_options(rules, model, runtime::runtime_of(target).options, "FS");
      refuse_model(rules, model, "FS");
      refuse_sharding_groups(rules, model.job, "FS");
      break;
    case runtime::Target::kMimo:
      refuse_mimo_model(rules, model);
      refuse_sharding_groups(rules, model.job, "MIMO");
      break;
  }
  return std::move(rules).verdict().reasons;
}

}  // namespace tangram::plan
