#include "tangram/model/offload_modules.hpp"

#include "tangram/base/enum_names.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

namespace {

bool is_part_of(OffloadModule module, const BlockType& block) {
  switch (module) {
    case OffloadModule::kAttentionNorm: return block.mixes();
    case OffloadModule::kQueryKeyValue:
    case OffloadModule::kCoreAttention:
    case OffloadModule::kAttentionOutput: return block.attends();
    case OffloadModule::kFeedForwardNorm: return block.feeds_forward() && block.norms > 1;
    case OffloadModule::kExpertInput:
    case OffloadModule::kExpertActivation: return block.feed_forward.is_moe();
  }
  return false;
}

}  // namespace

std::vector<std::string_view> names_of(const OffloadModules& modules) { return names_in(kOffloadModuleNames, modules); }

OffloadModules offloaded_modules(const BlockType& block, const Job& job) {
  OffloadModules own;
  for (const auto& [_, module] : kOffloadModuleNames) {
    if (job.offload_modules.has(module) && is_part_of(module, block)) own.add(module);
  }
  return own;
}

OffloadModules offloaded_modules(const Model& model) {
  OffloadModules all;
  for (const BlockType& type : model.types) all = all.with(offloaded_modules(type, model.job));
  return all;
}

// TransformerConfig.__post_init__ (megatron/core/transformer/transformer_config.py, 2026-08), and for graphs the page
// of the feature.
std::string_view offload_conflict(const Model& model) {
  using enum OffloadModule;
  const OffloadModules moved = offloaded_modules(model);
  if (moved.has(kAttentionOutput) && !moved.has(kCoreAttention)) {
    return "offload_modules has attn_proj, which needs core_attn beside it";
  }
  const bool norms = moved.has(kAttentionNorm) || moved.has(kFeedForwardNorm);
  if (norms && !model.job.cuda_graphs.empty()) {
    return "offload_modules has norms, whose inputs cross the ends of CUDA graphs";
  }
  return "";
}

}  // namespace tangram::model
