// Parts of a block that selective recompute works out again in the backward pass. Goes in: a job. Comes out: which of
// them, under the names that Megatron-Core gives them (--recompute-modules,
// megatron/core/transformer/transformer_config.py).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tangram/base/enum_set.hpp"

namespace tangram::model {

enum class RecomputeModule : std::uint8_t {
  kCoreAttention,     ///< scores, their softmax and what they are multiplied with
  kNorms,             ///< what linear layers read
  kLatentUp,          ///< latent attention: queries, keys and values of their compressed vectors
  kExpertActivation,  ///< of experts: what their second product reads
  kFeedForward,       ///< of layers without experts, behind its norm
  kExperts,           ///< of layers with experts, behind its norm: router, exchanges and shared experts, too
  kSharedExperts,
};

/// With the names of Megatron-Core.
inline constexpr std::array<std::pair<std::string_view, RecomputeModule>, 7> kRecomputeModuleNames{{
    {"core_attn", RecomputeModule::kCoreAttention},
    {"layernorm", RecomputeModule::kNorms},
    {"mla_up_proj", RecomputeModule::kLatentUp},
    {"moe_act", RecomputeModule::kExpertActivation},
    {"mlp", RecomputeModule::kFeedForward},
    {"moe", RecomputeModule::kExperts},
    {"shared_experts", RecomputeModule::kSharedExperts},
}};

using RecomputeModules = EnumSet<RecomputeModule>;

/// In the order of kRecomputeModuleNames.
[[nodiscard]] std::vector<std::string_view> names_of(const RecomputeModules& modules);

struct BlockType;
struct Job;
struct Model;

/// What selective recompute runs again: what the job names; where it names nothing, the core of attention that is not
/// fused, which keeps its scores, else what keeps much and takes little (layernorm, mla_up_proj, moe_act).
[[nodiscard]] RecomputeModules recomputed_modules(const Job& job);

/// Those of them that a block has.
[[nodiscard]] RecomputeModules recomputed_modules(const BlockType& block, const Job& job);

/// Those that some block of the model has.
[[nodiscard]] RecomputeModules recomputed_modules(const Model& model);

/// Why Megatron-Core does not work the model's modules out again beside the job's CUDA graphs and exchanges of experts;
/// empty: it does.
[[nodiscard]] std::string_view recompute_conflict(const Model& model);

/// Whether CUDA graphs of blocks hold feed-forwards without experts.
[[nodiscard]] bool has_graphs_of_dense_layers(const Model& model);

}  // namespace tangram::model
