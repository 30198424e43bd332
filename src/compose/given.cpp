#include "tangram/compose/given.hpp"

#include <algorithm>
#include <utility>

#include "tangram/compose/links.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::compose {

namespace {

std::vector<Placement> placements_of(const GivenStage& stage) {
  std::vector<Placement> placements;
  placements.reserve(stage.parts.size());
  for (const GivenPart& part : stage.parts) placements.push_back({part.island_class, part.strategy.degrees.gpus()});
  return placements;
}

class Pricer {
 public:
  Pricer(const GivenPipeline& given, const model::Model& model, const cluster::IslandLevel& level,
         const cost::ProfileSet* profiles)
      : given_(given), model_(model), level_(level), profiles_(profiles) {}

  tl::expected<Composition, Unpriced> run() const {
    Composition composition;
    composition.replicas = given_.replicas;
    composition.microbatch = given_.microbatch;
    composition.microbatches = given_.microbatches;
    for (std::size_t s = 0; s < given_.stages.size(); ++s) {
      auto stage = price_stage(given_.stages[s]);
      if (!stage) return tl::unexpected(Unpriced{s, std::move(stage.error())});
      composition.stages.push_back(std::move(*stage));
    }
    for (std::size_t s = 0; s + 1 < given_.stages.size(); ++s) hand_over(s, composition.stages[s]);
    return composition;
  }

 private:
  using Costed = tl::expected<cost::StageCost, std::string>;

  [[nodiscard]] Costed cost_of(const GivenPart& part, const model::SliceSignature& slice) const {
    const auto samples = static_cast<int>(part.samples);
    if (std::string why = cost::why_unsupported(model_, part.strategy.degrees, samples); !why.empty()) {
      return tl::unexpected(std::move(why));
    }
    const auto units = cost::unit_costs(model_, part.shape, part.strategy.degrees, samples, profiles_);
    if (!units) return tl::unexpected(units.error().front().message);
    return cost::stage_cost(*units, slice, part.strategy.policy);
  }

  [[nodiscard]] tl::expected<StageChoice, std::string> price_stage(const GivenStage& from) const {
    StageChoice stage;
    stage.first = from.first;
    stage.last = from.last;
    stage.in_flight = from.in_flight;
    const model::SliceSignature slice = model::signature(model_, stage.first, stage.last);
    for (const GivenPart& part : from.parts) {
      const Costed cost = cost_of(part, slice);
      if (!cost) return tl::unexpected(cost.error());
      const Nanoseconds crossing =
          crossing_sync(model_, level_, given_.replicas, placements_of(from), slice, cost->gradient_volume);
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

  void hand_over(std::size_t s, StageChoice& stage) const {
    const auto from = placements_of(given_.stages[s]);
    const auto to = placements_of(given_.stages[s + 1]);
    // Behind the last block nothing is handed over; that stages follow it all the same is for a judge to say.
    const std::int64_t cut = stage.last < model_.block_count() ? model::cut_bytes(model_, stage.last) : 0;
    const Handover pair = dearest_handover(level_, from, to, Bytes(cut * given_.microbatch));
    stage.to_next = pair.cost;
    stage.link_source = pair.source;
    stage.link_target = pair.target;
    stage.link_to_next =
        link_between(level_, from[static_cast<std::size_t>(pair.source)], to[static_cast<std::size_t>(pair.target)]);
  }

  const GivenPipeline& given_;
  const model::Model& model_;
  const cluster::IslandLevel& level_;
  const cost::ProfileSet* profiles_;
};

}  // namespace

tl::expected<Composition, Unpriced> price(const GivenPipeline& given, const model::Model& model,
                                          const cluster::IslandLevel& level, const cost::ProfileSet* profiles) {
  return Pricer(given, model, level, profiles).run();
}

}  // namespace tangram::compose
