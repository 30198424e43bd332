#include "colocated_pricing.hpp"

#include <algorithm>

#include "tangram/base/at.hpp"
#include "tangram/cluster/slowest.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/model/split.hpp"

namespace tangram::compose {

namespace {

std::int64_t ceil_of(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// Of the fullest pipeline.
std::int64_t round_samples(const Composition& plan, EncoderTurns turns) {
  if (turns == EncoderTurns::kPerMicrobatch) return plan.microbatch;
  if (plan.samples == 0) return plan.microbatch * plan.microbatches;
  return ceil_of(plan.samples, plan.replicas);
}

/// Of a stage's GPUs: its stages are on one shape each.
const PartChoice& only_part(const StageChoice& stage) { return stage.parts.front(); }

Placement placement_of(const StageChoice& stage) {
  const PartChoice& part = only_part(stage);
  return {part.island_class, part.gpus, part.member};
}

void slow_link(std::optional<cluster::Link>& slowest, const cluster::Link& link) {
  slowest = slowest ? slower_of(*slowest, link) : link;
}

/// Between the GPUs of one stage, per member: its own links.
cluster::Link link_inside(const cluster::IslandLevel& level, const StageChoice& stage) {
  const PartChoice& part = only_part(stage);
  const cluster::DeviceShape shape = cluster::make_shape(at(level.classes, part.island_class), part.gpus);
  if (shape.nodes > 1) return shape.inter;
  cluster::Link link = shape.intra;
  link.bandwidth = cluster::bandwidth_among(shape.device, link, 2) * static_cast<double>(shape.per_node);
  return link;
}

cluster::Link pipeline_link(const cluster::IslandLevel& level, const Composition& plan) {
  std::optional<cluster::Link> slowest;
  for (const StageChoice& stage : plan.stages) slow_link(slowest, link_inside(level, stage));
  for (std::size_t s = 1; s < plan.stages.size(); ++s) {
    slow_link(slowest, link_between(level, placement_of(plan.stages.front()), placement_of(plan.stages[s])));
  }
  return *slowest;
}

/// Whole members send: a ring over all lanes leaves each of them once.
cluster::Link lanes_link(const cluster::IslandLevel& level, const Composition& plan) {
  std::optional<cluster::Link> slowest;
  for (const StageChoice& from : plan.stages) {
    slow_link(slowest, link_inside(level, from));
    for (const StageChoice& to : plan.stages) {
      if (&from == &to && plan.replicas == 1) continue;
      slow_link(slowest, link_between(level, placement_of(from), placement_of(to)));
    }
  }
  return *slowest;
}

/// Of what exceeds what a GPU may hold.
Bytes memory_shortage(const Composition& plan, const cluster::IslandLevel& level) {
  Bytes shortage;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PartChoice& part = only_part(plan.stages[s]);
    const Bytes own = part.plan.cost.peak(plan.stages[s].in_flight);
    const Bytes first = s == 0 ? plan.colocated->embeddings : Bytes(0);
    const Bytes need = own + plan.colocated->costs[s].reserve() + first;
    const Bytes usable = at(level.classes, part.island_class).device.usable();
    if (need > usable) shortage = std::max(shortage, need - usable);
  }
  return shortage;
}

/// Where turns are three phases, nothing hides synchronisation.
void expose_all(Composition& plan) {
  for (StageChoice& stage : plan.stages) {
    stage.A = stage.T + only_part(stage).plan.cost.gradient_sync + stage.crossing;
  }
}

}  // namespace

LaneShare lane_share(const Composition& plan, EncoderTurns turns, int tp) {
  LaneShare share;
  std::int64_t gpus = 0;
  for (const StageChoice& stage : plan.stages) gpus += only_part(stage).gpus;
  share.lanes = std::max<std::int64_t>(1, gpus / tp);  // too few GPUs: cost() says so
  share.all = share.lanes * plan.replicas;
  share.samples = ceil_of(round_samples(plan, turns), share.lanes);
  return share;
}

EncoderPricing::EncoderPricing(const model::Model& model, const cost::ProfileSet* profiles) : profiles_(profiles) {
  const auto count = static_cast<int>(model::encoder_ranges(model).size());
  for (int i = 0; i < count; ++i) {
    encoders_.push_back(model::encoder_of(model, i));
    outputs_.push_back(model::encoder_output_bytes(model, i));
    const model::EncoderSpread spread = model::encoder_spread(model, i);
    spreads_.push_back({spread.variation, spread.none});
  }
}

std::optional<cost::EncoderCost> EncoderPricing::cost(std::size_t number, const cluster::DeviceShape& stage,
                                                      const cost::EncoderLayout& layout, EncoderTurns turns,
                                                      const LaneShare& share) const {
  auto priced =
      cost::encoder_cost(encoders_[number], outputs_[number], stage, layout, share.samples, share.all, profiles_);
  if (!priced) return std::nullopt;
  const std::int64_t together = turns == EncoderTurns::kPerMicrobatch ? share.lanes : share.all;
  return cost::slowed(*priced, multimodal::slowest_lane(spreads_[number], together, share.samples));
}

bool EncoderPricing::is_trained() const {
  return std::ranges::any_of(encoders_, [](const model::Model& encoder) {
    return std::ranges::any_of(encoder.types, [](const model::BlockType& type) {
      return type.gradients.any() || (type.connector && type.connector->gradients.any());
    });
  });
}

bool EncoderPricing::set_costs(Composition& plan, const cluster::IslandLevel& level) const {
  ColocatedEncoders& own = *plan.colocated;
  for (const StageChoice& stage : plan.stages) {
    const PartChoice& part = only_part(stage);
    const cluster::DeviceShape shape = cluster::make_shape(at(level.classes, part.island_class), part.gpus);
    cost::EncoderCost sum;
    for (std::size_t e = 0; e < encoders_.size(); ++e) {
      const LaneShare share = lane_share(plan, own.turns, own.layouts[e].tp);
      auto each = cost(e, shape, own.layouts[e], own.turns, share);
      if (!each) return false;
      each->gradient_sync = cost::encoder_sync(encoders_[e], own.layouts[e], own.sync_link, share.all);
      sum += *each;
    }
    own.costs.push_back(sum);
  }
  return true;
}

void EncoderPricing::set_handover(Composition& plan, const cluster::IslandLevel& level) const {
  ColocatedEncoders& own = *plan.colocated;
  const StageChoice& first = plan.stages.front();
  const std::int64_t samples = round_samples(plan, own.turns);
  for (std::size_t e = 0; e < encoders_.size(); ++e) {
    const cost::Degrees& degrees = only_part(first).plan.strategy.degrees;
    cost::EncoderHandover handover;
    handover.bytes = Bytes(outputs_[e] * samples);
    handover.link = own.handover_link;
    handover.members = members_of(level, placement_of(first));
    handover.stages = static_cast<int>(plan.stages.size());
    handover.lanes = static_cast<int>(lane_share(plan, own.turns, own.layouts[e].tp).lanes);
    handover.replicas = degrees.dp;
    own.gather += cost::handover_time(handover);
    own.embeddings += Bytes(degrees.most_samples(samples) * outputs_[e] * (is_trained() ? 2 : 1));
  }
  if (is_trained()) own.broadcast = own.gather;
}

EncoderPricing::Placed EncoderPricing::place(const Composition& language, const cluster::IslandLevel& level,
                                             EncoderTurns turns, const EncoderLayouts& layouts) const {
  Placed placed;
  Composition plan = language;
  plan.colocated = ColocatedEncoders{};
  plan.colocated->turns = turns;
  plan.colocated->layouts = layouts;
  plan.colocated->handover_link = pipeline_link(level, plan);
  plan.colocated->sync_link = lanes_link(level, plan);
  if (!set_costs(plan, level)) return placed;
  set_handover(plan, level);
  placed.shortage = memory_shortage(plan, level);
  if (placed.shortage > Bytes(0)) return placed;
  if (turns == EncoderTurns::kThreePhases) expose_all(plan);
  plan.closed_form = colocated_closed_form(plan);
  placed.plan = std::move(plan);
  return placed;
}

Nanoseconds colocated_closed_form(const Composition& plan) {
  const ColocatedEncoders& own = *plan.colocated;
  const bool each = own.each_microbatch();
  Nanoseconds forward;
  Nanoseconds backward;
  Nanoseconds latency;
  Nanoseconds sync;
  Nanoseconds step;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StageChoice& stage = plan.stages[s];
    const cost::EncoderCost& encoders = own.costs[s];
    forward = std::max(forward, encoders.forward);
    backward = std::max(backward, encoders.backward);
    latency += stage.T + stage.to_next.latency * 2;
    const Nanoseconds exposed =
        each ? cost::exposed_sync(encoders.gradient_sync, encoders.backward) : encoders.gradient_sync;
    sync = std::max(sync, stage.A - stage.T + exposed);
    step = std::max(step, stage.o + encoders.optimizer_step);
  }
  const std::int64_t rounds = each ? plan.microbatches : 1;
  const std::int64_t microbatches = each ? 1 : plan.microbatches;
  const Nanoseconds round =
      forward + own.gather + latency + plan.period * (microbatches - 1) + own.broadcast + backward;
  return round * rounds + sync + step;
}

}  // namespace tangram::compose
