#include "tangram/model/recompute_modules.hpp"

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
  std::vector<std::string_view> names;
  for (const auto& [name, module] : kRecomputeModules) {
    if (modules.has(module)) names.push_back(name);
  }
  return names;
}

RecomputeModules recomputed_modules(const Job& job) {
  if (!job.recompute_modules.empty()) return job.recompute_modules;
  if (!job.flash_attention) return {RecomputeModule::kCoreAttention};
  return {RecomputeModule::kNorms, RecomputeModule::kLatentUp, RecomputeModule::kExpertActivation};
}

RecomputeModules recomputed_modules(const BlockType& block, const Job& job) {
  const RecomputeModules all = recomputed_modules(job);
  RecomputeModules own;
  for (const auto& [name, module] : kRecomputeModules) {
    if (all.has(module) && is_part_of(module, block)) own.add(module);
  }
  return own;
}

}  // namespace tangram::model
