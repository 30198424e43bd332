// From a job that was read to a launch plan: GPUs, the level of islands, parts, times.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "fill.hpp"
#include "model_arguments.hpp"
#include "parts.hpp"
#include "tangram/compose/links.hpp"
#include "tangram/cost/validity.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"

namespace tangram::importing {

namespace {

using Stages = std::vector<std::vector<JobPart>>;  // of one pipeline

/// What a launch plan has no words for: stages without layers, and layers that the model has not.
Diagnostics unsayable(const Job& job, const model::Model& model) {
  Diagnostics wrong;
  const int blocks = model.block_count();
  for (const JobPipeline& pipeline : job.pipelines) {
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const JobStage& stage = pipeline.stages[s];
      if (stage.last > blocks) {
        wrong.push_back(at(stage.place, "too-many-layers",
                           fmt::format("stage {} ends with layer {}, the model has {}", s, stage.last, blocks),
                           "give the --model that the job trains"));
      } else if (stage.last <= stage.first) {
        wrong.push_back(at(stage.place, "empty-stage", fmt::format("stage {} has no layers", s),
                           "embedding and head stay with layers in a launch plan"));
      }
    }
  }
  return wrong;
}

/// How well a level suits a job: islands as its rank map has them, then parts that stay on one island.
struct Suit {
  bool other_islands = false;
  int spilling = 0;
  auto operator<=>(const Suit&) const = default;
};

/// Ranks share an island of the level exactly where they share one of the rank map.
bool has_islands_of(const Job& job, const cluster::Fleet& fleet, const GpuPlaces& places) {
  std::map<std::string, std::size_t> nodes;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) nodes.emplace(fleet.nodes[n].name, n);
  std::map<int, int> to_level;
  std::map<int, int> to_file;
  for (const Seat& seat : job.seats) {
    const int island = places.of({nodes.at(seat.host), seat.gpu, 0}).island;
    if (to_level.try_emplace(seat.island, island).first->second != island) return false;
    if (to_file.try_emplace(island, seat.island).first->second != seat.island) return false;
  }
  return true;
}

Suit suit_of(const Job& job, const std::vector<Stages>& pipelines, const cluster::Fleet& fleet,
             const GpuPlaces& places) {
  Suit suit;
  const bool said = !job.seats.empty() && job.seats.front().island >= 0;
  suit.other_islands = said && !has_islands_of(job, fleet, places);
  for (const Stages& stages : pipelines) {
    for (const auto& parts : stages)
      suit.spilling += static_cast<int>(std::ranges::count(parts, true, &JobPart::spills));
  }
  return suit;
}

std::vector<Stages> stages_at(const Job& job, const Seating& seating, const GpuPlaces& places,
                              const model::Model& model) {
  std::vector<Stages> pipelines(job.pipelines.size());
  for (std::size_t p = 0; p < job.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < job.pipelines[p].stages.size(); ++s) {
      pipelines[p].push_back(parts_of(job.pipelines[p].stages[s], seating[p][s], places, model));
    }
  }
  return pipelines;
}

/// A job on the level that suits it best, the finest of those that suit alike.
struct Located {
  const cluster::IslandLevel* level = nullptr;
  std::vector<Stages> pipelines;
};

Located locate(const Job& job, const Seating& seating, const cluster::Fleet& fleet,
               const cluster::IslandHierarchy& hierarchy, const model::Model& model) {
  Located best;
  Suit best_suit;
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    const GpuPlaces places(level);
    auto pipelines = stages_at(job, seating, places, model);
    const Suit suit = suit_of(job, pipelines, fleet, places);
    if (best.level != nullptr && suit >= best_suit) continue;
    best = {&level, std::move(pipelines)};
    best_suit = suit;
  }
  return best;
}

std::vector<compose::Placement> placements_of(const std::vector<JobPart>& parts) {
  std::vector<compose::Placement> placements;
  for (const JobPart& part : parts) {
    placements.push_back({part.island_class, static_cast<int>(part.placed.gpus.size())});
  }
  return placements;
}

/// Prices the stages of a job as the planner prices its own.
class Pricer {
 public:
  Pricer(const Job& job, const Located& located, const model::Model& model, const cost::ProfileSet* profiles)
      : job_(job), located_(located), model_(model), profiles_(profiles) {}

  Expected<compose::Composition> price(std::size_t pipeline) const {
    const JobPipeline& from = job_.pipelines[pipeline];
    compose::Composition composition;
    composition.microbatch = from.microbatch;
    composition.microbatches = from.microbatches;
    for (std::size_t s = 0; s < from.stages.size(); ++s) {
      auto stage = price_stage(from.stages[s], located_.pipelines[pipeline][s]);
      if (!stage) return fail(std::move(stage.error()));
      // Classic 1F1B: a stage holds one microbatch more than the next.
      stage->in_flight = std::min(static_cast<std::int64_t>(from.stages.size() - s), from.microbatches);
      composition.stages.push_back(std::move(*stage));
    }
    for (std::size_t s = 0; s + 1 < from.stages.size(); ++s) hand_over(pipeline, s, composition);
    return composition;
  }

 private:
  Expected<cost::StageCost> cost_of(const JobStage& stage, const JobPart& part,
                                    const model::SliceSignature& slice) const {
    const auto samples = static_cast<int>(part.samples);
    const std::string why = cost::why_unsupported(model_, part.strategy.degrees, samples);
    if (!why.empty()) {
      return fail(at(stage.place, "unsupported-degrees",
                     fmt::format("layers {}-{} cannot run like this: {}", stage.first, stage.last - 1, why)));
    }
    const auto units =
        cost::unit_costs(model_, shape_of(part, *located_.level), part.strategy.degrees, samples, profiles_);
    if (!units) return fail(at(stage.place, "unsupported-degrees", units.error().front().message));
    return cost::stage_cost(*units, slice, part.strategy.policy);
  }

  Expected<compose::StageChoice> price_stage(const JobStage& from, const std::vector<JobPart>& parts) const {
    compose::StageChoice stage;
    stage.first = static_cast<int>(from.first);
    stage.last = static_cast<int>(from.last);
    const model::SliceSignature slice = model::signature(model_, stage.first, stage.last);
    for (const JobPart& part : parts) {
      auto cost = cost_of(from, part, slice);
      if (!cost) return fail(std::move(cost.error()));
      const Nanoseconds crossing =
          compose::crossing_sync(model_, *located_.level, static_cast<int>(job_.pipelines.size()), placements_of(parts),
                                 slice, cost->gradient_volume);
      const Nanoseconds time = cost->forward + cost->backward;
      stage.T = std::max(stage.T, time);
      stage.F = std::max(stage.F, cost->forward);
      stage.A = std::max(stage.A, time + cost::exposed_sync(cost->gradient_sync + crossing, cost->backward));
      stage.o = std::max(stage.o, cost->optimizer_step);
      compose::PartChoice choice;
      choice.island_class = part.island_class;
      choice.gpus = static_cast<int>(part.placed.gpus.size());
      choice.samples = static_cast<int>(part.samples);
      choice.plan.strategy = part.strategy;
      choice.plan.cost = *cost;
      choice.plan.parallelizer = "imported";
      stage.parts.push_back(std::move(choice));
    }
    return stage;
  }

  void hand_over(std::size_t pipeline, std::size_t s, compose::Composition& composition) const {
    const auto& stages = located_.pipelines[pipeline];
    const auto from = placements_of(stages[s]);
    const auto to = placements_of(stages[s + 1]);
    compose::StageChoice& stage = composition.stages[s];
    // Behind the last block nothing is handed over; that stages follow it all the same is for check() to say.
    const std::int64_t cut = stage.last < model_.block_count() ? model::cut_bytes(model_, stage.last) : 0;
    const auto pair = compose::dearest_handover(*located_.level, from, to, Bytes(cut * composition.microbatch));
    stage.to_next = pair.cost;
    stage.link_source = pair.source;
    stage.link_target = pair.target;
    stage.link_to_next = compose::link_between(*located_.level, from[static_cast<std::size_t>(pair.source)],
                                               to[static_cast<std::size_t>(pair.target)]);
  }

  const Job& job_;
  const Located& located_;
  const model::Model& model_;
  const cost::ProfileSet* profiles_;
};

plan::PlacedPipeline placed(const compose::Composition& composition, const Stages& stages) {
  plan::PlacedPipeline pipeline{&composition, {}};
  for (const auto& parts : stages) {
    auto& stage = pipeline.parts.emplace_back();
    for (const JobPart& part : parts) stage.push_back(part.placed);
  }
  return pipeline;
}

}  // namespace

Expected<Imported> make_plan(const ReadJob& read, const cluster::Fleet& fleet, const model::Model& model,
                             const Options& options) {
  if (Diagnostics wrong = differences(read.job(), model); !wrong.empty()) return fail(std::move(wrong));
  auto job = filled(read.job(), fleet);
  if (!job) return fail(std::move(job.error()));
  if (Diagnostics wrong = unsayable(*job, model); !wrong.empty()) return fail(std::move(wrong));
  const auto seating = seat(*job, fleet);
  if (!seating) return fail(seating.error());
  std::optional<cluster::IslandHierarchy> found;
  if (options.hierarchy == nullptr) found = cluster::find_islands(fleet, options.island_tolerance);
  const Located located = locate(*job, *seating, fleet, found ? *found : *options.hierarchy, model);
  const Pricer pricer(*job, located, model, options.profiles);
  std::vector<compose::Composition> compositions;
  for (std::size_t p = 0; p < job->pipelines.size(); ++p) {
    auto composition = pricer.price(p);
    if (!composition) return fail(std::move(composition.error()));
    compositions.push_back(std::move(*composition));
  }
  std::vector<plan::PlacedPipeline> pipelines;
  for (std::size_t p = 0; p < compositions.size(); ++p) {
    pipelines.push_back(placed(compositions[p], located.pipelines[p]));
  }
  Imported imported;
  imported.plan = plan::assemble(pipelines, fleet, *located.level, model, options.profiles);
  for (plan::IdleGpus& idle : imported.plan.idle) idle.reason = "not used by the imported job";
  // A file claims no time of its own: the form is the one its stages give.
  imported.plan.predicted.closed_form = plan::check(imported.plan).closed_form;
  imported.plan.targets = plan::target_verdicts(imported.plan);
  imported.notes = job->notes;
  return imported;
}

}  // namespace tangram::importing
