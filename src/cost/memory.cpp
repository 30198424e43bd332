#include "tangram/cost/memory.hpp"

#include <algorithm>

namespace tangram::cost {
namespace {

constexpr double kLogSumExpBytes = 4;  // one fp32 per query and head
constexpr double kRouterLogitBytes = 4;
constexpr double kTokenBytes = 8;  // ids and positions, Megatron-LM theoretical_memory_usage.py

/// Kept bytes of one part of a block, and how many of them selective recompute drops.
struct Kept {
  double all = 0;
  double dropped = 0;
  Kept& operator+=(const Kept& other) {
    all += other.all;
    dropped += other.dropped;
    return *this;
  }
};

using model::EagerOperator;
using model::RecomputeModule;
using model::RecomputeModules;

double gate_factor(const model::FeedForward& feed_forward) { return feed_forward.gated ? 3 : 2; }

/// Bytes that backward keeps of a value for the layer that reads it: for its weight gradient, or for its adapter's.
struct KeptInputs {
  double mixer = 0;         ///< of the first layer of attention or a recurrence
  double feed_forward = 0;  ///< of the first layers
  double router = 0;
  double gated = 0;      ///< of the layer behind a gated attention
  double twice = 0;      ///< the same, of attention's output, which attention keeps as well
  double activated = 0;  ///< of the last layer of a feed-forward
  double inner = 0;      ///< of layers between those
  double expert = 0;
};

KeptInputs inputs_of_adapters(const model::BlockType& block, const LocalBlock& local) {
  using enum model::AdapterTarget;
  const auto kept = [&](std::initializer_list<model::AdapterTarget> readers) {
    const bool read = std::ranges::any_of(readers, [&](auto target) { return block.adapters.has(target); });
    return read ? local.element : 0;
  };
  KeptInputs inputs;
  inputs.mixer = kept({kQuery, kKey, kValue});
  inputs.feed_forward = kept({kGate, kUp});
  inputs.gated = kept({kOutput});
  inputs.activated = kept({kDown});
  return inputs;
}

/// Adapters in a framework's operators keep copies of their own (adapter_tensors).
KeptInputs kept_inputs(const model::BlockType& block, const LocalBlock& local, const model::EagerOperators& eager) {
  if (!block.gradients.weights) {
    return eager.has(EagerOperator::kAdapters) ? KeptInputs{} : inputs_of_adapters(block, local);
  }
  const double one = local.kept_input;
  return {one, one, local.element, one, local.kept_twice, one, one, local.kept_expert_input};
}

/// Kept of one column of a feed-forward for each token: what its activation reads, and what that gives.
double column_bytes(const model::FeedForward& feed_forward, const LocalBlock& local, double kept_input) {
  return (gate_factor(feed_forward) - 1) * local.kept_gate + kept_input;
}

/// Of what a block with routed experts hands to shared ones; they read what the router does.
double shared_input(const model::BlockType& block, const KeptInputs& keeps) {
  return block.feed_forward.shared_hidden > 0 ? keeps.feed_forward : 0;
}

/// Of a value that a norm reads. RMSNorm in a framework's operators keeps it in fp32, and what it is scaled to for the
/// gradient of its weights.
double norm_bytes(const model::BlockType& block, const LocalBlock& local, const model::EagerOperators& eager) {
  if (!eager.has(EagerOperator::kNorms) || block.norm_bias) return local.element;
  return kWideElement + (block.gradients.weights ? local.element : 0);
}

/// Norm inputs, linear inputs and dropout masks: everything of width `hidden` between the tensor-parallel regions.
Kept residual_stream(const model::BlockType& block, const LocalBlock& local, const KeptInputs& keeps,
                     const RecomputeModules& again, const cluster::ExecutionMethods& methods,
                     const model::EagerOperators& eager) {
  const double row = local.rows * local.hidden;
  // Attention and feed-forward on one input: one norm input; and with a single norm, one linear input.
  const double norm_inputs = block.parallel_attention ? std::max(1, block.norms - 1) : block.norms;
  const double mixer = block.mixes() ? keeps.mixer : 0;
  double feed_forward = block.feeds_forward() ? keeps.feed_forward : 0;
  if (block.feed_forward.is_moe()) feed_forward = std::max(keeps.router, shared_input(block, keeps));
  const bool one = block.parallel_attention && block.norms == 1;
  const double inputs = row * (one ? std::max(mixer, feed_forward) : mixer + feed_forward);
  Kept kept;
  kept.all = norm_bytes(block, local, eager) * row * norm_inputs + inputs;
  if (local.dropout) kept.all += local.parts * row;
  if (again.has(RecomputeModule::kNorms)) kept.dropped = inputs;
  if (methods.output_again && again.has(RecomputeModule::kCoreAttention) && norm_inputs > 1) {
    kept.dropped += local.element * row;
  }
  return kept;
}

/// Of the core what the products around it do not keep themselves.
double core_bytes(const LocalBlock& local, bool fused) {
  const AttentionCore& core = local.core;
  if (fused) return kLogSumExpBytes * local.tokens * core.heads;
  const double scores = core.samples * core.heads * core.queries * core.keys;
  return scores * (local.dropout ? 2 * local.element + 1 : local.element);
}

/// As kernels read them.
double query_key_value_bytes(const LocalBlock& local) {
  const AttentionCore& kernel = local.kernel;
  return local.element * kernel.samples * kernel.queries *
         (kernel.heads * kernel.qk_dim + kernel.kv_heads * (kernel.qk_dim + kernel.v_dim));
}

double attended_values(const LocalBlock& local) { return local.tokens * local.core.heads * local.core.v_dim; }

Kept attention_tensors(const model::BlockType& block, const LocalBlock& local, const KeptInputs& keeps, bool fused,
                       const RecomputeModules& again, const cluster::ExecutionMethods& methods) {
  const model::Attention& attention = block.attention;
  const AttentionCore& core = local.core;
  const double qkv = query_key_value_bytes(local);
  Kept kept;
  const double of_core = core_bytes(local, fused);
  const double output = attended_values(local);
  kept.all = qkv + local.element * output + of_core;
  // The gate, and what it gives.
  const double behind = output * (attention.output_gate ? local.element + keeps.gated : keeps.twice);
  kept.all += behind;
  if (again.has(RecomputeModule::kCoreAttention)) {
    kept.dropped = of_core + (methods.scheduled ? local.element * output + behind : 0);
  }
  if (attention.qk_norm) kept.all += local.element * local.tokens * (core.heads + core.kv_heads) * core.qk_dim;
  if (attention.kind == model::AttentionKind::kLatent) {
    const double ranks = attention.q_lora_rank + attention.kv_lora_rank;
    kept.all += local.rows * (local.element * (ranks + attention.qk_rope_head_dim) + keeps.inner * ranks);
    if (again.has(RecomputeModule::kLatentUp)) kept.dropped += qkv;
  }
  return kept;
}

Kept mixer_tensors(const model::BlockType& block, const LocalBlock& local, const KeptInputs& keeps, bool fused,
                   const RecomputeModules& again, const cluster::ExecutionMethods& methods) {
  if (local.recurrence) return {recurrence_bytes(*local.recurrence, local.element).kept, 0};
  return block.attends() ? attention_tensors(block, local, keeps, fused, again, methods) : Kept{};
}

/// What experts read and what their first products give, in the order of the experts. What goes back is weighted before
/// the second product where kernels are fused (Megatron-Core's memory-efficient permutation, arXiv 2603.07685), else
/// behind it, which keeps it.
Kept expert_tensors(const model::FeedForward& feed_forward, const LocalBlock& local, const KeptInputs& keeps,
                    bool weighted_early, const RecomputeModules& again) {
  const double sent_back = weighted_early ? 0 : local.routed;
  const double columns = local.expert_rows * local.expert_width;
  Kept kept;
  kept.all = (keeps.expert * local.expert_rows + local.element * sent_back) * local.expert_input;
  // What the shared projection behind the experts reads.
  if (feed_forward.latent_hidden > 0) kept.all += keeps.inner * local.rows * local.expert_input;
  const double clamped = local.clamps ? columns * 2 * local.element : 0;
  kept.all += columns * column_bytes(feed_forward, local, keeps.expert) + clamped;
  kept.all += kRouterLogitBytes * local.rows * feed_forward.experts;
  if (again.has(RecomputeModule::kExpertActivation)) kept.dropped = columns * keeps.expert + clamped;
  return kept;
}

Kept feed_forward_tensors(const model::FeedForward& feed_forward, const LocalBlock& local, const KeptInputs& keeps,
                          const model::Job& job, const RecomputeModules& again) {
  double column = local.tokens * column_bytes(feed_forward, local, keeps.activated);
  // Between the two operators of a gate.
  if (job.eager_operators.has(EagerOperator::kGates) && feed_forward.gated) column += local.tokens * local.element;
  Kept kept{column * (local.dense + local.shared), 0};
  if (again.has(RecomputeModule::kSharedExperts)) kept.dropped = column * local.shared;
  if (feed_forward.is_moe()) kept += expert_tensors(feed_forward, local, keeps, job.fused_kernels, again);
  if (again.has(RecomputeModule::kFeedForward) || again.has(RecomputeModule::kExperts)) kept.dropped = kept.all;
  return kept;
}

/// Between the two products of each adapter. Those in a framework's operators are in fp32, and each turns its input to
/// it for itself (PEFT's autocast_adapter_dtype, and _cast_input_dtype of its layers).
Kept adapter_tensors(const model::BlockType& block, const LocalBlock& local, const Degrees& degrees,
                     const model::EagerOperators& eager) {
  const bool wide = eager.has(EagerOperator::kAdapters);
  Kept kept;
  for (const model::AdaptableMatrix& matrix : model::adapted_matrices(block)) {
    const auto rank = static_cast<double>(block.adapters.rank);
    const double own = wide ? kWideElement * (local_matrix(block, matrix, degrees).in + rank) : local.element * rank;
    kept.all += local.tokens * own;
  }
  return kept;
}

/// Inputs of the job's offload_modules; dropped: what selective recompute works out again instead.
Kept offloaded_inputs(const model::BlockType& block, const model::Job& job, const LocalBlock& local,
                      const KeptInputs& keeps, const RecomputeModules& again) {
  using enum model::OffloadModule;
  const model::OffloadModules moved = model::offloaded_modules(block, job);
  const model::FeedForward& feed_forward = block.feed_forward;
  Kept inputs;
  const auto add = [&](model::OffloadModule module, double bytes, bool worked_out_again) {
    if (moved.has(module)) inputs += {bytes, worked_out_again ? bytes : 0};
  };
  const double row = local.rows * local.hidden;
  const bool gated = block.attention.output_gate;
  add(kAttentionNorm, local.element * row, false);
  add(kQueryKeyValue, keeps.mixer * row, again.has(RecomputeModule::kNorms));
  add(kCoreAttention, query_key_value_bytes(local), again.has(RecomputeModule::kLatentUp));
  add(kAttentionOutput, (gated ? keeps.gated : local.element + keeps.twice) * attended_values(local), false);
  const bool experts_again = again.has(RecomputeModule::kExperts);
  add(kFeedForwardNorm, local.element * row, false);
  add(kExpertInput, keeps.expert * local.expert_rows * local.expert_input, experts_again);
  const double activated = local.expert_rows * local.expert_width * (gate_factor(feed_forward) - 1);
  add(kExpertActivation, local.kept_gate * activated, experts_again);
  return inputs;
}

/// Beside what attention reads and writes, of K and V of `kv` bytes.
double context_buffers(int cp, const LocalBlock& local, double kv, model::ContextExchange exchange) {
  if (cp == 1) return 0;
  switch (exchange) {
    case model::ContextExchange::kRing: break;
    case model::ContextExchange::kAllGather: return 2 * cp * kv;  // those of all positions, and their gradients
    case model::ContextExchange::kAllToAll: return 2 * query_key_value_bytes(local);  // what leaves, what has come
  }
  return 4 * kv;  // the neighbour's K, V and their gradients, double buffered
}

double attention_working(const model::Job& job, const Degrees& degrees, const LocalBlock& local) {
  const AttentionCore& core = local.core;
  const double kv = local.element * local.tokens * core.kv_heads * (core.qk_dim + core.v_dim);
  double bytes = local.element * local.tokens * core.heads * (core.qk_dim + core.v_dim) + kv;
  if (!job.flash_attention) bytes += 2 * local.element * core.samples * core.heads * core.queries * core.keys;
  return bytes + context_buffers(degrees.cp, local, kv, job.context_exchange);
}

double working_bytes(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                     const LocalBlock& local) {
  const double factor = gate_factor(block.feed_forward);
  const double mixer = local.recurrence ? recurrence_bytes(*local.recurrence, local.element).working
                                        : attention_working(job, degrees, local);
  const double dense = local.element * local.tokens * factor * (local.dense + local.shared);
  const double expert = local.element * (2 * (local.routed + local.expert_rows) * local.expert_input +
                                         factor * local.expert_rows * local.expert_width);
  const double gathered = 2 * local.element * local.tokens * local.hidden;  // rows of all tp ranks, and their gradient
  return gathered + std::max({mixer, dense, block.feed_forward.is_moe() ? expert : 0.0});
}

/// The copy that a product reads of a matrix that is held quantized, the largest of them.
double dequantized_bytes(const model::BlockType& block, const Degrees& degrees, const LocalBlock& local) {
  if (model::quantized_parameters(block).total() == 0) return 0;
  double most = local.expert_input * local.expert_width;
  for (const model::AdaptableMatrix& matrix : model::adaptable_matrices(block)) {
    const LocalMatrix own = local_matrix(block, matrix, degrees);
    most = std::max(most, own.in * own.out);
  }
  return local.element * most;
}

/// What a connector keeps, recomputed or not: its input, a norm's output, and both sides of each activation.
double connector_bytes(const model::Connector& connector, const LocalBlock& local, const Degrees& degrees) {
  if (!connector.gradients.any()) return 0;
  const std::vector<model::ConnectorProduct> all = products(connector);
  const auto kept = [&](std::int64_t rows, std::int64_t width) {
    return local.element * local.samples * static_cast<double>(rows) * static_cast<double>(width) / degrees.cp;
  };
  double bytes = (connector.norm > 0 ? 2 : 1) * kept(all.front().rows, all.front().in);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) bytes += 2 * kept(all[i].rows, all[i].out) / degrees.tp;
  return bytes;
}

/// Bytes of a logit while the loss is worked out. Transformer Engine's, fused, writes the gradient in place of the
/// logits (transformer_engine/pytorch/triton/cross_entropy.py). Megatron-LM's of June 2024 and later turns one copy in
/// fp32 into exponentials, softmax and gradient (core/tensor_parallel/cross_entropy.py, commit 9634c0e4a3). PyTorch's
/// has that copy and the log-probabilities, beside logits and their gradient as stored.
double loss_bytes(const model::Job& job, double element) {
  constexpr double kWide = 4;
  if (job.fused_loss == model::FusedLoss::kTransformerEngine) return element;
  return job.in_place_loss ? element + kWide : 2 * element + 2 * kWide;
}

}  // namespace

ActivationBytes block_activation(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                                 double samples_per_replica, std::optional<DType> format,
                                 const cluster::ExecutionMethods& methods) {
  if (const auto own = model::own_job(block, job)) {
    return block_activation(block, *own, degrees, samples_per_replica, std::nullopt, methods);
  }
  const LocalBlock local = local_block(block, job, degrees, samples_per_replica, format);
  const bool fused = job.flash_attention;
  const RecomputeModules again = model::recomputed_modules(block, job);
  const KeptInputs keeps = kept_inputs(block, local, job.eager_operators);
  Kept kept = residual_stream(block, local, keeps, again, methods, job.eager_operators);
  kept += mixer_tensors(block, local, keeps, fused, again, methods);
  kept += feed_forward_tensors(block.feed_forward, local, keeps, job, again);
  kept += adapter_tensors(block, local, degrees, job.eager_operators);
  const Kept offloaded = block.gradients.any() ? offloaded_inputs(block, job, local, keeps, again) : Kept{};
  ActivationBytes bytes;
  bytes.offloaded = offloaded.all;
  bytes.none = kept.all - offloaded.all;
  bytes.selective = (kept.all - kept.dropped) - (offloaded.all - offloaded.dropped);
  // Where a layer's input is on the host as well, recomputing the layer keeps no more.
  bytes.full = std::min({local.element * local.rows * local.hidden, bytes.none, bytes.selective});
  constexpr double kOnTheirWay = 2;  // blocks whose inputs leave or come back at a time
  bytes.working = working_bytes(block, job, degrees, local) + dequantized_bytes(block, degrees, local) +
                  kOnTheirWay * bytes.offloaded;
  if (!block.gradients.any()) bytes.none = bytes.selective = bytes.full = 0;
  if (!block.connector) return bytes;
  const double connector = connector_bytes(*block.connector, local, degrees);
  for (double* part : {&bytes.none, &bytes.selective, &bytes.full}) *part += connector;
  return bytes;
}

ActivationBytes embedding_activation(const model::Model& model, const Degrees& degrees, double samples_per_replica) {
  const double tokens = samples_per_replica * static_cast<double>(model.job.sequence_length) / degrees.cp;
  const double rows = degrees.sequence_parallel ? tokens / degrees.tp : tokens;
  const double hidden = static_cast<double>(model.hidden);
  ActivationBytes bytes;
  bytes.none = kTokenBytes * tokens;
  if (!model.types.empty() && trains_with_dropout(model.types.front(), model.job)) bytes.none += rows * hidden;
  if (!model.end_gradients().weights) bytes.none = 0;
  bytes.selective = bytes.none;
  bytes.full = bytes.none;
  bytes.working = activation_element(model.job.precision) * tokens * hidden;
  return bytes;
}

ActivationBytes head_activation(const model::Model& model, const Degrees& degrees, double samples_per_replica) {
  const double element = activation_element(model.job.precision);
  const double tokens = samples_per_replica * static_cast<double>(model.job.sequence_length) / degrees.cp;
  const double rows = degrees.sequence_parallel ? tokens / degrees.tp : tokens;
  const double hidden = static_cast<double>(model.hidden);
  const double logits = tokens * padded_vocabulary(model.vocabulary, degrees.tp) / degrees.tp;
  ActivationBytes bytes;
  // What the norm reads, and for its weight gradient what the matrix does.
  const model::Gradients gradients = model.end_gradients();
  const int kept = (model.final_norm && gradients.any() ? 1 : 0) + (gradients.weights ? 1 : 0);
  bytes.none = kept * element * rows * hidden;
  bytes.selective = bytes.none;
  bytes.full = bytes.none;
  bytes.working = loss_bytes(model.job, element) * logits + 2 * element * tokens * hidden;
  return bytes;
}

std::int64_t wide_gradient_bytes(const model::Job& job) {
  constexpr std::int64_t kWide = 4;
  if (job.optimizer.state_bytes_per_parameter == 0 || model::reads_main_gradients(job)) return 0;
  return job.gradient_bytes < kWide ? kWide : 0;
}

}  // namespace tangram::cost
