// From a job that was read to a launch plan: GPUs, the level of islands, parts, times.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "execution_arguments.hpp"
#include "fill.hpp"
#include "layers.hpp"
#include "model_arguments.hpp"
#include "modules.hpp"
#include "parts.hpp"
#include "speed.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/given_plan.hpp"

namespace tangram::importing {

namespace {

using Stages = std::vector<std::vector<JobPart>>;  // of one pipeline

/// How well a level suits a job: islands as its rank map has them, then parts that stay on one island.
struct LevelFit {
  bool other_islands = false;
  int spilling = 0;
  auto operator<=>(const LevelFit&) const = default;
};

/// Ranks share an island of the level exactly where they share one of the rank map.
bool has_islands_of(const Job& job, const cluster::Fleet& fleet, const plan::GpuPlaces& places) {
  std::map<std::string, std::size_t> nodes;
  for (std::size_t n = 0; n < fleet.nodes.size(); ++n) nodes.emplace(fleet.nodes[n].name, n);
  std::map<int, int> to_level;
  std::map<int, int> to_file;
  for (const RankGpu& rank : job.ranks) {
    const int island = places.of({nodes.at(rank.host), rank.gpu, 0}).island;
    if (to_level.try_emplace(rank.island, island).first->second != island) return false;
    if (to_file.try_emplace(island, rank.island).first->second != rank.island) return false;
  }
  return true;
}

LevelFit fit_of(const Job& job, const std::vector<Stages>& pipelines, const cluster::Fleet& fleet,
                const plan::GpuPlaces& places) {
  LevelFit fit;
  const bool said = !job.ranks.empty() && job.ranks.front().island >= 0;
  fit.other_islands = said && !has_islands_of(job, fleet, places);
  for (const Stages& stages : pipelines) {
    for (const auto& parts : stages)
      fit.spilling += static_cast<int>(std::ranges::count(parts, true, &JobPart::spills));
  }
  return fit;
}

std::vector<Stages> stages_at(const Job& job, const RankAssignment& assignment, const plan::GpuPlaces& places,
                              const model::Model& model) {
  std::vector<Stages> pipelines(job.pipelines.size());
  for (std::size_t p = 0; p < job.pipelines.size(); ++p) {
    for (std::size_t s = 0; s < job.pipelines[p].stages.size(); ++s) {
      pipelines[p].push_back(parts_of(job.pipelines[p].stages[s], assignment[p][s], places, model));
    }
  }
  return pipelines;
}

/// A job on the level that fits it best, the finest of those that fit alike.
struct Located {
  const cluster::IslandLevel* level = nullptr;
  std::vector<Stages> pipelines;
};

Located locate(const Job& job, const RankAssignment& assignment, const cluster::Fleet& fleet,
               const cluster::IslandHierarchy& hierarchy, const model::Model& model) {
  Located best;
  LevelFit best_fit;
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    const plan::GpuPlaces places(level);
    auto pipelines = stages_at(job, assignment, places, model);
    const LevelFit fit = fit_of(job, pipelines, fleet, places);
    if (best.level != nullptr && fit >= best_fit) continue;
    best = {&level, std::move(pipelines)};
    best_fit = fit;
  }
  return best;
}

/// Classic warm-ups: a stage holds one microbatch more than the next; of several chunks two passes more, and all but
/// one of its chunks a group (Megatron-LM's schedules.py).
std::int64_t in_flight(const JobPipeline& pipeline, std::size_t stage) {
  const auto behind = static_cast<std::int64_t>(pipeline.stages.size() - 1 - stage);
  if (pipeline.group == 0) return std::min(behind + 1, pipeline.microbatches);
  const std::int64_t passes = 2 * behind + (pipeline.chunks() - 1) * pipeline.group + 1;
  return std::min(passes, pipeline.microbatches * pipeline.chunks());
}

plan::GivenPlacement given(const Job& job, std::size_t pipeline, const Located& located) {
  const JobPipeline& from = job.pipelines[pipeline];
  plan::GivenPlacement given{{1, from.microbatch, from.microbatches, {}}};
  given.pipeline.group = from.group;
  for (std::size_t s = 0; s < from.stages.size(); ++s) {
    std::vector<model::BlockRange> chunks;
    for (const JobLayers& chunk : from.stages[s].all_chunks()) {
      chunks.push_back({static_cast<int>(chunk.first), static_cast<int>(chunk.last)});
    }
    given.add_stage(chunks, in_flight(from, s));
    for (const JobPart& part : located.pipelines[pipeline][s]) {
      given.add_part({part.island_class, {}, part.samples, part.strategy, "imported", ""}, part.placed, *located.level,
                     part.spills);
    }
  }
  return given;
}

/// Groups that the runtime does not take.
Diagnostics refused_groups(const Job& job) {
  Diagnostics wrong;
  for (const JobPipeline& pipeline : job.pipelines) {
    if (pipeline.group == 0 || !wrong.empty()) continue;
    const std::string why =
        runtime::interleaving_refusal(pipeline.microbatches, std::ssize(pipeline.stages), pipeline.group);
    if (!why.empty()) wrong.push_back(at(pipeline.stages.front().place, "group-refused", why));
  }
  return wrong;
}

Expected<plan::LaunchPlan> plan_of(const Job& job, const Located& located, const cluster::Fleet& fleet,
                                   const model::Model& model, const cost::ProfileSet* profiles) {
  std::vector<plan::GivenPlacement> pipelines;
  for (std::size_t p = 0; p < job.pipelines.size(); ++p) pipelines.push_back(given(job, p, located));
  model::Model as_run = model;
  as_run.job = plan::as_run_by(job.runtime, model.job);
  auto plan = plan::given_plan(pipelines, std::nullopt, job.runtime, fleet, *located.level, as_run, profiles);
  if (plan) return std::move(*plan);
  const compose::Unpriced& unpriced = plan.error();
  const JobStage& stage = job.pipelines[unpriced.pipeline].stages[unpriced.stage];
  return fail(at(stage.place, "unsupported-degrees",
                 fmt::format("layers {}-{} cannot run like this: {}", stage.first, stage.last - 1, unpriced.why)));
}

}  // namespace

Expected<Imported> make_plan(const ReadJob& read, const cluster::Fleet& fleet, const model::Model& as_given,
                             const Options& options) {
  if (Diagnostics wrong = differences(read.job(), as_given); !wrong.empty()) return fail(std::move(wrong));
  model::Model model = as_executed(read, as_given);
  auto job = filled(read.job(), fleet, model.job.global_batch);
  if (!job) return fail(std::move(job.error()));
  if (!job->modules.empty()) {
    if (Diagnostics wrong = stages_of_modules(*job, model); !wrong.empty()) return fail(std::move(wrong));
  }
  if (Diagnostics wrong = number_blocks(*job, model); !wrong.empty()) return fail(std::move(wrong));
  if (Diagnostics wrong = refused_groups(*job); !wrong.empty()) return fail(std::move(wrong));
  auto assignment = assign_ranks(*job, fleet);
  if (!assignment) return fail(std::move(assignment.error()));
  std::optional<cluster::IslandHierarchy> found;
  if (options.hierarchy == nullptr) found = cluster::find_islands(fleet, options.island_tolerance);
  const cluster::IslandHierarchy& hierarchy = found ? *found : *options.hierarchy;
  Diagnostics slow = share_by_speed(*job, *assignment, hierarchy.levels.front(), model, options.profiles);
  if (!slow.empty()) return fail(std::move(slow));
  const Located located = locate(*job, *assignment, fleet, hierarchy, model);
  auto plan = plan_of(*job, located, fleet, model, options.profiles);
  if (!plan) return fail(std::move(plan.error()));
  Imported imported{std::move(*plan), std::move(model), {}};
  for (plan::IdleGpus& idle : imported.plan.idle) idle.reason = "not used by the imported job";
  imported.notes = job->notes;
  if (job->claimed_seconds > 0) {
    imported.notes.push_back(fmt::format("the file expects {:.4g} s an iteration", job->claimed_seconds));
  }
  return imported;
}

}  // namespace tangram::importing
