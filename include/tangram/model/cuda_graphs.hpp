// Parts of an iteration whose kernels a captured CUDA graph replays, so that the host does not issue them one by one.
// Goes in: a job. Comes out: which of them, under the names that Megatron-Core gives them (--cuda-graph-modules).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tangram/base/enum_set.hpp"

namespace tangram::model {

struct BlockType;
struct Model;

enum class GraphModule : std::uint8_t {
  kAttention,    ///< with its norm and what is added behind it
  kFeedForward,  ///< of layers without experts, likewise
  kRouter,       ///< of layers with experts: norm, router, shared experts, and what prepares the dispatch
  kRecurrence,   ///< likewise
  kRest,         ///< routed experts, embedding, head and the optimizer: of a whole iteration's graph alone
};

/// With the names of Megatron-Core. moe_router stands for its moe_preprocess as well.
inline constexpr std::array<std::pair<std::string_view, GraphModule>, 4> kGraphModuleNames{{
    {"attn", GraphModule::kAttention},
    {"mlp", GraphModule::kFeedForward},
    {"moe_router", GraphModule::kRouter},
    {"mamba", GraphModule::kRecurrence},
}};

using CudaGraphs = EnumSet<GraphModule>;

inline constexpr CudaGraphs kNoGraphs{};
/// All of blocks but routed experts, whose shapes depend on the routing.
inline constexpr CudaGraphs kGraphsOfBlocks{GraphModule::kAttention, GraphModule::kFeedForward, GraphModule::kRouter,
                                            GraphModule::kRecurrence};
/// One of the whole iteration.
inline constexpr CudaGraphs kGraphOfStep = kGraphsOfBlocks.with({GraphModule::kRest});

/// The three that have names.
inline constexpr std::array<std::pair<std::string_view, CudaGraphs>, 3> kNamedGraphs{{
    {"none", kNoGraphs},
    {"blocks", kGraphsOfBlocks},
    {"step", kGraphOfStep},
}};

/// As model files have them: "none", "blocks", "step", else each module.
[[nodiscard]] std::vector<std::string_view> names_of(const CudaGraphs& graphs);
/// "none", "blocks", "step", "attn+moe_router".
[[nodiscard]] std::string to_string(const CudaGraphs& graphs);

/// Some of an iteration, not all.
[[nodiscard]] bool is_partial(const CudaGraphs& graphs);

/// Those that some block of the model has: what graphs of a part of the iteration are captured of.
[[nodiscard]] CudaGraphs captured_modules(const Model& model);

/// The part of a block that mixes tokens, and the part behind it.
[[nodiscard]] GraphModule mixing_module(const BlockType& block);
[[nodiscard]] GraphModule feeding_module(const BlockType& block);

}  // namespace tangram::model
