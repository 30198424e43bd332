#include "tangram/compose/given.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "colocated_pricing.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/model/split.hpp"

namespace tangram::compose {

namespace {

std::vector<Placement> placements_of(const GivenStage& stage) {
  std::vector<Placement> placements;
  placements.reserve(stage.parts.size());
  for (const GivenPart& part : stage.parts) {
    placements.push_back({.island_class = part.island_class, .gpus = part.strategy.degrees.gpus()});
  }
  return placements;
}

// With the members that they are in, as far as they are parts of one.
std::vector<Placement> places_of(const GivenStage& stage) {
  std::vector<Placement> placements = placements_of(stage);
  for (std::size_t p = 0; p < placements.size(); ++p) placements[p].member = stage.parts[p].member;
  return placements;
}

bool is_in_one_member(const GivenPipeline& pipeline) {
  const GivenPart& first = pipeline.stages.front().parts.front();
  const int member = first.member;
  const auto is_there = [&](const GivenPart& part) {
    return part.island_class == first.island_class && part.member == member;
  };
  return member != Placement::kAnyMember && std::ranges::all_of(pipeline.stages, [&](const GivenStage& stage) {
           return std::ranges::all_of(stage.parts, is_there);
         });
}

Reach reach_of_given(const GivenPipeline& pipeline, const cluster::IslandLevel& level) {
  std::vector<Placement> all;
  for (const GivenStage& stage : pipeline.stages) std::ranges::copy(placements_of(stage), std::back_inserter(all));
  return narrowest_reach(level, all, is_in_one_member(pipeline));
}

// Classes of which one member holds all that the pipelines, which may be replicas, have of them.
std::vector<int> classes_in_one_member(std::span<const GivenPipeline* const> pipelines) {
  std::map<int, std::set<int>> members;
  for (const GivenPipeline* pipeline : pipelines) {
    for (const GivenStage& stage : pipeline->stages) {
      for (const GivenPart& part : stage.parts) members[part.island_class].insert(part.member);
    }
  }
  std::vector<int> classes;
  for (const auto& [island_class, its] : members) {
    if (its.size() == 1 && *its.begin() != Placement::kAnyMember) classes.push_back(island_class);
  }
  return classes;
}

/// Whether they may be replicas of one pipeline.
bool are_alike(const GivenPipeline& a, const GivenPipeline& b) {
  const auto same_part = [](const GivenPart& x, const GivenPart& y) {
    return x.island_class == y.island_class && x.samples == y.samples && x.strategy == y.strategy;
  };
  const auto same_stage = [&](const GivenStage& x, const GivenStage& y) {
    return x.first == y.first && x.last == y.last && x.chunks == y.chunks &&
           std::ranges::equal(x.parts, y.parts, same_part);
  };
  return a.microbatch == b.microbatch && a.microbatches == b.microbatches &&
         std::ranges::equal(a.stages, b.stages, same_stage);
}

std::vector<model::BlockRange> chunks_of(const GivenStage& stage) {
  return stage.chunks.empty() ? std::vector<model::BlockRange>{{stage.first, stage.last}} : stage.chunks;
}

bool share_blocks(const GivenStage& a, const GivenStage& b) {
  const std::vector<model::BlockRange> of_a = chunks_of(a);
  const std::vector<model::BlockRange> of_b = chunks_of(b);
  return std::ranges::any_of(of_a, [&](const model::BlockRange& x) {
    return std::ranges::any_of(of_b, [&](const model::BlockRange& y) { return x.first < y.last && y.first < x.last; });
  });
}

/// What the chunks of a stage hold of the model's ends.
model::SliceSignature ends_of(std::span<const model::SliceSignature> chunks) {
  model::SliceSignature ends = chunks.front();
  for (const model::SliceSignature& chunk : chunks.subspan(1)) {
    ends.embedding = ends.embedding || chunk.embedding;
    ends.head = ends.head || chunk.head;
    ends.tied_elsewhere = ends.tied_elsewhere || chunk.tied_elsewhere;
  }
  return ends;
}

/// `others`: pipelines of the plan that are not alike, with their replicas.
class Pricer {
 public:
  Pricer(const GivenPipeline& given, std::vector<const GivenPipeline*> others, const model::Model& model,
         const cluster::IslandLevel& level, const cost::ProfileSet* profiles)
      : given_(given),
        others_(std::move(others)),
        model_(model),
        level_(level),
        profiles_(profiles),
        reach_(reach_of_given(given, level)) {}

  tl::expected<Composition, Unpriced> run() const {
    Composition composition;
    composition.replicas = given_.replicas;
    composition.microbatch = given_.microbatch;
    composition.microbatches = given_.microbatches;
    composition.group = given_.group;
    composition.chunks = static_cast<int>(chunks_of(given_.stages.front()).size());
    for (std::size_t s = 0; s < given_.stages.size(); ++s) {
      auto stage = price_stage(given_.stages[s]);
      if (!stage) return tl::unexpected(Unpriced{s, std::move(stage.error())});
      composition.stages.push_back(std::move(*stage));
    }
    for (std::size_t s = 0; s + 1 < given_.stages.size(); ++s) hand_over(s, s + 1, composition.stages[s]);
    if (composition.chunks > 1) hand_over(given_.stages.size() - 1, 0, composition.stages.back());
    return composition;
  }

 private:
  using Costed = tl::expected<cost::StageCost, std::string>;

  [[nodiscard]] Costed cost_of(const GivenPart& part, const std::vector<model::SliceSignature>& chunks) const {
    const auto samples = static_cast<int>(part.samples);
    std::string why = cost::unsupported(model_, part.strategy.degrees, samples, part.shape.device.name).of(chunks);
    if (!why.empty()) return tl::unexpected(std::move(why));
    const auto units = cost::unit_costs(model_, part.shape, part.strategy.degrees, samples, profiles_);
    if (!units) return tl::unexpected(units.error().front().message);
    if (chunks.size() > 1) return cost::chunked_cost(*units, chunks, part.strategy.policy).all;
    return cost::stage_cost(*units, chunks.front(), part.strategy.policy);
  }

  /// Where the stage's gradients are reduced: with its replicas, and with all that hold some of its blocks.
  [[nodiscard]] SyncGroup sync_group_at(const GivenStage& stage, std::span<const Placement> placements) const {
    SyncGroup sync_group = sync_group_of(level_, given_.replicas, placements, given_.with_replicas);
    for (const GivenPipeline* other : others_) {
      std::vector<std::vector<Placement>> stages;
      for (const GivenStage& its : other->stages) {
        if (share_blocks(its, stage)) stages.push_back(placements_of(its));
      }
      join(level_, placements, other->replicas, stages, sync_group);
    }
    return sync_group;
  }

  [[nodiscard]] tl::expected<StageChoice, std::string> price_stage(const GivenStage& from) const {
    StageChoice stage;
    stage.first = from.first;
    stage.last = from.last;
    stage.in_flight = from.in_flight;
    stage.chunks = from.chunks;
    std::vector<model::SliceSignature> chunks;
    for (const model::BlockRange& chunk : chunks_of(from)) chunks.push_back(model::signature(model_, chunk));
    const std::vector<Placement> placements = placements_of(from);
    const SyncGroup sync_group = sync_group_at(from, placements);
    const model::SliceSignature ends = ends_of(chunks);
    for (const GivenPart& part : from.parts) {
      const Costed cost = cost_of(part, chunks);
      if (!cost) return tl::unexpected(cost.error());
      const Nanoseconds crossing =
          crossing_sync(model_, level_, sync_group, reach_, placements, ends, cost->gradient_volume);
      stage.crossing = crossing;  // volumes do not depend on the strategy: it is the same for all parts
      const Nanoseconds time = cost->forward + cost->backward;
      stage.T = std::max(stage.T, time);
      stage.F = std::max(stage.F, cost->forward);
      stage.A = std::max(stage.A, time + cost::exposed_sync(cost->gradient_sync + crossing, cost->backward));
      stage.o = std::max(stage.o, cost->optimizer_step);
      stage.parts.push_back(chosen(part, *cost));
    }
    return stage;
  }

  static PartChoice chosen(const GivenPart& part, const cost::StageCost& cost) {
    PartChoice choice;
    choice.island_class = part.island_class;
    choice.gpus = part.strategy.degrees.gpus();
    choice.samples = static_cast<int>(part.samples);
    choice.plan.strategy = part.strategy;
    choice.plan.cost = cost;
    choice.plan.parallelizer = part.parallelizer;
    choice.plan.opaque = part.opaque;
    return choice;
  }

  void hand_over(std::size_t s, std::size_t next, StageChoice& stage) const {
    const auto from = places_of(given_.stages[s]);
    const auto to = places_of(given_.stages[next]);
    const Handover pair = dearest_handover(level_, from, to, Bytes(cut_bytes(stage) * given_.microbatch));
    stage.to_next = pair.cost;
    stage.link_source = pair.source;
    stage.link_target = pair.target;
    stage.link_to_next = pair.link;
  }

  /// Of a sample, behind the first chunk as behind the others. Behind the last block nothing is handed over; that
  /// stages follow it all the same is for a judge to say.
  [[nodiscard]] std::int64_t cut_bytes(const StageChoice& stage) const {
    const int cut = stage.chunks.empty() ? stage.last : stage.chunks.front().last;
    return cut < model_.block_count() ? model::cut_bytes(model_, cut) : 0;
  }

  const GivenPipeline& given_;
  std::vector<const GivenPipeline*> others_;
  const model::Model& model_;
  const cluster::IslandLevel& level_;
  const cost::ProfileSet* profiles_;
  Reach reach_;
};

}  // namespace

tl::expected<Composition, Unpriced> price(const GivenPipeline& given, const model::Model& model,
                                          const cluster::IslandLevel& level, const cost::ProfileSet* profiles) {
  return Pricer(given, {}, model, level, profiles).run();
}

tl::expected<std::vector<Composition>, Unpriced> price_together(std::span<const GivenPipeline> pipelines,
                                                                const model::Model& model,
                                                                const cluster::IslandLevel& level,
                                                                const cost::ProfileSet* profiles) {
  std::vector<GivenPipeline> kinds;
  std::vector<std::size_t> kind_of;
  for (const GivenPipeline& pipeline : pipelines) {
    const auto known = std::ranges::find_if(kinds, [&](const auto& kind) { return are_alike(kind, pipeline); });
    kind_of.push_back(static_cast<std::size_t>(known - kinds.begin()));
    if (known == kinds.end()) {
      kinds.push_back(pipeline);
      kinds.back().replicas = 0;  // counted here, for those of other kinds
    }
    ++kinds[kind_of.back()].replicas;
  }
  std::vector<Composition> compositions;
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    GivenPipeline own = pipelines[p];
    std::vector<const GivenPipeline*> alike;
    for (std::size_t other = 0; other < pipelines.size(); ++other) {
      if (kind_of[other] == kind_of[p]) alike.push_back(&pipelines[other]);
    }
    own.replicas = static_cast<int>(alike.size());
    if (kinds.size() == 1) own.with_replicas = classes_in_one_member(alike);
    std::vector<const GivenPipeline*> others;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (k != kind_of[p]) others.push_back(&kinds[k]);
    }
    auto composition = Pricer(own, std::move(others), model, level, profiles).run();
    if (!composition) {
      composition.error().pipeline = p;
      return tl::unexpected(std::move(composition.error()));
    }
    compositions.push_back(std::move(*composition));
  }
  return compositions;
}

tl::expected<std::vector<Composition>, Unpriced> price_colocated(std::span<const GivenPipeline> pipelines,
                                                                 const GivenEncoders& encoders, std::int64_t samples,
                                                                 const model::Model& model,
                                                                 const cluster::IslandLevel& level,
                                                                 const cost::ProfileSet* profiles) {
  auto compositions = price_together(pipelines, model::language_of(model), level, profiles);
  if (!compositions) return compositions;
  const EncoderPricing pricing(model, profiles);
  for (std::size_t p = 0; p < compositions->size(); ++p) {
    Composition& language = (*compositions)[p];
    language.samples = samples;
    for (std::size_t s = 0; s < language.stages.size(); ++s) {
      language.stages[s].parts.front().member = pipelines[p].stages[s].parts.front().member;
    }
    auto placed = pricing.place(language, level, encoders.turns, encoders.layouts);
    if (!placed.plan) {
      return tl::unexpected(Unpriced{0,
                                     placed.shortage > Bytes(0)
                                         ? std::to_string(placed.shortage.value()) + " bytes lack beside the encoders"
                                         : "its GPUs do not run the encoders",
                                     p});
    }
    language = *std::move(placed.plan);
  }
  return compositions;
}

}  // namespace tangram::compose
