#include "block_recompute.hpp"

#include <algorithm>

namespace tangram::cost {
namespace {

double norms_again(const BlockContext& c) {
  const double norms = c.block.parallel_attention && c.block.norms == 1 ? 1 : c.local.parts;
  return norms * norm(c, c.local.rows * c.local.hidden).forward;
}

/// With the output projection where it is run again beside the core.
double attention_again(const BlockContext& c, const MixerTime& mixer) {
  const double core = mixer.core.forward + mixer.exchange;
  if (!c.exchanges.shape.methods.output_again || !c.block.attends()) return core;
  return core + linear(c, c.local.tokens, c.local.core.heads * c.local.core.v_dim, c.local.hidden).forward;
}

/// A dense feed-forward part or shared experts.
double dense_again(const BlockContext& c, double columns, const model::Job& job) {
  if (columns <= 0) return 0;
  return host_bound(feeding(c, columns), c.rates, job.blocking_launches).forward + tensor_exchange(c).forward;
}

/// A layer's router, its experts and those that all tokens share, with all that they exchange.
double experts_again(const BlockContext& c, const Passes& routed, const ExpertExchange& exchange,
                     const model::Job& job) {
  const double own = host_bound(routed, c.rates, job.blocking_launches).forward + issued_one_by_one(c, job).forward;
  return dense_again(c, c.local.shared, job) + own + exchange.routes + exchange.tensor;
}

/// A product that gives what leaves the block, of so many values for a token, with its exchange.
double last_product(const BlockContext& c, double inner, const model::Job& job) {
  if (inner <= 0) return 0;
  const double product = linear(c, c.local.tokens, inner, c.local.hidden).forward;
  if (job.overlap_tp) return product;
  const double bytes = c.local.element * c.local.tokens * c.local.hidden;
  const Collective last = c.degrees.sequence_parallel ? Collective::kReduceScatter : Collective::kAllReduce;
  return product + c.exchanges.seconds(last, bytes, c.exchanges.groups.tensor);
}

/// What the mixer's output projection reads, for a token.
double mixed_width(const BlockContext& c) {
  return c.local.recurrence ? c.local.recurrence->inner : c.local.core.heads * c.local.core.v_dim;
}

/// The experts' second products, since tokens are weighed before them, and the way back: half of what is exchanged.
double last_of_experts(const BlockContext& c, double routes, const model::Job& job) {
  const LocalBlock& l = c.local;
  const double products = linear(c, l.expert_rows / l.experts, l.expert_width, l.expert_input, l.experts).forward;
  return products + routes / 2 + last_product(c, l.shared, job);
}

}  // namespace

double unread_seconds(const BlockContext& c, double routes, const model::Job& job) {
  if (!c.exchanges.shape.methods.early_stop) return 0;
  if (c.block.feed_forward.is_moe()) return last_of_experts(c, routes, job);
  return last_product(c, c.local.dense > 0 ? c.local.dense : mixed_width(c), job);
}

double selective_seconds(const BlockContext& c, const MixerTime& mixer, const Passes& routed,
                         const ExpertExchange& exchange, const model::Job& job) {
  using model::RecomputeModule;
  const model::RecomputeModules again = model::recomputed_modules(c.block, job);
  double seconds = 0;
  if (again.has(RecomputeModule::kNorms)) seconds += norms_again(c);
  if (again.has(RecomputeModule::kCoreAttention)) seconds += attention_again(c, mixer);
  if (again.has(RecomputeModule::kLatentUp)) seconds += mixer.latent_up;
  if (again.has(RecomputeModule::kFeedForward)) {
    const double unread = c.exchanges.shape.methods.early_stop ? last_product(c, c.local.dense, job) : 0;
    seconds += std::max(0.0, dense_again(c, c.local.dense, job) - unread);
  }
  // Parts of what is run again as a whole are run once more in its own backward pass (Megatron-Core's moe_layer.py).
  if (again.has(RecomputeModule::kExperts)) seconds += experts_again(c, routed, exchange, job);
  if (again.has(RecomputeModule::kExpertActivation)) seconds += expert_activation(c).forward;
  if (again.has(RecomputeModule::kSharedExperts)) seconds += dense_again(c, c.local.shared, job);
  return seconds;
}

}  // namespace tangram::cost
