#include "tangram/accuracy/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "encoder_price.hpp"
#include "reason.hpp"
#include "slice_price.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::accuracy {
namespace {

/// One part of a stage: each chunk, and all of them together.
struct PartPrice {
  std::vector<SlicePrice> chunks;
  SlicePrice all;
};

Expected<PartPrice> price_part(const Experiment& experiment, const Stage& stage, const Part& part,
                               const cost::ProfileSet& profiles, cost::Provenance& provenance) {
  const auto units = cost::unit_costs(experiment.model, part.shape, part.degrees, part.samples, &profiles);
  if (!units) return fail(reason(units.error().front().message));
  if (const std::string& why = units->unsupported.of_model(); !why.empty()) return fail(reason(why));
  for (const cost::Provenance each : units->block_provenance) provenance = std::max(provenance, each);
  PartPrice price;
  for (const Chunk& chunk : stage.chunks) {
    price.chunks.push_back(price_chunk(experiment, chunk, *units));
    price.all.add(price.chunks.back(), 1);
  }
  return price;
}

simulate::SimPart sim_part(const PartPrice& price, double sync, bool overlaps) {
  simulate::SimPart part;
  part.forward = ceil_to_nanoseconds(price.all.forward);
  part.backward = ceil_to_nanoseconds(price.all.backward);
  const auto whole = ceil_to_nanoseconds(sync);
  part.exposed_sync = overlaps ? cost::exposed_sync(whole, part.backward) : whole;
  part.optimizer_step = ceil_to_nanoseconds(price.all.step);
  if (price.chunks.size() > 1) {
    for (const SlicePrice& chunk : price.chunks) {
      part.chunks.push_back({ceil_to_nanoseconds(chunk.forward), ceil_to_nanoseconds(chunk.backward)});
    }
  }
  return part;
}

/// Parts whose ranks hold equal shards of the stage: each shard's replicas are one process group, whatever their types.
bool is_one_group(const Experiment& experiment, const Stage& stage) {
  const cost::Degrees& first = stage.parts.front().degrees;
  const auto alike = [&](const Part& part) {
    return part.degrees.tp == first.tp && part.degrees.cp == first.cp && part.degrees.ep == 1;
  };
  return stage.parts.size() > 1 && experiment.zero < 2 && std::ranges::all_of(stage.parts, alike);
}

/// The GPUs of all parts as if they were of one type, with the slowest links among them.
cluster::DeviceShape joint_shape(const Stage& stage) {
  cluster::DeviceShape joint = stage.parts.front().shape;
  int gpus = 0;
  for (const Part& part : stage.parts) {
    joint.per_node = std::gcd(joint.per_node, part.shape.per_node);
    gpus += part.shape.gpus();
    if (part.shape.intra.bandwidth < joint.intra.bandwidth) {
      joint.intra = part.shape.intra;
      joint.device = part.shape.device;
    }
  }
  joint.nodes = gpus / joint.per_node;
  const auto share = [&](const Part& part) {
    return part.shape.inter.bandwidth * (static_cast<double>(joint.per_node) / part.shape.per_node);
  };
  joint.inter.bandwidth = share(stage.parts.front());
  for (const Part& part : stage.parts) {
    joint.inter.bandwidth = std::min(joint.inter.bandwidth, share(part));
    joint.inter.latency = std::max(joint.inter.latency, part.shape.inter.latency);
  }
  return joint;
}

/// Gradients of a stage whose parts are one group, beyond those of the embedding that the step of each has.
double joint_sync(const Experiment& experiment, const Stage& stage, const std::vector<PartPrice>& parts) {
  const cost::Degrees& degrees = stage.parts.front().degrees;
  int replicas = 0;
  for (const Part& part : stage.parts) replicas += part.degrees.dp;
  const cluster::DeviceShape shape = joint_shape(stage);
  const cost::Group group = cost::place_group(replicas * degrees.cp, degrees.tp, shape);
  const auto kind = experiment.zero == 0 ? cost::Collective::kAllReduce : cost::Collective::kReduceScatter;
  const SlicePrice& price = parts.front().all;
  return std::max(0.0,
                  cost::collective_seconds(kind, price.gradient_volume / degrees.tp, group, shape) - price.last_sync);
}

/// Gradients that the parts of a stage exchange, over the slowest of their networks.
double parts_sync(const Stage& stage, const std::vector<PartPrice>& parts) {
  if (parts.size() < 2) return 0;
  double volume = 0;
  for (const PartPrice& part : parts) volume = std::max(volume, part.all.gradient_volume);
  int members = stage.parts.front().shape.nodes;
  cluster::Link link = stage.parts.front().shape.inter;
  for (const Part& part : stage.parts) {
    members = std::min(members, part.shape.nodes);
    if (part.shape.inter.bandwidth < link.bandwidth) link = part.shape.inter;
  }
  return to_seconds(cost::replica_sync(ceil_to_bytes(volume), static_cast<int>(parts.size()), link, members));
}

/// Gradients that the two ends of a tied embedding exchange.
double tied_sync(const Experiment& experiment, const Stage& stage) {
  const bool end = stage.chunks.front().embedding || stage.chunks.back().head;
  if (!experiment.model.tied_embeddings || experiment.stages.size() < 2 || !end) return 0;
  const double bytes =
      static_cast<double>(experiment.model.vocabulary * experiment.model.hidden * experiment.model.job.gradient_bytes);
  const Stage& last = experiment.stages.back();
  return to_seconds(cost::replica_sync(ceil_to_bytes(bytes), 2, last.to_next, last.parts.front().shape.nodes));
}

/// Of each part: its own, that of all parts, and that of the tied embedding.
std::vector<double> gradient_syncs(const Experiment& experiment, std::size_t index,
                                   const std::vector<PartPrice>& parts) {
  const Stage& stage = experiment.stages[index];
  const double tied = tied_sync(experiment, stage);
  if (is_one_group(experiment, stage)) {
    return std::vector<double>(parts.size(), joint_sync(experiment, stage, parts) + tied);
  }
  const double crossing = parts_sync(stage, parts);
  std::vector<double> seconds;
  seconds.reserve(parts.size());
  for (const PartPrice& part : parts) seconds.push_back(part.all.sync + crossing + tied);
  return seconds;
}

int gpus_of(const Stage& stage) {
  int count = 0;
  for (const Part& part : stage.parts) count += part.shape.gpus();
  return count;
}

/// What reaches the link by itself: each GPU inside a node, each node outside.
int members_of(const Stage& stage, bool inside) {
  int count = 0;
  for (const Part& part : stage.parts) count += inside ? part.shape.gpus() : part.shape.nodes;
  return count;
}

cost::BoundaryCost boundary_after(const Experiment& experiment, const Stage& stage, const Stage& next) {
  const std::int64_t sample = passed_bytes(experiment, stage.chunks.back().last);
  const Bytes bytes = ceil_to_bytes(static_cast<double>(sample) * static_cast<double>(experiment.microbatch));
  const bool inside = stage.next_inside;
  return cost::boundary_cost(bytes, stage.to_next, members_of(stage, inside), gpus_of(stage), members_of(next, inside),
                             gpus_of(next));
}

/// Three phases reduce all gradients behind the last of them.
bool hides_sync(const Experiment& experiment) {
  const bool phases = experiment.encoder && experiment.encoder->turns == cost::EncoderTurns::kThreePhases;
  return experiment.overlaps_sync && !phases;
}

simulate::SimStage sim_stage(const Experiment& experiment, std::size_t index, const std::vector<PartPrice>& prices) {
  const Stage& stage = experiment.stages[index];
  simulate::SimStage sim;
  const std::vector<double> syncs = gradient_syncs(experiment, index, prices);
  for (std::size_t p = 0; p < prices.size(); ++p) {
    sim.parts.push_back(sim_part(prices[p], syncs[p], hides_sync(experiment)));
  }
  if (experiment.stages.size() == 1) return sim;
  const Stage& next = experiment.stages[(index + 1) % experiment.stages.size()];
  const cost::BoundaryCost boundary = boundary_after(experiment, stage, next);
  sim.latency = boundary.latency;
  sim.occupancy = boundary.occupancy;
  return sim;
}

void add_transfers(simulate::SimStage& stage, Nanoseconds forward, Nanoseconds backward) {
  for (simulate::SimPart& part : stage.parts) {
    part.forward += forward;
    part.backward += backward;
    for (simulate::SimChunk& chunk : part.chunks) {
      chunk.forward += forward;
      chunk.backward += backward;
    }
  }
}

/// A stage that waits for what it sends is busy meanwhile: with activations after each forward pass, with gradients
/// after each backward pass. The last stage's boundary is there only where chunks go round.
void block_transfers(simulate::SimPipeline& pipeline) {
  std::vector<simulate::SimStage>& stages = pipeline.stages;
  const bool round = simulate::chunks_of(pipeline) > 1;
  if (!round) stages.back().latency = Nanoseconds(0);
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const Nanoseconds before = stages[(s + stages.size() - 1) % stages.size()].latency;
    add_transfers(stages[s], stages[s].latency, before);
  }
  for (simulate::SimStage& stage : stages) stage.latency = stage.occupancy = Nanoseconds(0);
}

/// Microbatches that a stage holds under 1F1B, in units of all its chunks.
double held(const Experiment& experiment, std::size_t index) {
  const auto stages = static_cast<double>(experiment.stages.size());
  const auto chunks = static_cast<double>(experiment.stages[index].chunks.size());
  const double after = stages - 1 - static_cast<double>(index);
  const double all = static_cast<double>(experiment.microbatches);
  if (chunks == 1) return std::min(all, after + 1);
  const double group = experiment.microbatch_group > 0 ? experiment.microbatch_group : stages;
  return std::min(all, (2 * after + (chunks - 1) * group + 1) / chunks);
}

/// Bytes while the language model runs beside the encoder, or the encoder beside its states.
double peak_with(const EncoderPrice& encoder, const SlicePrice& language, double peak) {
  return std::max(peak + encoder.beside, language.static_memory + encoder.alone);
}

double embeddings_on(const Experiment& experiment, std::size_t stage) {
  return stage == 0 ? experiment.encoder->embeddings.as_double() : 0;
}

double encoder_step(const std::optional<EncoderPrice>& encoder) {
  return encoder ? to_seconds(encoder->passes.optimizer_step) : 0;
}

/// All parts of a stage, which may share their GPUs with an encoder; what they say of the whole prediction goes into
/// it.
Expected<std::vector<PartPrice>> price_stage(const Experiment& experiment, std::size_t index,
                                             const std::optional<EncoderPrice>& encoder,
                                             const cost::ProfileSet& profiles, Prediction& prediction) {
  const Stage& stage = experiment.stages[index];
  std::vector<PartPrice> prices;
  for (const Part& part : stage.parts) {
    auto price = price_part(experiment, stage, part, profiles, prediction.provenance);
    if (!price) return tl::unexpected(price.error());
    const SlicePrice& all = price->all;
    double peak = all.static_memory + all.transient + held(experiment, index) * experiment.kept_on_gpu * all.activation;
    if (encoder) peak = peak_with(*encoder, all, peak) + embeddings_on(experiment, index);
    prediction.peak_allocated = std::max(prediction.peak_allocated, peak);
    const double beside = kContextBytes + experiment.communicators * kCommunicatorBytes;
    const double at_any_time = experiment.communicators > 0 ? peak + all.update : peak;
    prediction.peak_memory = std::max(prediction.peak_memory, at_any_time * (1 + kFragmentation) + beside);
    prediction.usable_share = std::max(prediction.usable_share, peak / part.shape.device.usable().as_double());
    prediction.step_s = std::max(prediction.step_s, all.step + encoder_step(encoder));
    prices.push_back(std::move(*price));
  }
  return prices;
}

/// Passes of a microbatch through a chunk that are played at most: some seconds of work. Published ones have thousands.
constexpr std::int64_t kMostPasses = 4'000'000;

/// Iteration, bubble and exposed synchronisation; or why the schedule does not come to an end.
std::optional<Diagnostic> play(const simulate::SimPipeline& pipeline, Prediction& prediction) {
  const auto positions = static_cast<std::int64_t>(pipeline.stages.size()) * simulate::chunks_of(pipeline);
  if (pipeline.microbatches > kMostPasses / positions) {
    return reason(fmt::format("{} microbatches through {} pipeline positions are too many to simulate",
                              pipeline.microbatches, positions));
  }
  const auto result = simulate::simulate({{simulate::with_classic_warmups(pipeline)}});
  if (result.deadlock) return reason("the schedule cannot finish with this number of microbatches");
  prediction.iteration_s = to_seconds(result.iteration);
  double busy = 0;
  for (const auto& use : result.stages) busy = std::max(busy, to_seconds(use.busy));
  prediction.bubble = prediction.iteration_s > 0 ? 1 - busy / prediction.iteration_s : 0;
  for (const auto& stage : pipeline.stages) {
    for (const auto& part : stage.parts) prediction.sync_s = std::max(prediction.sync_s, to_seconds(part.exposed_sync));
  }
  return std::nullopt;
}

simulate::SimPipeline empty_pipeline(const Experiment& experiment) {
  simulate::SimPipeline pipeline;
  pipeline.microbatches = experiment.microbatches;
  pipeline.group = experiment.microbatch_group;
  const Stage& first = experiment.stages.front();
  pipeline.kind = first.chunks.size() > 1 ? simulate::ScheduleKind::kInterleaved : simulate::ScheduleKind::k1F1B;
  if (experiment.encoder) {
    pipeline.turns = turns_of(*experiment.encoder, first.parts.front().shape.device, experiment.microbatches);
  }
  return pipeline;
}

/// Nothing where none shares the GPUs of the stage.
Expected<std::optional<EncoderPrice>> encoder_on(const Experiment& experiment, const Stage& stage,
                                                 const cost::ProfileSet& profiles) {
  if (!experiment.encoder) return std::nullopt;
  const auto price = price_encoder(*experiment.encoder, stage, profiles);
  if (!price) return tl::unexpected(price.error());
  return *price;
}

}  // namespace

Expected<Prediction> predict(const Experiment& experiment, const cost::ProfileSet& profiles) {
  Prediction prediction;
  prediction.provenance = cost::Provenance::kMeasured;
  simulate::SimPipeline pipeline = empty_pipeline(experiment);
  for (std::size_t s = 0; s < experiment.stages.size(); ++s) {
    const auto encoder = encoder_on(experiment, experiment.stages[s], profiles);
    if (!encoder) return tl::unexpected(encoder.error());
    const auto prices = price_stage(experiment, s, *encoder, profiles, prediction);
    if (!prices) return tl::unexpected(prices.error());
    pipeline.stages.push_back(sim_stage(experiment, s, *prices));
    if (*encoder) pipeline.turns->encoders.push_back((*encoder)->passes);
  }
  if (experiment.blocking_transfers) block_transfers(pipeline);
  if (auto wrong = play(pipeline, prediction)) return fail(*wrong);
  return prediction;
}

}  // namespace tangram::accuracy
