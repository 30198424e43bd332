#include "tangram/plan/assemble.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "minimize_migration.hpp"
#include "placement.hpp"
#include "price_chunks.hpp"
#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/model/split.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::plan {

namespace {

/// Islands of the level that the plan uses, with the GPUs it uses, in the level's order. Fills `number`: level id to
/// plan id.
std::vector<PlanIsland> used_islands(const std::vector<PlacedPipeline>& pipelines, const cluster::Fleet& fleet,
                                     const cluster::IslandLevel& level, std::map<int, int>& number) {
  std::map<int, std::set<GpuSlot>> used;
  for (const auto& pipeline : pipelines) {
    for (const auto& stage : pipeline.parts) {
      for (const auto& part : stage) {
        for (const auto& slot : part.gpus) used[slot.island].insert(slot);
      }
    }
  }
  std::vector<PlanIsland> islands;
  for (const auto& [id, slots] : used) {
    number[id] = static_cast<int>(islands.size());
    const auto& from = at(level.classes, at(level.islands, id).island_class);
    PlanIsland island;
    island.id = static_cast<int>(islands.size());
    island.island_class = from.alias;
    island.device = from.device;
    island.inside_member = from.inside_member;
    island.between_members = from.between_members;
    island.between_islands = from.between_islands;
    island.gpus_per_member = from.gpus_per_member;
    island.members_per_island = from.members_per_island;
    island.price_per_gpu_hour = from.price_per_gpu_hour;
    for (const auto& slot : slots) {
      const std::string& host = fleet.nodes[slot.node].name;
      if (island.nodes.empty() || island.nodes.back().host != host) island.nodes.push_back({host, {}});
      island.nodes.back().gpus.push_back(slot.gpu);
    }
    islands.push_back(std::move(island));
  }
  return islands;
}

PartPrediction predict_part(const compose::StageChoice& stage, const compose::PartChoice& choice, Bytes usable) {
  const auto& cost = choice.plan.cost;
  PartPrediction predicted;
  predicted.forward = cost.forward;
  predicted.backward = cost.backward;
  predicted.gradient_sync_exposed = stage.A - stage.T;
  // The parts of a stage end together, so that each has at least what is exposed of the longest.
  predicted.gradient_sync = std::max(cost.gradient_sync + stage.crossing, predicted.gradient_sync_exposed);
  predicted.optimizer_step = cost.optimizer_step;
  predicted.static_memory = cost.static_memory();
  predicted.transient = cost.transient;
  predicted.activation = cost.activation;
  predicted.in_flight = stage.in_flight;
  predicted.peak_memory = cost.peak(stage.in_flight);
  predicted.usable_memory = usable;
  predicted.provenance = cost.provenance;
  return predicted;
}

/// On a stage's GPUs; the stage is the pipeline's `index`-th.
void add_encoders(const compose::ColocatedEncoders& colocated, std::size_t index, Part& part) {
  const cost::EncoderCost& cost = colocated.costs[index];
  EncoderPrediction predicted;
  predicted.forward = cost.forward;
  predicted.backward = cost.backward;
  predicted.gradient_sync = cost.gradient_sync;
  predicted.gradient_sync_exposed =
      colocated.each_microbatch() ? cost::exposed_sync(cost.gradient_sync, cost.backward) : cost.gradient_sync;
  predicted.optimizer_step = cost.optimizer_step;
  predicted.static_memory = cost.static_memory;
  predicted.transient = cost.transient;
  predicted.held = cost.held;
  if (index == 0) predicted.embeddings = colocated.embeddings;
  part.predicted.peak_memory += predicted.memory();
  part.encoders = predicted;
}

ColocatedEncoders colocated_of(const compose::ColocatedEncoders& from, const model::Model& model) {
  ColocatedEncoders colocated;
  colocated.turns = from.turns;
  for (std::size_t e = 0; e < from.layouts.size(); ++e) {
    colocated.encoders.push_back({model::encoder_name(model, static_cast<int>(e)), from.layouts[e]});
  }
  colocated.handover_link = from.handover_link;
  colocated.sync_link = from.sync_link;
  colocated.gather = from.gather;
  colocated.broadcast = from.broadcast;
  colocated.language = model::language_of(model);
  return colocated;
}

Rank make_rank(int number, int index, const GpuSlot& slot, const cost::Degrees& degrees) {
  Rank rank;
  rank.rank = number;
  rank.gpu = slot.gpu;
  rank.tp = index % degrees.tp;
  rank.cp = index / degrees.tp % degrees.cp;
  rank.dp = index / (degrees.tp * degrees.cp);
  rank.etp = index % degrees.etp;
  rank.ep = index / degrees.etp % degrees.ep;
  rank.edp = index / (degrees.etp * degrees.ep);
  return rank;
}

void number_local_ranks(std::vector<Rank>& ranks) {
  std::map<std::string, std::vector<Rank*>> by_host;
  for (auto& rank : ranks) by_host[rank.host].push_back(&rank);
  for (auto& [host, list] : by_host) {
    std::ranges::sort(list, {}, [](const Rank* rank) { return rank->gpu; });
    for (std::size_t i = 0; i < list.size(); ++i) list[i]->local_rank = static_cast<int>(i);
  }
}

/// Of a stage as it is placed: parts in one member with the member.
std::vector<compose::Placement> placements_of(const compose::StageChoice& stage, const std::vector<PlacedPart>& parts,
                                              const GpuPlaces& places) {
  std::vector<compose::Placement> placements;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    PlacedPart part = parts[p];
    std::ignore = locate(part, places);
    placements.push_back({stage.parts[p].island_class, stage.parts[p].gpus, part.member});
  }
  return placements;
}

/// One pipeline, appended to the plan stage by stage.
class PipelineBuilder {
 public:
  PipelineBuilder(LaunchPlan& plan, const compose::Composition& composition, const cluster::Fleet& fleet,
                  const cluster::IslandLevel& level, const GpuPlaces& places, const std::map<int, int>& island_number,
                  const cost::ProfileSet* profiles)
      : plan_(plan),
        composition_(composition),
        fleet_(fleet),
        level_(level),
        places_(places),
        island_number_(island_number),
        profiles_(profiles) {}

  void add(const std::vector<std::vector<PlacedPart>>& placed, std::int64_t samples) {
    const int replica = static_cast<int>(plan_.pipelines.size());
    Pipeline pipeline;
    pipeline.id = replica;
    pipeline.microbatch = composition_.microbatch;
    pipeline.samples = samples > 0 ? samples : composition_.microbatch * composition_.microbatches;
    pipeline.microbatches = (pipeline.samples + pipeline.microbatch - 1) / pipeline.microbatch;
    for (std::size_t s = 0; s < composition_.stages.size(); ++s) {
      pipeline.stages.push_back(static_cast<int>(plan_.stages.size()));
      plan_.stages.push_back(make_stage(pipeline, s, placed[s]));
      placements_.push_back(placements_of(composition_.stages[s], placed[s], places_));
      if (s > 0) plan_.boundaries.push_back(make_boundary(pipeline, s - 1, s));
    }
    if (composition_.chunks > 1) plan_.boundaries.push_back(make_boundary(pipeline, pipeline.stages.size() - 1, 0));
    plan_.pipelines.push_back(std::move(pipeline));
  }

 private:
  Stage make_stage(const Pipeline& pipeline, std::size_t index, const std::vector<PlacedPart>& placed) {
    compose::StageChoice choice = composition_.stages[index];
    choice.in_flight = std::min(choice.in_flight, pipeline.microbatches * composition_.chunks);
    Stage stage;
    stage.id = static_cast<int>(plan_.stages.size());
    stage.pipeline = pipeline.id;
    stage.chunks = choice.chunks;
    if (stage.chunks.empty()) stage.chunks = {{choice.first, choice.last}};
    stage.embedding = stage.first() == 0;
    stage.head = stage.last() == plan_.pipelined().block_count();
    stage.warmup = choice.in_flight - 1;
    for (std::size_t p = 0; p < choice.parts.size(); ++p) {
      const auto& from = choice.parts[p];
      TANGRAM_ASSERT(from.plan.strategy.degrees.gpus() == from.gpus);
      Part part;
      part.island = island_number_.at(placed[p].gpus.front().island);
      part.samples = from.samples;
      part.strategy = from.plan.strategy;
      // As blocks in a row the part recomputes its first ones; interleaved, the first of each chunk.
      if (stage.chunks.size() > 1) {
        part.strategy.policy = cost::fitted(part.strategy.policy, stage.most_chunk_blocks());
      }
      part.first_rank = static_cast<int>(plan_.ranks.size());
      part.members = placed[p].members;
      part.parallelizer = from.plan.parallelizer;
      part.opaque = from.plan.opaque;
      part.predicted = predict_part(choice, from, at(level_.classes, from.island_class).device.usable());
      if (composition_.colocated) add_encoders(*composition_.colocated, index, part);
      for (std::size_t i = 0; i < placed[p].gpus.size(); ++i) {
        const auto& slot = placed[p].gpus[i];
        Rank rank = make_rank(static_cast<int>(plan_.ranks.size()), static_cast<int>(i), slot, part.strategy.degrees);
        rank.host = fleet_.nodes[slot.node].name;
        rank.island = island_number_.at(slot.island);
        rank.stage = stage.id;
        rank.part = static_cast<int>(p);
        rank.replica = pipeline.id;
        plan_.ranks.push_back(std::move(rank));
      }
      stage.parts.push_back(std::move(part));
    }
    if (composition_.chunks > 1) {
      price_chunks(plan_, profiles_, {pipeline.microbatches, composition_.group}, choice.crossing, stage);
    }
    return stage;
  }

  Boundary make_boundary(const Pipeline& pipeline, std::size_t before, std::size_t behind) {
    const Stage& from = plan_.stage(pipeline.stages[before]);
    const Stage& to = plan_.stage(pipeline.stages[behind]);
    const Bytes sample(model::cut_bytes(plan_.pipelined(), from.first_cut()));
    const compose::Handover handover = handover_of(before, behind, sample);
    Boundary boundary;
    boundary.from = from.id;
    boundary.to = to.id;
    boundary.link = handover.link;
    boundary.source_part = handover.source;
    boundary.target_part = handover.target;
    boundary.latency = handover.cost.latency;
    boundary.occupancy = handover.cost.occupancy;
    boundary.transfers = boundary_transfers(from, to, plan_.pipelined().block(from.first_cut() - 1).tokens, sample);
    boundary.mode = boundary_mode(boundary.transfers);
    return boundary;
  }

  /// As the composition has it, or inside a member where the stages turn out to lie in one.
  [[nodiscard]] compose::Handover handover_of(std::size_t before, std::size_t behind, Bytes sample) const {
    const compose::StageChoice& choice = composition_.stages[before];
    const compose::Handover counted_on{choice.to_next, choice.link_source, choice.link_target, choice.link_to_next};
    const compose::Handover placed =
        compose::dearest_handover(level_, placements_[before], placements_[behind], sample * composition_.microbatch);
    return placed.cost < counted_on.cost ? placed : counted_on;
  }

  LaunchPlan& plan_;
  const compose::Composition& composition_;
  const cluster::Fleet& fleet_;
  const cluster::IslandLevel& level_;
  const GpuPlaces& places_;
  const std::map<int, int>& island_number_;
  const cost::ProfileSet* profiles_;
  std::vector<std::vector<compose::Placement>> placements_;  ///< [stage][part] of those added
};

std::vector<IdleGpus> idle_gpus(const std::vector<PlacedPipeline>& pipelines, const cluster::IslandLevel& level) {
  std::vector<int> used(level.classes.size(), 0);
  for (const auto& pipeline : pipelines) {
    for (const auto& stage : pipeline.parts) {
      for (const auto& part : stage) {
        for (const auto& slot : part.gpus) {
          ++at(used, at(level.islands, slot.island).island_class);
        }
      }
    }
  }
  std::vector<IdleGpus> idle;
  for (std::size_t c = 0; c < level.classes.size(); ++c) {
    const int left = level.classes[c].gpu_count() - used[c];
    if (left > 0) idle.push_back({level.classes[c].alias, left, {}});
  }
  return idle;
}

/// The first samples % replicas pipelines get one sample more than the others.
void add_replicas(const compose::Composition& composition, std::vector<std::vector<std::vector<PlacedPart>>> placed,
                  std::vector<PlacedPipeline>& pipelines) {
  const auto count = static_cast<std::int64_t>(placed.size());
  for (std::int64_t r = 0; r < count; ++r) {
    const std::int64_t samples = composition.samples / count + (r < composition.samples % count ? 1 : 0);
    pipelines.push_back({&composition, std::move(at(placed, r)), samples});
  }
}

void collect_encoders(const LaunchPlan& plan, const cost::ProfileSet& profiles, cost::Selection& used) {
  for (std::size_t e = 0; e < plan.colocated->encoders.size(); ++e) {
    const model::Model encoder = model::encoder_of(plan.model, static_cast<int>(e));
    const cost::EncoderLayout& layout = plan.colocated->encoders[e].layout;
    for (const Stage& stage : plan.stages) {
      for (const Part& part : stage.parts) {
        cost::collect_encoder(profiles, encoder, shape_of(plan, part), layout, plan.lanes_of(layout).samples, used);
      }
    }
  }
}

cost::ProfileSet used_measurements(const LaunchPlan& plan, const cost::ProfileSet& profiles) {
  cost::Selection used;
  for (const Stage& stage : plan.stages) {
    const model::SliceSignature slice = model::signature(plan.pipelined(), stage.first(), stage.last());
    for (const Part& part : stage.parts) {
      cost::collect_used(profiles, plan.pipelined(), slice, shape_of(plan, part), part.strategy.degrees,
                         static_cast<int>(part.samples), used);
    }
  }
  if (plan.colocated) collect_encoders(plan, profiles, used);
  return profiles.select(used);
}

/// Whether no stages turn out to lie closer to each other than their compositions count on.
bool hands_over_as_priced(const LaunchPlan& plan, const std::vector<PlacedPipeline>& pipelines) {
  auto boundary = plan.boundaries.begin();
  for (const PlacedPipeline& pipeline : pipelines) {
    const compose::Composition& composition = *pipeline.composition;
    const std::size_t handovers = composition.stages.size() - (composition.chunks > 1 ? 0 : 1);
    for (std::size_t s = 0; s < handovers; ++s, ++boundary) {
      if (cost::BoundaryCost{boundary->latency, boundary->occupancy} != composition.stages[s].to_next) return false;
    }
  }
  return true;
}

/// What was worked out of the compositions, or of the plan where that is faster.
void set_closed_form(Nanoseconds of_compositions, const std::vector<PlacedPipeline>& pipelines, LaunchPlan& plan) {
  plan.predicted.closed_form = hands_over_as_priced(plan, pipelines) ? of_compositions : check(plan).closed_form;
}

}  // namespace

LaunchPlan assemble(const std::vector<PlacedPipeline>& pipelines, const cluster::Fleet& fleet,
                    const cluster::IslandLevel& level, const model::Model& model, const cost::ProfileSet* profiles) {
  LaunchPlan plan;
  plan.fleet_name = fleet.name;
  plan.fleet_gpus = fleet.gpu_count();
  plan.model = model;
  plan.provenance.level = level.name;
  std::map<int, int> island_number;
  plan.islands = used_islands(pipelines, fleet, level, island_number);
  const compose::Composition& first = *pipelines.front().composition;
  plan.group = first.group;
  if (first.colocated) plan.colocated = colocated_of(*first.colocated, model);
  const GpuPlaces places(level);
  for (const PlacedPipeline& pipeline : pipelines) {
    PipelineBuilder(plan, *pipeline.composition, fleet, level, places, island_number, profiles)
        .add(pipeline.parts, pipeline.samples);
  }
  number_local_ranks(plan.ranks);
  plan.idle = idle_gpus(pipelines, level);
  if (profiles != nullptr) plan.profiles = used_measurements(plan, *profiles);
  return plan;
}

LaunchPlan assemble(const compose::Composition& composition, const cluster::Fleet& fleet,
                    const cluster::IslandLevel& level, const model::Model& model, const cost::ProfileSet* profiles,
                    const LaunchPlan* near, runtime::Target runtime) {
  auto placed = place(composition, level);
  if (near != nullptr) minimize_migration(placed, composition, fleet, level, *near);
  std::vector<PlacedPipeline> pipelines;
  add_replicas(composition, std::move(placed), pipelines);
  LaunchPlan plan = assemble(pipelines, fleet, level, model, profiles);
  plan.runtime = runtime;
  set_closed_form(composition.closed_form, pipelines, plan);
  return plan;
}

LaunchPlan assemble(const compose::Ensemble& ensemble, const cluster::Fleet& fleet, const cluster::IslandLevel& level,
                    const model::Model& model, const cost::ProfileSet* profiles) {
  std::vector<PlacedPipeline> pipelines;
  for (const compose::PipelineGroup& group : ensemble.groups) {
    add_replicas(group.composition, place(group.composition, group.level), pipelines);
  }
  LaunchPlan plan = assemble(pipelines, fleet, level, model, profiles);
  set_closed_form(ensemble.closed_form, pipelines, plan);
  return plan;
}

}  // namespace tangram::plan
