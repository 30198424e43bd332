// Parts of a block whose inputs are kept in the host's memory between forward and backward. Goes in: a job. Comes out:
// which of them, under the names that Megatron-Core gives them (--offload-modules,
// docs/user-guide/features/fine_grained_activation_offloading.md).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tangram/base/enum_set.hpp"

namespace tangram::model {

enum class OffloadModule : std::uint8_t {
  kAttentionNorm,    ///< the norm in front of attention or a recurrence
  kQueryKeyValue,    ///< the products that give queries, keys and values
  kCoreAttention,    ///< queries, keys and values themselves
  kAttentionOutput,  ///< the product behind attention
  kFeedForwardNorm,
  kExpertInput,       ///< the first products of routed experts
  kExpertActivation,  ///< what is between their products
};

/// With the names of Megatron-Core.
inline constexpr std::array<std::pair<std::string_view, OffloadModule>, 7> kOffloadModuleNames{{
    {"attn_norm", OffloadModule::kAttentionNorm},
    {"qkv_linear", OffloadModule::kQueryKeyValue},
    {"core_attn", OffloadModule::kCoreAttention},
    {"attn_proj", OffloadModule::kAttentionOutput},
    {"mlp_norm", OffloadModule::kFeedForwardNorm},
    {"expert_fc1", OffloadModule::kExpertInput},
    {"moe_act", OffloadModule::kExpertActivation},
}};

using OffloadModules = EnumSet<OffloadModule>;

/// In the order of kOffloadModuleNames.
[[nodiscard]] std::vector<std::string_view> names_of(const OffloadModules& modules);

struct BlockType;
struct Job;
struct Model;

/// Those of the job that a block has.
[[nodiscard]] OffloadModules offloaded_modules(const BlockType& block, const Job& job);

/// Those that some block of the model has.
[[nodiscard]] OffloadModules offloaded_modules(const Model& model);

/// Why Megatron-Core does not offload the model's modules beside the job's CUDA graphs, or at all; empty: it does.
[[nodiscard]] std::string_view offload_conflict(const Model& model);

}  // namespace tangram::model
