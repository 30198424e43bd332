#include "tangram/cost/put_off.hpp"

#include <cmath>

#include "tangram/base/at.hpp"
#include "tangram/cost/block_time.hpp"

namespace tangram::cost {

namespace {

/// Of a block's modelled backward pass, its connector's included, what are products for weight gradients.
double share_of_weight_gradients(const model::BlockType& block, const model::Job& job, const UnitCosts& units,
                                 double samples) {
  if (!block.gradients.weights) return 0;
  const auto backward = [&](const model::Gradients& wanted) {
    model::BlockType type = block;
    type.gradients = wanted;
    return block_time(type, job, units.degrees, samples, units.shape, units.curves);
  };
  const double products = backward({true, true}).compute.backward - backward({false, true}).compute.backward;
  const BlockTime own = backward(block.gradients);
  const BlockTime connector = connector_time(block, job, units.degrees, samples, units.shape, units.curves);
  const double all =
      own.compute.backward + own.communication.backward + connector.compute.backward + connector.communication.backward;
  return all > 0 ? std::clamp(products / all, 0.0, 1.0) : 0;
}

/// Values a token of what linear layers of the mixer read and of the gradients of what they gave.
double mixer_values(const model::BlockType& block, const LocalBlock& local) {
  if (!block.mixes()) return 0;
  if (local.recurrence) return 2 * local.hidden + local.recurrence->projected + local.recurrence->inner;
  const model::Attention& attention = block.attention;
  const AttentionCore& core = local.core;
  double token = 2 * local.hidden + core.heads * core.v_dim;
  if (attention.kind == model::AttentionKind::kLatent) {
    token += 2.0 * (attention.q_lora_rank + attention.kv_lora_rank) + attention.qk_rope_head_dim;
    token += core.heads * (core.qk_dim + attention.qk_nope_head_dim + core.v_dim);
  } else {
    token += core.heads * core.qk_dim + core.kv_heads * (core.qk_dim + core.v_dim);
  }
  if (attention.output_gate) token += core.heads * core.v_dim;
  return token;
}

}  // namespace

double put_off_bytes(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                     double samples_per_replica) {
  if (!block.gradients.weights) return 0;
  const LocalBlock local = local_block(block, job, degrees, samples_per_replica);
  const double columns = block.feed_forward.gated ? 2 : 1;  // of the up-projection, for each of the down-projection
  double token = mixer_values(block, local);
  const double dense = local.dense + local.shared;
  if (dense > 0) token += 2 * local.hidden + (columns + 1) * dense;
  double values = local.tokens * token;
  if (block.feed_forward.is_moe()) {
    values += local.rows * (local.hidden + block.feed_forward.experts);
    if (block.feed_forward.latent_hidden > 0) values += local.rows * (local.hidden + 2 * local.expert_input);
    values += local.expert_rows * (2 * local.expert_input + (columns + 1) * local.expert_width);
  }
  return local.element * values;
}

PutOffUnits put_off_units(const model::Model& model, const UnitCosts& units) {
  const auto samples = static_cast<double>(units.degrees.most_samples(units.samples));
  PutOffUnits result;
  for (std::size_t type = 0; type < model.types.size(); ++type) {
    const model::BlockType& block = model.types[type];
    result.seconds.push_back(share_of_weight_gradients(block, model.job, units, samples) * units.blocks[type].backward);
    result.bytes.push_back(put_off_bytes(block, model.job, units.degrees, samples));
  }
  return result;
}

PutOffCost put_off_cost(const model::Model& model, const UnitCosts& units, const model::SliceSignature& slice) {
  return put_off_cost(put_off_units(model, units), slice);
}

PutOffCost put_off_cost(const PutOffUnits& units, const model::SliceSignature& slice) {
  double seconds = 0;
  double bytes = 0;
  for (const auto& [type, count] : slice.runs) {
    seconds += count * at(units.seconds, type);
    bytes += count * at(units.bytes, type);
  }
  return {Nanoseconds(static_cast<std::int64_t>(std::floor(seconds * 1e9))), ceil_to_bytes(bytes)};
}

}  // namespace tangram::cost
