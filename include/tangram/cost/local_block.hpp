// What one GPU holds and computes of a block. Goes in: a block, degrees, samples per replica. Comes out: the local
// sizes from which times (block_time.hpp) and bytes (memory.hpp) are counted alike.
//
// tp shards heads and feed-forward columns (Shoeybi et al., arXiv 1909.08053, section 3), kv heads are replicated where
// tp exceeds them; sequence parallelism shards the rows between those regions (Korthikanti et al., arXiv 2205.05198,
// section 4.2); cp shards the sequence, and where it exchanges positions for heads, those as well between exchanges; ep
// and expert-tp shard experts (Megatron-Core, MoE parallel folding).
#pragma once

#include <optional>

#include "tangram/cost/compute.hpp"
#include "tangram/cost/recurrence.hpp"
#include "tangram/cost/strategy.hpp"

namespace tangram::cost {

/// GPT-OSS is the architecture whose experts have biases. Megatron-Core has no fused kernels for what else is its own:
/// gate and up are clamped before they are multiplied, which leaves a copy of both (weighted_bias_quick_geglu_impl in
/// megatron/core/fusions/fused_bias_geglu.py), and rotary positions are scaled (YaRN's concentration factor;
/// apply_rotary_pos_emb in megatron/core/models/common/embeddings/rope_utils.py).
[[nodiscard]] inline bool is_gpt_oss(const model::FeedForward& feed_forward) {
  return feed_forward.is_moe() && feed_forward.bias && feed_forward.gated;
}

/// Graphs of whole steps cannot hold kernels that the host issues by counts of tokens: Megatron-Core runs the experts'
/// products and what is between and behind them as one operator there (Transformer Engine's fused grouped MLP;
/// TEGroupedMLP._fused_forward in megatron/core/transformer/moe/experts.py).
[[nodiscard]] inline bool fuses_experts(const model::Job& job) {
  return job.fused_kernels && job.cuda_graphs.has(model::GraphModule::kRest);
}

inline constexpr double kWideElement = 4;  ///< bytes of an activation in fp32

struct LocalBlock {
  double element = 2;     ///< bytes of an activation
  double kept_input = 2;  ///< bytes that backward keeps of a value which a linear layer reads and nothing else does
  double kept_expert_input = 2;  ///< the same of a value that a routed expert reads
  double kept_twice = 0;         ///< the same of one that something else keeps as well
  double kept_gate = 2;          ///< the same of a value that an activation reads
  double samples = 0;
  double queries = 0;  ///< tokens of one sample on this GPU: s / cp
  double tokens = 0;   ///< samples * queries
  double rows = 0;     ///< tokens kept between tensor-parallel regions: tokens / tp with sequence parallelism
  double hidden = 0;
  AttentionCore core;    ///< of its own heads and positions; without heads where the block does not attend
  AttentionCore kernel;  ///< what its kernels attend with: behind an all-to-all, a share of the heads at all positions
  std::optional<LocalRecurrence> recurrence;  ///< in its place
  int parts = 2;                              ///< mixer, feed-forward or both: each reads a norm's output and adds
  double dense = 0;                           ///< local columns of the dense feed-forward, 0: none
  double shared = 0;                          ///< of the shared experts
  double routed = 0;                          ///< (row, expert) pairs this GPU sends
  double expert_rows = 0;                     ///< rows its experts compute, imbalance included
  double experts = 0;                         ///< local experts
  double expert_width = 0;                    ///< local columns of one expert
  double expert_input = 0;                    ///< width of what an expert reads: hidden, or the latent one
  bool fused_experts = false;                 ///< one operator has all of their layer
  bool clamps = false;                        ///< gate and up of experts, by kernels that leave a copy of both
  bool dropout = false;
};

/// What one GPU has of a matrix that tp splits; key-value heads are whole.
struct LocalMatrix {
  double in = 0;
  double out = 0;
};
[[nodiscard]] LocalMatrix local_matrix(const model::BlockType& block, const model::AdaptableMatrix& matrix,
                                       const Degrees& degrees);

/// Models with LayerNorm biases (GPT-2, GPT-3, OPT, ...) were trained with dropout, those with RMSNorm without; the
/// architecture says no more about it, and a job may switch it off.
[[nodiscard]] bool trains_with_dropout(const model::BlockType& block, const model::Job& job);

/// Requires degrees that supported_degrees() accepts. `format`: what products run in where that is not the job's
/// precision.
[[nodiscard]] LocalBlock local_block(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                                     double samples_per_replica, std::optional<DType> format = std::nullopt);

/// Bytes of an activation value: 2, or 4 in fp32 and tf32 (fp8 is a format of products, not of stored activations).
[[nodiscard]] double activation_element(DType precision);

/// The vocabulary as Megatron-LM pads it: up to a multiple of 128 tp (--make-vocab-size-divisible-by).
[[nodiscard]] double padded_vocabulary(std::int64_t vocabulary, int tp);

/// Parameters of one block on one GPU before ZeRO. `shared` is reduced over dp x cp, `expert` over the expert replicas.
struct LocalParameters {
  double shared = 0;
  double expert = 0;
};
[[nodiscard]] LocalParameters local_parameters(const model::BlockType& block, const Degrees& degrees);
/// Those of full width that take as many bytes: fewer where some are quantized.
[[nodiscard]] LocalParameters local_held_parameters(const model::BlockType& block, const model::Job& job,
                                                    const Degrees& degrees);
/// Those that are quantized.
[[nodiscard]] LocalParameters local_quantized_parameters(const model::BlockType& block, const Degrees& degrees);
/// Those that are trained.
[[nodiscard]] LocalParameters local_trained_parameters(const model::BlockType& block, const Degrees& degrees);

}  // namespace tangram::cost
