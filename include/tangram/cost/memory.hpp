// Bytes of one GPU, every term of its own. Goes in: local sizes, degrees, ZeRO stage. Comes out: bytes.
//
// Parameter state (Rajbhandari et al., ZeRO, arXiv 1910.02054, section 5; Megatron-LM docs, distributed optimizer):
//   per parameter p + g + o bytes (bf16 with fp32 main gradients: 2 + 4 + 12 = 18); with N the ranks of the sharding
//   group ZeRO-1: o/N    ZeRO-2: also g/N    ZeRO-3: also p/N
//
// Activations that backward needs, by tensor (Korthikanti et al., arXiv 2205.05198, equations 1-6, tensor by tensor, so
// that grouped queries, gated feed-forwards, experts and latent attention come out of the same sum). e bytes a value,
// r = rows (sharded by sequence parallelism), u = tokens of the GPU:
//   norm inputs            e r h each                       linear inputs (norm outputs)  e r h each
//   Q, K, V                e u (a q + k (q + v))            attention output              e u a v
//   scores (unfused only)  e b a s s_kv softmax; with dropout (e + 1) b a s s_kv more; fused: 4 u a log-sum-exp
//   dropout masks          r h, one per sub-layer           query-key norm inputs         e u (a + k) q
//   feed-forward           gated: gate, up and product 3 e u f; plain: input and output of the activation 2 e u f
//   experts                received rows and their results e (x + t) h, 3 or 2 e x f_e, router logits 4 r E
//                          with fused kernels e x h: weighted by the router before their second product
//   latent experts         with t and x rows of the latent width l instead of h; input of the projection back e r l
//   gated attention        the gate and what it gives 2 e u a v
//   recurrence             recurrence.hpp has it
//   latent attention       compressed vectors and their norms 2 e r (q_lora + kv_lora) + e r rope
// Under fp8 and fp4 inputs of linear layers are kept as their weight gradients read them (LocalBlock::kept_input);
// where something else keeps them in 2 bytes (attention its output, a router the output of its norm), that copy serves
// both. x: rows computed by the local experts, t: rows sent. For MHA, f = 4h, dropout, 16 bits: s b h (34 + 5 a s / h).
//
// Selective recompute drops what the job's modules keep (model/recompute_modules.hpp): attention's core the terms in
// s s_kv (arXiv 2205.05198 section 5), of which fused attention keeps one number a query and head; norms the inputs of
// linear layers; the experts, or the feed-forward part, everything behind their norm. Full recompute keeps e r h.
#pragma once

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/local_block.hpp"

namespace tangram::cost {

struct ActivationBytes {
  double none = 0;
  double selective = 0;
  double full = 0;
  double offloaded = 0;  ///< what waits in the host's memory instead, and is in none of these
  double working = 0;    ///< largest buffers of its backward: gathered rows and their gradient, gradients of the inner
                         ///< tensors, all-to-all buffers, ring K/V buffers
};
/// The block and its connector. Without backward nothing is kept; where only gradients of inputs are worked out, as
/// much as where all are: an upper bound, as inputs of linear layers could be let go. `format`: local_block().
/// A compiler that recomputes the core of attention does not keep what it gives, which the core's own gradients and the
/// output projection read; where that is run again, too, the sum behind it is not kept either. Inputs of the job's
/// offload_modules leave the GPU once a module has run, but for what selective recompute works out again; those of two
/// blocks are on their way at a time, among the buffers. Full recompute keeps none of them.
[[nodiscard]] ActivationBytes block_activation(const model::BlockType& block, const model::Job& job,
                                               const Degrees& degrees, double samples_per_replica,
                                               std::optional<DType> format = std::nullopt,
                                               const cluster::ExecutionMethods& methods = {});

/// Token ids and positions (8 bytes a token), dropout mask; working: the output before it is sharded.
[[nodiscard]] ActivationBytes embedding_activation(const model::Model& model, const Degrees& degrees,
                                                   double samples_per_replica);

/// Inputs of the final norm and of the projection; working: 16-bit logits, their fp32 copy that becomes the softmax in
/// place, and their 16-bit gradient (arXiv 2205.05198, section 4.3, counts 4 s b v of these), sharded by tp.
[[nodiscard]] ActivationBytes head_activation(const model::Model& model, const Degrees& degrees,
                                              double samples_per_replica);

/// Bytes a parameter of the fp32 copy that a sharded optimizer makes of its share of narrower gradients when it steps:
/// 16 bytes in all beside 12 of state (Megatron-LM, docs/user-guide/features/dist_optimizer.md; DeepSpeed's memory
/// estimators). It is let go with the gradients before the next forward pass (distrib_optimizer.py, zero_grad). None
/// where the optimizer reads them as they are (model::reads_main_gradients).
[[nodiscard]] std::int64_t wide_gradient_bytes(const model::Job& job);

}  // namespace tangram::cost
