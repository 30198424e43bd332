#include "tangram/cost/colocated.hpp"

#include <algorithm>
#include <string>

#include "tangram/base/assert.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::cost {

namespace {

/// All blocks, with what embeds the encoder's input. What it hands over is its upper cut.
model::SliceSignature whole_encoder(const model::Model& encoder, std::int64_t output_bytes) {
  model::SliceSignature slice = model::signature(encoder, 0, encoder.block_count());
  slice.head = false;
  slice.tied_elsewhere = false;
  slice.exit_bytes = output_bytes;
  return slice;
}

MemoryPolicy policy_of(const EncoderLayout& layout, int blocks) {
  MemoryPolicy policy;
  policy.recompute = layout.recompute;
  policy.recompute_layers = layout.recompute == RecomputeMode::kFull ? blocks : 0;
  return policy;
}

Degrees degrees_of(const EncoderLayout& layout) {
  Degrees degrees;
  degrees.tp = layout.tp;
  degrees.sequence_parallel = layout.sequence_parallel;
  return degrees;
}

cluster::DeviceShape lane_shape(const cluster::DeviceShape& stage, int tp) {
  cluster::DeviceShape lane = stage;
  lane.nodes = 1;
  lane.per_node = tp;
  return lane;
}

Diagnostics leaves_member(int tp, const cluster::DeviceShape& stage) {
  return {problem(ErrorKind::kInfeasible, "encoder-lanes",
                  "lanes of " + std::to_string(tp) + " GPUs do not divide members of " + std::to_string(stage.per_node),
                  "give encoders a tp that divides the GPUs of every stage in each member")};
}

std::int64_t trained_parameters(const model::Model& encoder) {
  std::int64_t trained = encoder.trained_embedding_parameters();
  for (int i = 0; i < encoder.block_count(); ++i) trained += model::trained_parameters(encoder.block(i)).total();
  return trained;
}

}  // namespace

std::string_view to_string(EncoderTurns turns) {
  return turns == EncoderTurns::kThreePhases ? "three-phase" : "per-microbatch";
}

EncoderCost& EncoderCost::operator+=(const EncoderCost& other) {
  forward += other.forward;
  backward += other.backward;
  gradient_sync += other.gradient_sync;
  optimizer_step += other.optimizer_step;
  static_memory += other.static_memory;
  transient = std::max(transient, other.transient);
  held += other.held;
  return *this;
}

Expected<EncoderCost> encoder_cost(const model::Model& encoder, std::int64_t output_bytes,
                                   const cluster::DeviceShape& stage, const EncoderLayout& layout, std::int64_t samples,
                                   std::int64_t lanes, const ProfileSet* profiles) {
  TANGRAM_ASSERT(samples > 0 && lanes > 0);
  if (layout.tp < 1 || stage.per_node % layout.tp != 0) return fail(leaves_member(layout.tp, stage));
  const model::SliceSignature whole = whole_encoder(encoder, output_bytes);
  const auto units = unit_costs_of(encoder, whole, lane_shape(stage, layout.tp), degrees_of(layout),
                                   static_cast<int>(samples), profiles);
  if (!units) return fail(units.error());
  const StageCost lane = stage_cost(*units, whole, policy_of(layout, encoder.block_count()));
  const double shards = layout.zero1 ? static_cast<double>(lanes) : 1;
  EncoderCost cost;
  cost.forward = lane.forward;
  cost.backward = lane.backward;
  cost.optimizer_step = ceil_to_nanoseconds(to_seconds(lane.optimizer_step) / shards);
  cost.static_memory = lane.parameters + lane.gradients + ceil_to_bytes(lane.optimizer_state.as_double() / shards);
  cost.transient = lane.transient;
  cost.held = lane.activation;
  return cost;
}

void collect_encoder(const ProfileSet& profiles, const model::Model& encoder, const cluster::DeviceShape& stage,
                     const EncoderLayout& layout, std::int64_t samples, Selection& used) {
  collect_used(profiles, encoder, whole_encoder(encoder, 0), lane_shape(stage, layout.tp), degrees_of(layout),
               static_cast<int>(samples), used);
}

Nanoseconds encoder_sync(const model::Model& encoder, const EncoderLayout& layout, const cluster::Link& link,
                         std::int64_t lanes) {
  const auto trained = static_cast<double>(trained_parameters(encoder));
  const auto gradients = static_cast<double>(encoder.job.gradient_bytes);
  const auto parameters = static_cast<double>(encoder.job.parameter_bytes);
  // A ring's reduction and gather move the same bytes each, so that half of an all-reduce is either.
  const double each = layout.zero1 ? (gradients + parameters) / 2 : gradients;
  return replica_sync(ceil_to_bytes(trained * each), static_cast<int>(lanes), link, 1);
}

EncoderCost slowed(EncoderCost cost, double factor) {
  cost.forward = ceil_to_nanoseconds(to_seconds(cost.forward) * factor);
  cost.backward = ceil_to_nanoseconds(to_seconds(cost.backward) * factor);
  return cost;
}

Nanoseconds handover_time(const EncoderHandover& handover) {
  if (handover.stages == 1 && handover.lanes == handover.replicas) return Nanoseconds(0);
  return boundary_cost(handover.bytes, handover.link, handover.members, handover.lanes, handover.members,
                       handover.replicas)
      .latency;
}

}  // namespace tangram::cost
