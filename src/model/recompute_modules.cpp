#include "tangram/model/recompute_modules.hpp"

#include <algorithm>

#include "tangram/base/enum_names.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

namespace {

bool is_part_of(RecomputeModule module, const BlockType& block) {
  const bool experts = block.feed_forward.is_moe();
  switch (module) {
    case RecomputeModule::kNorms: break;
    case RecomputeModule::kCoreAttention: return block.attends();
    case RecomputeModule::kLatentUp: return block.attends() && block.attention.kind == AttentionKind::kLatent;
    case RecomputeModule::kExpertActivation:
    case RecomputeModule::kExperts: return experts;
    case RecomputeModule::kFeedForward: return !experts && block.feed_forward.hidden > 0;
    case RecomputeModule::kSharedExperts: return experts && block.feed_forward.shared_hidden > 0;
  }
  return true;
}

}  // namespace

std::vector<std::string_view> names_of(const RecomputeModules& modules) {
  return names_in(kRecomputeModuleNames, modules);
}

RecomputeModules recomputed_modules(const Job& job) {
  if (!job.recompute_modules.empty()) return job.recompute_modules;
  if (!job.flash_attention) return {RecomputeModule::kCoreAttention};
  return {RecomputeModule::kNorms, RecomputeModule::kLatentUp, RecomputeModule::kExpertActivation};
}

RecomputeModules recomputed_modules(const BlockType& block, const Job& job) {
  const RecomputeModules all = recomputed_modules(job);
  RecomputeModules own;
  for (const auto& [name, module] : kRecomputeModuleNames) {
    if (all.has(module) && is_part_of(module, block)) own.add(module);
  }
  return own;
}

RecomputeModules recomputed_modules(const Model& model) {
  RecomputeModules all;
  for (const BlockType& type : model.types) all = all.with(recomputed_modules(type, model.job));
  return all;
}

// TransformerConfig.__post_init__ (megatron/core/transformer/transformer_config.py, 2026-08): a module that graphs hold
// part of is not recomputed, and one that they hold all of only where it draws no random numbers.
std::string_view recompute_conflict(const Model& model) {
  const Job& job = model.job;
  const RecomputeModules again = recomputed_modules(model);
  const CudaGraphs& graphs = job.cuda_graphs;
  if (again.has(RecomputeModule::kExperts)) {
    const OffloadModules moved = offloaded_modules(model);
    if (moved.has(OffloadModule::kExpertInput) || moved.has(OffloadModule::kExpertActivation)) {
      return "recompute_modules has moe, of which offload_modules has a part";
    }
    if (job.overlap_experts) return "recompute_modules has moe, whose exchanges run beside passes";
    if (is_partial(graphs) && graphs.has(GraphModule::kRouter)) {
      return "recompute_modules has moe, whose router is in graphs of blocks";
    }
  }
  if (graphs.has(GraphModule::kAttention) && job.dropout && again.has(RecomputeModule::kCoreAttention)) {
    return "recompute_modules has core_attn, whose dropout is in CUDA graphs";
  }
  if (graphs.has(GraphModule::kFeedForward) && job.dropout && again.has(RecomputeModule::kFeedForward)) {
    return "recompute_modules has mlp, whose dropout is in CUDA graphs";
  }
  return "";
}

bool has_graphs_of_dense_layers(const Model& model) {
  return is_partial(model.job.cuda_graphs) && captured_modules(model).has(GraphModule::kFeedForward);
}

}  // namespace tangram::model
