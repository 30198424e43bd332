#include "encoder_price.hpp"

#include <algorithm>

#include "reason.hpp"

namespace tangram::accuracy {
namespace {

bool runs_each_microbatch(const SharedEncoder& encoder) { return encoder.turns == cost::EncoderTurns::kPerMicrobatch; }

/// Bytes of one GPU's shards, of so many bytes a parameter.
double shard_bytes(const SharedEncoder& encoder, std::int64_t each) {
  return static_cast<double>(encoder.model.total_parameters()) * static_cast<double>(each) / encoder.layout.tp;
}

double bytes_on_host(const SharedEncoder& encoder) {
  const model::Job& job = encoder.model.job;
  return encoder.offloaded ? shard_bytes(encoder, job.parameter_bytes + job.gradient_bytes) : 0;
}

Expected<cost::EncoderCost> cost_of(const SharedEncoder& encoder, const Stage& stage, const cost::EncoderLayout& layout,
                                    const cost::ProfileSet& profiles) {
  return cost::encoder_cost(encoder.model, encoder.output_bytes, stage.parts.front().shape, layout, encoder.items,
                            encoder.lanes, &profiles);
}

/// Bytes of a layer's input on one GPU.
double input_bytes(const SharedEncoder& encoder) {
  const model::BlockType& layer = encoder.model.block(0);
  const double values = static_cast<double>(encoder.items) * static_cast<double>(layer.tokens * layer.hidden);
  const int shards = encoder.layout.sequence_parallel ? encoder.layout.tp : 1;
  return values * static_cast<double>(encoder.model.job.parameter_bytes) / shards;
}

/// Bytes held from forward to backward, and in backward.
struct Held {
  double all_along = 0;
  double recomputed = 0;
};

/// Of several layers between kept inputs, all are there while backward is among them.
Held held_by(const SharedEncoder& encoder, const cost::EncoderCost& cost, const cost::EncoderCost& kept) {
  const int layers = encoder.model.block_count();
  const int each = std::min(encoder.kept_every, layers);
  if (encoder.layout.recompute != cost::RecomputeMode::kFull) return {cost.held.as_double(), 0};
  const int inputs = (layers + each - 1) / each;
  const double share = static_cast<double>(each - 1) / layers;
  return {cost.held.as_double() - (layers - inputs) * input_bytes(encoder), share * kept.held.as_double()};
}

}  // namespace

Expected<EncoderPrice> price_encoder(const SharedEncoder& encoder, const Stage& stage,
                                     const cost::ProfileSet& profiles) {
  cost::EncoderLayout keeping = encoder.layout;
  keeping.recompute = cost::RecomputeMode::kNone;
  const auto cost = cost_of(encoder, stage, encoder.layout, profiles);
  const auto kept = cost_of(encoder, stage, keeping, profiles);
  if (!cost) return fail(reason(cost.error().front().message));
  const Nanoseconds sync = cost::encoder_sync(encoder.model, encoder.layout, encoder.sync_link, encoder.lanes);
  EncoderPrice price;
  price.passes.forward = cost->forward;
  price.passes.backward = cost->backward;
  price.passes.exposed_sync = runs_each_microbatch(encoder) ? cost::exposed_sync(sync, cost->backward) : sync;
  price.passes.optimizer_step = cost->optimizer_step;
  const Held held = held_by(encoder, *cost, *kept);
  const double always = cost->static_memory.as_double() + held.all_along;
  price.alone = always + held.recomputed + cost->transient.as_double();
  price.beside = always - bytes_on_host(encoder);
  return price;
}

simulate::SimTurns turns_of(const SharedEncoder& encoder, const cluster::GpuType& device, std::int64_t microbatches) {
  simulate::SimTurns turns;
  turns.rounds = runs_each_microbatch(encoder) ? microbatches : 1;
  turns.gather = cost::handover_time(encoder.handover);
  if (encoder.offloaded) {
    const double weights = shard_bytes(encoder, encoder.model.job.parameter_bytes);
    turns.gather += ceil_to_nanoseconds(weights / device.pcie.bandwidth.value());
  }
  turns.broadcast = turns.gather;
  return turns;
}

}  // namespace tangram::accuracy
