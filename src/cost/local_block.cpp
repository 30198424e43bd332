#include "tangram/cost/local_block.hpp"

#include <algorithm>
#include <cmath>

namespace tangram::cost {

bool trains_with_dropout(const model::BlockType& block, const model::Job& job) {
  return job.dropout && block.norm_bias;
}

double activation_element(DType precision) {
  return static_cast<double>(std::max<std::int64_t>(2, bytes_of(precision)));
}

double padded_vocabulary(std::int64_t vocabulary, int tp) {
  const double quantum = 128.0 * tp;
  return quantum * std::ceil(static_cast<double>(vocabulary) / quantum);
}

namespace {

AttentionCore local_core(const model::BlockType& block, double tp, const LocalBlock& local) {
  const model::Attention& attention = block.attention;
  const bool latent = attention.kind == model::AttentionKind::kLatent;
  AttentionCore core;
  core.samples = local.samples;
  core.heads = attention.heads / tp;
  core.kv_heads = latent ? core.heads : std::max(1.0, attention.kv_heads / tp);
  core.queries = local.queries;
  core.keys = static_cast<double>(block.tokens);
  core.visible = visible_keys(attention, core.keys);
  core.qk_dim = latent ? attention.qk_nope_head_dim + attention.qk_rope_head_dim : attention.head_dim;
  core.v_dim = latent ? attention.v_head_dim : attention.head_dim;
  core.dropout = local.dropout;
  return core;
}

/// Transformer Engine's ring runs a kernel for each step; software without its kernels gathers the keys and runs one.
/// Key-value heads are repeated where cp exceeds them.
AttentionCore kernel_core(AttentionCore core, const model::Job& job, int cp) {
  switch (job.context_exchange) {
    case model::ContextExchange::kRing: core.steps = job.fused_kernels ? cp : 1; break;
    case model::ContextExchange::kAllGather: break;
    case model::ContextExchange::kAllToAll:
      core.heads /= cp;
      core.kv_heads = std::max(1.0, core.kv_heads / cp);
      core.queries *= cp;
      break;
  }
  return core;
}

/// Under delayed scaling what reads attention's output keeps a copy of its own; else it casts once more what attention
/// keeps (Megatron-Core, set_save_original_input).
void set_kept_inputs(LocalBlock& local, const model::Job& job, DType format) {
  local.kept_input = local.kept_expert_input = local.element;
  if (!is_narrow(format) || !job.narrow_inputs) return;
  local.kept_input = narrow_bytes(format, job.fp8_recipe);
  if (!job.wide_experts) local.kept_expert_input = local.kept_input;
  if (format == DType::kFp8 && job.fp8_recipe == model::Fp8Recipe::kDelayed) local.kept_twice = local.kept_input;
}

}  // namespace

LocalBlock local_block(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                       double samples_per_replica, std::optional<DType> format) {
  const model::FeedForward& feed_forward = block.feed_forward;
  const double tp = degrees.tp;
  LocalBlock local;
  local.element = activation_element(job.precision);
  set_kept_inputs(local, job, format.value_or(job.precision));
  local.kept_gate = job.narrow_gates && feed_forward.gated ? 1 : local.element;
  local.samples = samples_per_replica;
  local.queries = static_cast<double>(block.tokens) / degrees.cp;
  local.tokens = local.samples * local.queries;
  local.rows = degrees.sequence_parallel ? local.tokens / tp : local.tokens;
  local.hidden = static_cast<double>(block.hidden);
  local.dropout = trains_with_dropout(block, job);

  if (block.attends()) local.core = local_core(block, tp, local);
  local.kernel = kernel_core(local.core, job, degrees.cp);
  if (block.recurrence) local.recurrence = local_recurrence(block, degrees, samples_per_replica);
  local.parts = (block.mixes() ? 1 : 0) + (block.feeds_forward() ? 1 : 0);

  local.dense = static_cast<double>(feed_forward.hidden) / tp;
  local.shared = static_cast<double>(feed_forward.shared_hidden) / tp;
  if (feed_forward.is_moe()) {
    const double imbalance = degrees.ep > 1 ? job.routing_imbalance : 1;
    local.routed = local.rows * feed_forward.experts_per_token;
    local.expert_rows = local.routed * degrees.etp * imbalance;
    local.experts = static_cast<double>(feed_forward.experts) / degrees.ep;
    local.expert_width = static_cast<double>(feed_forward.expert_hidden) / degrees.etp;
    local.expert_input = static_cast<double>(block.expert_input());
    local.fused_experts = fuses_experts(job);
    local.clamps = is_gpt_oss(feed_forward) && !local.fused_experts;
  }
  return local;
}

LocalMatrix local_matrix(const model::BlockType& block, const model::AdaptableMatrix& matrix, const Degrees& degrees) {
  using model::AdapterTarget;
  LocalMatrix local{static_cast<double>(matrix.in), static_cast<double>(matrix.out)};
  const bool shared = matrix.target == AdapterTarget::kKey || matrix.target == AdapterTarget::kValue;
  const int split = shared ? std::min(degrees.tp, block.attention.kv_heads) : degrees.tp;
  (matrix.splits_input() ? local.in : local.out) /= split;
  return local;
}

namespace {

/// Parameters of a key-value head for each of its dimensions.
double of_key_value(const model::BlockType& block) {
  return 2.0 * static_cast<double>(block.hidden + (block.attention.qkv_bias ? 1 : 0));
}

/// The same of adapters beside its matrices.
double adapters_of_key_value(const model::BlockType& block) {
  using model::AdapterTarget;
  const int targets =
      (block.adapters.has(AdapterTarget::kKey) ? 1 : 0) + (block.adapters.has(AdapterTarget::kValue) ? 1 : 0);
  return static_cast<double>(targets * block.adapters.rank);
}

/// `all` on one GPU; with key-value heads that are on several, each dimension of which has so many `rows`.
LocalParameters sharded(const model::BlockParameters& all, double rows, const model::BlockType& block,
                        const Degrees& degrees) {
  const model::Attention& attention = block.attention;
  LocalParameters local;
  local.shared =
      static_cast<double>(all.attention + all.feed_forward) / degrees.tp + static_cast<double>(all.replicated);
  if (block.attends() && attention.kind == model::AttentionKind::kMultiHead && degrees.tp > attention.kv_heads) {
    // Each rank holds one whole kv head where its even share would be kv_heads / tp of one.
    local.shared += rows * attention.head_dim * (1 - static_cast<double>(attention.kv_heads) / degrees.tp);
  }
  local.expert = static_cast<double>(all.expert) / (static_cast<double>(degrees.ep) * degrees.etp);
  return local;
}

}  // namespace

LocalParameters local_parameters(const model::BlockType& block, const Degrees& degrees) {
  return sharded(model::parameters(block), of_key_value(block) + adapters_of_key_value(block), block, degrees);
}

LocalParameters local_quantized_parameters(const model::BlockType& block, const Degrees& degrees) {
  const model::BlockParameters all = model::quantized_parameters(block);
  return all.total() == 0 ? LocalParameters{} : sharded(all, 2.0 * static_cast<double>(block.hidden), block, degrees);
}

LocalParameters local_held_parameters(const model::BlockType& block, const model::Job& job, const Degrees& degrees) {
  LocalParameters held = local_parameters(block, degrees);
  const LocalParameters quantized = local_quantized_parameters(block, degrees);
  const double spared = model::spared_share(block, job.parameter_bytes);
  held.shared -= spared * quantized.shared;
  held.expert -= spared * quantized.expert;
  return held;
}

LocalParameters local_trained_parameters(const model::BlockType& block, const Degrees& degrees) {
  const double own = block.gradients.weights ? of_key_value(block) : 0;
  return sharded(model::trained_parameters(block), own + adapters_of_key_value(block), block, degrees);
}

}  // namespace tangram::cost
