// FLOPs as MFU counts them: 2 per multiply-add of every matrix product of the model.
#include <algorithm>

#include "tangram/model/model.hpp"

namespace tangram::model {

namespace {

double number(std::int64_t value) { return static_cast<double>(value); }

// Weights that one token is multiplied with: no norms, no biases, and of the experts only the chosen ones.
double multiplied_weights(const BlockType& block) {
  const BlockParameters all = linear_parameters(block);
  double weights = number(all.attention + all.replicated + all.feed_forward);
  const FeedForward& f = block.feed_forward;
  if (f.is_moe()) weights += number(all.expert) / f.experts * f.experts_per_token;
  return weights;
}

// Query-key pairs of one sample and head. A causal query at position i of a sequence of l tokens sees min(i, w) keys:
// the integral over the sequence is l w - w^2/2, which for w = l is the half of l^2 that the PaLM convention counts. A
// sample of s tokens has s / l of them.
double attended_pairs(const BlockType& block) {
  const double s = number(block.tokens);
  const double packed = block.attention.packed_length;
  const double l = packed > 0 ? std::min(packed, s) : s;
  const std::int64_t limit = block.attention.sliding_window;
  const double w = limit > 0 ? std::min(number(limit), l) : l;
  return block.attention.causal ? s * w - s / l * w * w / 2 : s * w;
}

// Products without weights: of attention, or of a recurrence with its states.
double mixer_flops(const BlockType& block) {
  if (block.recurrence) return recurrence_flops(*block.recurrence, block.tokens).value();
  const Attention& a = block.attention;
  // Q K^T costs 2 FLOPs per pair and query-key dimension, the product with V 2 per pair and value dimension.
  const int dims =
      a.kind == AttentionKind::kLatent ? a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim : 2 * a.head_dim;
  return 2.0 * attended_pairs(block) * a.heads * dims;
}

double adapter_flops(const BlockType& block) {
  double weights = 0;
  for (const AdaptableMatrix& matrix : adapted_matrices(block)) {
    weights += number(block.adapters.rank) * number(matrix.in + matrix.out);
  }
  return 2.0 * number(block.tokens) * weights;
}

double linear_flops(const BlockType& block) { return 2.0 * number(block.tokens) * multiplied_weights(block); }

// Backward multiplies each activation gradient with the weights for the gradient of the input, and with the activations
// for that of the weights: each as much as forward. Attention and recurrences have no weights there, but two inputs to
// each product. Forward FLOPs of what is trained in full, of which backward has twice as many, and FLOPs of both
// directions of what is not.
struct IterationFlops {
  double trained = 0;
  double partly = 0;

  void add(double linear, double mixer, const Gradients& gradients) {
    if (gradients == Gradients{}) {
      trained += linear + mixer;
    } else {
      partly += linear * (1 + gradients.products()) + mixer * (1 + gradients.attention_products());
    }
  }
};

}  // namespace

Flops forward_flops(const BlockType& block) {
  const double own = linear_flops(block) + mixer_flops(block) + adapter_flops(block);
  return block.connector ? Flops(own) + forward_flops(*block.connector) : Flops(own);
}

Flops embedding_forward_flops(const Model& model) {
  return Flops(2.0 * number(model.job.sequence_length) * number(model.embedding_projection) * number(model.hidden));
}

Flops head_forward_flops(const Model& model) {
  const std::int64_t width = model.embedding_projection > 0 ? model.embedding_projection : model.hidden;
  const double weights =
      number(model.vocabulary) * number(width) + number(model.embedding_projection) * number(model.hidden);
  return Flops(2.0 * number(model.job.sequence_length) * weights);
}

Flops model_flops_per_iteration(const Model& model) {
  IterationFlops flops;
  flops.add(embedding_forward_flops(model).value() + head_forward_flops(model).value(), 0, model.end_gradients());
  for (int i = 0; i < model.block_count(); ++i) {
    const BlockType& block = model.block(i);
    flops.add(linear_flops(block), mixer_flops(block), block.gradients);
    flops.add(adapter_flops(block), 0, {});
    if (block.connector) flops.add(forward_flops(*block.connector).value(), 0, block.connector->gradients);
  }
  return Flops((3.0 * flops.trained + flops.partly) * number(model.job.global_batch));
}

}  // namespace tangram::model
