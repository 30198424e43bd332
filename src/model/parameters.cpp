// Parameter counts from dimensions. Every matrix product of the block appears once, next to its shape.
#include "tangram/model/model.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::model {

namespace {

using Count = std::int64_t;

void add_multi_head(const BlockType& block, BlockParameters& out) {
  const Attention& a = block.attention;
  const Count query = Count{a.heads} * a.head_dim;
  const Count gate = a.output_gate ? query : 0;
  const Count key_value = 2 * Count{a.kv_heads} * a.head_dim;
  out.attention += block.hidden * (query + gate + key_value) + query * block.hidden;
  if (a.qkv_bias) out.attention += query + gate + key_value;
  if (a.output_bias) out.replicated += block.hidden;
  if (a.qk_norm) out.replicated += 2 * Count{a.head_dim};
}

// arXiv 2405.04434 appendix C: the down-projections have no head dimension, so tensor parallelism replicates them; a
// norm follows each. Queries skip their down-projection when q_lora_rank is 0 (DeepSeek-V2-Lite).
void add_latent(const BlockType& block, BlockParameters& out) {
  const Attention& a = block.attention;
  const Count query = Count{a.heads} * (a.qk_nope_head_dim + a.qk_rope_head_dim);
  const Count query_input = a.q_lora_rank > 0 ? a.q_lora_rank : block.hidden;
  if (a.q_lora_rank > 0) out.replicated += block.hidden * a.q_lora_rank + a.q_lora_rank;
  out.attention += query_input * query;
  const Count latent = Count{a.kv_lora_rank} + a.qk_rope_head_dim;
  out.replicated += block.hidden * latent + a.kv_lora_rank;
  out.attention += Count{a.kv_lora_rank} * a.heads * (a.qk_nope_head_dim + a.v_head_dim);
  out.attention += Count{a.heads} * a.v_head_dim * block.hidden;
  if (a.qkv_bias) out.replicated += a.q_lora_rank + latent;
  if (a.output_bias) out.replicated += block.hidden;
}

void add_recurrence(const BlockType& block, BlockParameters& out) {
  const RecurrenceParameters own = parameters(*block.recurrence, block.hidden);
  out.attention += own.matrices + own.vectors;
  out.replicated += own.replicated;
}

void add_mixer(const BlockType& block, BlockParameters& out) {
  if (block.recurrence) {
    add_recurrence(block, out);
  } else if (block.attention.kind == AttentionKind::kLatent) {
    add_latent(block, out);
  } else {
    add_multi_head(block, out);
  }
}

// A column-parallel bias is sharded with its matrix; the bias after the row-parallel matrix is on every rank.
struct Perceptron {
  Count sharded = 0;
  Count row_bias = 0;
};

Perceptron perceptron(Count hidden, Count inner, bool gated, bool bias) {
  const Count columns = gated ? 2 * inner : inner;
  Perceptron out;
  out.sharded = hidden * columns + inner * hidden + (bias ? columns : 0);
  out.row_bias = bias ? hidden : 0;
  return out;
}

void add_feed_forward(const BlockType& block, BlockParameters& out) {
  const FeedForward& f = block.feed_forward;
  for (const Count inner : {f.hidden, f.shared_hidden}) {
    if (inner == 0) continue;
    const Perceptron part = perceptron(block.hidden, inner, f.gated, f.bias);
    out.feed_forward += part.sharded;
    out.replicated += part.row_bias;
  }
  if (!f.is_moe()) return;
  const Perceptron expert = perceptron(block.expert_input(), f.expert_hidden, f.gated, f.bias);
  out.expert += f.experts * (expert.sharded + expert.row_bias);
  out.replicated += block.hidden * f.experts + 2 * block.hidden * f.latent_hidden;
  if (f.router_bias) out.replicated += f.experts;
  if (f.shared_gate) out.replicated += block.hidden;
}

Count norm_size(Count hidden, bool bias) { return bias ? 2 * hidden : hidden; }

Count embedding_width(const Model& model) {
  return model.embedding_projection > 0 ? model.embedding_projection : model.hidden;
}

Count projection_size(const Model& model) { return model.embedding_projection * model.hidden; }

}  // namespace

namespace {

BlockParameters own_parameters(const BlockType& block) {
  BlockParameters out;
  add_mixer(block, out);
  add_feed_forward(block, out);
  out.replicated += block.norms * norm_size(block.hidden, block.norm_bias);
  return out;
}

/// Of the pair of an adapter, tp splits the matrix at the side where it splits what the adapter stands beside.
void add_adapters(const BlockType& block, BlockParameters& out) {
  for (const AdaptableMatrix& matrix : adapted_matrices(block)) {
    const Count inner = block.adapters.rank * (matrix.splits_input() ? matrix.in : matrix.out);
    const Count outer = block.adapters.rank * (matrix.splits_input() ? matrix.out : matrix.in);
    (matrix.of_attention() ? out.attention : out.feed_forward) += inner;
    out.replicated += outer;
  }
}

void add_connector(const Connector& connector, BlockParameters& out) {
  const ConnectorParameters own = parameters(connector);
  out.feed_forward += own.sharded;
  out.replicated += own.replicated;
}

/// Of what embeds the input of the encoders, the part of those that are not trained.
Count frozen_patch_parameters(const Model& model) {
  Count frozen = 0;
  for (const Module& module : model.graph.modules) frozen += module.trainable ? 0 : module.patch_parameters;
  return frozen;
}

}  // namespace

BlockParameters parameters(const BlockType& block) {
  BlockParameters out = own_parameters(block);
  add_adapters(block, out);
  if (block.connector) add_connector(*block.connector, out);
  return out;
}

BlockParameters linear_parameters(const BlockType& block) {
  BlockType bare = plain(block);
  bare.norms = 0;
  bare.attention.qkv_bias = false;
  bare.attention.output_bias = false;
  bare.attention.qk_norm = false;
  bare.feed_forward.bias = false;
  bare.feed_forward.router_bias = false;
  if (bare.recurrence) bare.recurrence->projection_bias = false;
  BlockParameters all = own_parameters(bare);
  if (block.attends() && block.attention.kind == AttentionKind::kLatent && !block.recurrence) {
    all.replicated -= Count{block.attention.q_lora_rank} + block.attention.kv_lora_rank;  // their norms
  }
  if (bare.recurrence) {
    const RecurrenceParameters own = parameters(*bare.recurrence, bare.hidden);
    all.attention -= own.vectors;
    all.replicated -= own.replicated;
  }
  return all;
}

BlockParameters quantized_parameters(const BlockType& block) {
  if (!block.adapters.any() || block.adapters.base == BaseQuantization::kNone) return {};
  BlockParameters all = linear_parameters(block);
  const FeedForward& f = block.feed_forward;
  if (f.is_moe()) all.replicated -= block.hidden * (f.experts + (f.shared_gate ? 1 : 0));
  return all;
}

double spared_share(const BlockType& block, std::int64_t full) {
  if (!block.adapters.any()) return 0;
  const std::optional<double> bytes = quantized_bytes(block.adapters.base);
  return bytes ? 1 - *bytes / static_cast<double>(full) : 0;
}

BlockParameters trained_parameters(const BlockType& block) {
  BlockParameters out;
  if (block.gradients.weights) out = own_parameters(block);
  add_adapters(block, out);
  if (block.connector && block.connector->gradients.weights) add_connector(*block.connector, out);
  return out;
}

BlockType plain(BlockType block) {
  block.gradients = {};
  block.connector.reset();
  block.constraint = {};
  block.adapters = {};
  block.attention.packed_length = 0;
  return block;
}

void lift_constraint(Model& model, Module& module) {
  module.constraint = {};
  for (int i = module.blocks.first; i < module.blocks.last; ++i) {
    at(model.types, at(model.blocks, i)).constraint = {};
  }
}

void lift_constraints(Model& model) {
  for (Module& module : model.graph.modules) lift_constraint(model, module);
}

bool Model::has_experts() const {
  return std::ranges::any_of(types, [](const BlockType& type) { return type.feed_forward.is_moe(); });
}

std::int64_t Model::embedding_parameters() const {
  return vocabulary * embedding_width(*this) + learned_positions * hidden + projection_size(*this) +
         extra_embedding_parameters;
}

std::int64_t Model::head_parameters() const {
  const Count norm = final_norm ? norm_size(hidden, final_norm_bias) : 0;
  const Count output = tied_embeddings ? 0 : vocabulary * embedding_width(*this);
  return norm + projection_size(*this) + output;
}

std::int64_t Model::total_parameters() const {
  Count total = embedding_parameters() + head_parameters();
  for (int i = 0; i < block_count(); ++i) total += parameters(block(i)).total();
  return total;
}

double Model::held_parameters() const {
  return tangram::model::held_parameters(*this, signature(*this, 0, block_count()));
}

std::int64_t Model::trained_embedding_parameters() const {
  const Count extra = extra_embedding_parameters - frozen_patch_parameters(*this);
  return end_gradients().weights ? embedding_parameters() - extra_embedding_parameters + extra : extra;
}

std::int64_t Model::trained_head_parameters() const { return end_gradients().weights ? head_parameters() : 0; }

std::int64_t Model::trained_parameters() const {
  Count total = trained_embedding_parameters() + trained_head_parameters();
  for (int i = 0; i < block_count(); ++i) total += tangram::model::trained_parameters(block(i)).total();
  return total;
}

std::int64_t Model::active_parameters() const {
  Count active = total_parameters();
  for (int i = 0; i < block_count(); ++i) {
    const FeedForward& f = block(i).feed_forward;
    if (f.is_moe()) active -= parameters(block(i)).expert / f.experts * (f.experts - f.experts_per_token);
  }
  return active;
}

}  // namespace tangram::model
