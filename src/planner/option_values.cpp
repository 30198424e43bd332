#include "option_values.hpp"

#include <algorithm>
#include <utility>

namespace tangram::planner {

namespace {

using model::ExecutionOption;
using model::Job;
using model::RecomputeModules;

RecomputeModules modules_of(const model::Model& model, const RecomputeModules& named) {
  model::Model other = model;
  other.job.recompute_modules = named;
  return model::recomputed_modules(other);
}

/// Without parts of a module that is recomputed as a whole.
RecomputeModules without_parts(RecomputeModules modules) {
  using enum model::RecomputeModule;
  return modules.has(kExperts) ? modules.without(kExpertActivation).without(kSharedExperts) : modules;
}

/// One module more or less, of those that the model has, or all.
std::vector<Job> with_other_modules(const model::Model& model) {
  RecomputeModules all;
  for (const auto& [_, module] : model::kRecomputeModuleNames) all.add(module);
  const RecomputeModules known = modules_of(model, all);
  const RecomputeModules now = model::recomputed_modules(model);
  const RecomputeModules usual = modules_of(model, {});
  std::vector<Job> jobs;
  const auto add = [&](const RecomputeModules& modules) {
    if (modules.empty() || modules == now) return;
    Job job = model.job;
    job.recompute_modules = modules == usual ? RecomputeModules{} : modules;
    if (std::ranges::find(jobs, job) == jobs.end()) jobs.push_back(std::move(job));
  };
  for (const auto& [_, module] : model::kRecomputeModuleNames) {
    if (known.has(module)) add(without_parts(now.has(module) ? now.without(module) : now.with({module})));
  }
  add(without_parts(known));
  return jobs;
}

/// Nothing, what attention keeps, what experts keep, or both: of these what the model has.
std::vector<Job> with_other_offloads(const model::Model& model) {
  using enum model::OffloadModule;
  const model::OffloadModules attention{kCoreAttention, kAttentionOutput};
  const model::OffloadModules experts{kExpertInput, kExpertActivation};
  std::vector<Job> jobs;
  for (const model::OffloadModules& modules :
       {model::OffloadModules{}, attention, model::OffloadModules{kExpertInput}, experts, attention.with(experts)}) {
    model::Model other = model;
    other.job.offload_modules = modules;
    other.job.offload_modules = model::offloaded_modules(other);
    const bool known = other.job == model.job || std::ranges::find(jobs, other.job) != jobs.end();
    if (!known) jobs.push_back(std::move(other.job));
  }
  return jobs;
}

}  // namespace

std::vector<Job> with_other_values(const model::Model& model, ExecutionOption option) {
  std::vector<Job> jobs;
  const auto add = [&](auto member, auto... values) {
    for (const auto value : {values...}) {
      if (model.job.*member == value) continue;
      jobs.push_back(model.job);
      jobs.back().*member = value;
    }
  };
  switch (option) {
    case ExecutionOption::kCudaGraphs:
      add(&Job::cuda_graphs, model::kNoGraphs, model::kGraphsOfBlocks, model::kGraphOfStep);
      break;
    case ExecutionOption::kExpertDispatch:
      add(&Job::expert_dispatch, model::ExpertDispatch::kAllToAll, model::ExpertDispatch::kDeepEp);
      break;
    case ExecutionOption::kExpertOverlap: add(&Job::overlap_experts, false, true); break;
    case ExecutionOption::kGatherOverlap: add(&Job::overlap_gather, false, true); break;
    case ExecutionOption::kTensorOverlap: add(&Job::overlap_tp, false, true); break;
    case ExecutionOption::kFusedLoss:
      add(&Job::fused_loss, model::FusedLoss::kNone, model::FusedLoss::kNative, model::FusedLoss::kTransformerEngine);
      break;
    case ExecutionOption::kRecomputeModules: return with_other_modules(model);
    case ExecutionOption::kOffloadModules: return with_other_offloads(model);
    case ExecutionOption::kContextExchange:
      add(&Job::context_exchange, model::ContextExchange::kRing, model::ContextExchange::kAllGather,
          model::ContextExchange::kAllToAll);
      break;
  }
  return jobs;
}

bool bears_on(ExecutionOption option, const model::Model& model) {
  const model::Techniques& allow = model.job.allow;
  switch (option) {
    case ExecutionOption::kExpertDispatch:
    case ExecutionOption::kExpertOverlap: return model.has_experts() && allow.ep;
    case ExecutionOption::kGatherOverlap: return allow.zero1;
    case ExecutionOption::kTensorOverlap: return allow.tp && allow.sp;
    case ExecutionOption::kRecomputeModules: return allow.recompute_selective;
    case ExecutionOption::kContextExchange:
      return allow.cp && std::ranges::any_of(model.types, &model::BlockType::attends);
    case ExecutionOption::kCudaGraphs:
    case ExecutionOption::kFusedLoss:
    case ExecutionOption::kOffloadModules: break;
  }
  return true;
}

bool is_of_memory(ExecutionOption option) {
  return option == ExecutionOption::kFusedLoss || option == ExecutionOption::kRecomputeModules ||
         option == ExecutionOption::kOffloadModules;
}

std::string_view needed_for(ExecutionOption option, const Job& job) {
  switch (option) {
    case ExecutionOption::kCudaGraphs:
      if (job.cuda_graphs.empty()) return "";
      return is_partial(job.cuda_graphs) ? "Transformer Engine" : "training without checks for NaN";
    case ExecutionOption::kExpertDispatch: return "DeepEP";
    case ExecutionOption::kExpertOverlap: return "PyTorch 2.6";
    case ExecutionOption::kTensorOverlap: return "Transformer Engine";
    case ExecutionOption::kContextExchange:
      return job.context_exchange == model::ContextExchange::kRing ? "" : "Transformer Engine 1.10";
    case ExecutionOption::kFusedLoss:
      return job.fused_loss == model::FusedLoss::kTransformerEngine ? "Transformer Engine and Megatron-LM before 0.19"
                                                                    : "";
    case ExecutionOption::kOffloadModules:
      return job.offload_modules.empty() ? "" : "pinned memory of the host for what is offloaded";
    case ExecutionOption::kGatherOverlap:
    case ExecutionOption::kRecomputeModules: break;
  }
  return "";
}

}  // namespace tangram::planner
