// What is outside a block: its connector, the embedding and the head.
#include <vector>

#include "block_parts.hpp"

namespace tangram::cost {
namespace {

/// Learned queries attend to the tokens of their item, as one head of the inner width.
Passes resampler_attention(const model::Connector& connector, double element, double samples, int tp,
                           const DeviceRates& rates) {
  AttentionCore core;
  core.samples = samples;
  core.heads = core.kv_heads = 1;
  core.queries = static_cast<double>(connector.queries);
  core.keys = core.visible = static_cast<double>(connector.tokens_in);
  core.qk_dim = core.v_dim = static_cast<double>(connector.widths[1]) / tp;
  return fused_attention_seconds(core, element, rates);
}

/// Bytes a logit that kernels of the loss read and write.
struct LossTraffic {
  double forward = 0;
  double backward = 0;
};

/// By operators of Megatron-LM's vocabulary-parallel cross-entropy: cast to fp32 (e + 4), maximum (4), exponential and
/// sum (8), division (8); backward scaling in place (8), cast back (4 + e). Compiled between its exchanges
/// (core/fusions/fused_cross_entropy.py), the maximum is found while casting, and scaling casts. In one kernel, or
/// where a compiler has all of it, the logits are read twice and their gradient is written in their place, then scaled.
LossTraffic loss_traffic(const model::Job& job, double element) {
  const LossTraffic by_operators{element + 24, element + 12};
  if (!job.fused_kernels) return by_operators;
  if (job.fused_loss == model::FusedLoss::kTransformerEngine || !job.in_place_loss) return {3 * element, 2 * element};
  return job.fused_loss == model::FusedLoss::kNative ? LossTraffic{element + 20, element + 4} : by_operators;
}

double vocabulary_width(const model::Model& model) {
  return static_cast<double>(model.embedding_projection > 0 ? model.embedding_projection : model.hidden);
}

/// Tokens and rows outside the blocks.
struct EdgeRows {
  double element = 2;
  double tokens = 0;
  double rows = 0;
};

EdgeRows edge_rows(const model::Model& model, const Degrees& degrees, double samples_per_replica) {
  EdgeRows edge;
  edge.element = activation_element(model.job.precision);
  edge.tokens = samples_per_replica * static_cast<double>(model.job.sequence_length) / degrees.cp;
  edge.rows = degrees.sequence_parallel ? edge.tokens / degrees.tp : edge.tokens;
  return edge;
}

}  // namespace

BlockTime connector_time(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                         double samples_per_replica, const cluster::DeviceShape& shape,
                         std::span<const CollectiveCurve> curves) {
  BlockTime time;
  if (!block.connector) return time;
  const model::Connector& connector = *block.connector;
  const DeviceRates rates = device_rates(shape.device, job);
  const double element = activation_element(job.precision);
  const double gradient = added_gradient(job);
  const double samples = samples_per_replica / degrees.cp;
  const auto values = [&](std::int64_t rows, std::int64_t width) {
    return samples * static_cast<double>(rows) * static_cast<double>(width);
  };
  const auto streamed = [&](double count, double forward, double backward) {
    return Passes{streaming_seconds(element * count * forward, rates),
                  streaming_seconds(element * count * backward, rates), 1, 1};
  };
  const std::vector<model::ConnectorProduct> all = products(connector);
  for (const model::ConnectorProduct& product : all) {
    const double columns = static_cast<double>(product.out) / degrees.tp;
    time.compute += linear_seconds(samples * static_cast<double>(product.rows), static_cast<double>(product.in),
                                   columns, 1, element, gradient, rates.matrix, rates, connector.gradients);
    time.compute += streamed(values(product.rows, product.out) / degrees.tp, kPlainForward, kPlainBackward);
  }
  if (connector.kind == model::ConnectorKind::kResampler) {
    time.compute += resampler_attention(connector, element, samples, degrees.tp, rates);
  }
  const double input = values(all.front().rows, all.front().in);
  if (connector.norm > 0) time.compute += streamed(input, kNormForward, kNormBackward);
  time.compute = host_bound(time.compute, rates, job.blocking_launches);
  const Group tp = process_groups(degrees, shape).tensor;
  const double output = values(all.back().rows, all.back().out);
  time.tensor = {
      collective_seconds(Collective::kAllReduce, element * output, tp, shape, curves),
      connector.gradients.inputs ? collective_seconds(Collective::kAllReduce, element * input, tp, shape, curves) : 0};
  time.communication = time.tensor;
  if (!connector.gradients.any()) drop_backward(time);
  return time;
}

BlockTime embedding_time(const model::Model& model, const Degrees& degrees, double samples_per_replica,
                         const cluster::DeviceShape& shape, std::span<const CollectiveCurve> curves) {
  const DeviceRates rates = device_rates(shape.device, model.job);
  const EdgeRows edge = edge_rows(model, degrees, samples_per_replica);
  const double width = vocabulary_width(model);
  const double hidden = static_cast<double>(model.hidden);
  const double gradient = static_cast<double>(model.job.gradient_bytes);
  BlockTime time;
  // Table row read, output written; backward reads the gradient, reads and writes the row of the main gradient.
  time.compute.forward = streaming_seconds(2 * edge.element * edge.tokens * width, rates);
  time.compute.backward = streaming_seconds((edge.element + 2 * gradient) * edge.tokens * width, rates);
  if (model.embedding_projection > 0) {
    time.compute +=
        linear_seconds(edge.tokens, width, hidden, 1, edge.element, added_gradient(model.job), rates.attention, rates);
  }
  const double bytes = edge.element * edge.tokens * width;
  const Group tp = place_group(degrees.tp, 1, shape);
  if (degrees.sequence_parallel) {
    time.communication.forward = collective_seconds(Collective::kReduceScatter, bytes, tp, shape, curves);
    time.communication.backward = collective_seconds(Collective::kAllGather, bytes, tp, shape, curves);
  } else {
    time.communication.forward = collective_seconds(Collective::kAllReduce, bytes, tp, shape, curves);
  }
  time.tensor = time.communication;
  if (!model.end_gradients().weights) drop_backward(time);
  return time;
}

BlockTime head_time(const model::Model& model, const Degrees& degrees, double samples_per_replica,
                    const cluster::DeviceShape& shape, std::span<const CollectiveCurve> curves) {
  const DeviceRates rates = device_rates(shape.device, model.job);
  const EdgeRows edge = edge_rows(model, degrees, samples_per_replica);
  const double hidden = static_cast<double>(model.hidden);
  const double width = vocabulary_width(model);
  const double gradient = added_gradient(model.job);
  const double columns = padded_vocabulary(model.vocabulary, degrees.tp) / degrees.tp;
  const model::Gradients gradients = model.end_gradients();
  BlockTime time;
  if (model.final_norm) {
    time.compute += Passes{streaming_seconds(kNormForward * edge.element * edge.rows * hidden, rates),
                           streaming_seconds(kNormBackward * edge.element * edge.rows * hidden, rates)};
  }
  if (model.embedding_projection > 0) {
    time.compute +=
        linear_seconds(edge.tokens, hidden, width, 1, edge.element, gradient, rates.attention, rates, gradients);
  }
  time.compute +=
      linear_seconds(edge.tokens, width, columns, 1, edge.element, gradient, rates.attention, rates, gradients);
  const LossTraffic loss = loss_traffic(model.job, edge.element);
  time.compute += Passes{streaming_seconds(loss.forward * edge.tokens * columns, rates),
                         streaming_seconds(loss.backward * edge.tokens * columns, rates)};

  const double bytes = edge.element * edge.tokens * hidden;
  const Group tp = place_group(degrees.tp, 1, shape);
  constexpr double kScalars = 3 * 4;  // maximum, target logit and sum of each token, fp32
  time.communication.forward = collective_seconds(Collective::kAllReduce, kScalars * edge.tokens, tp, shape, curves);
  if (degrees.sequence_parallel) {
    time.communication.forward += collective_seconds(Collective::kAllGather, bytes, tp, shape, curves);
    time.communication.backward = collective_seconds(Collective::kReduceScatter, bytes, tp, shape, curves);
  } else {
    time.communication.backward = collective_seconds(Collective::kAllReduce, bytes, tp, shape, curves);
  }
  time.tensor = time.communication;
  if (!gradients.any()) drop_backward(time);
  return time;
}

model::Model unfrozen(model::Model model) {
  model.graph = {};
  return model;
}

}  // namespace tangram::cost
