#include "plan_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "table.hpp"
#include "tangram/base/at.hpp"

namespace tangram::app {

namespace {

/// Forward and backward, of all pipelines that differ: what is simulated and recorded in a second.
constexpr std::int64_t kMostPassesRecorded = 1'000'000;

// Of a stage, on a page.
constexpr std::size_t kMostModules = 8;
constexpr std::size_t kLongestModule = 40;  // characters

/// Stages of plans that are alike differ in nothing else that their schedule has.
bool runs_alike(const simulate::SimPipeline& a, const simulate::SimPipeline& b) {
  return std::ranges::equal(a.stages, b.stages, [](const simulate::SimStage& x, const simulate::SimStage& y) {
    return x.warmup == y.warmup && x.deferrable == y.deferrable && x.latency == y.latency && x.occupancy == y.occupancy;
  });
}

/// Groups of the plan's view, cut where boundaries take other times.
std::vector<PipelineGroup> groups_of(const plan::LaunchPlan& plan, const simulate::Schedule& schedule) {
  std::vector<PipelineGroup> groups;
  for (const PipelineGroup& alike : pipeline_groups(plan)) {
    groups.push_back({alike.first, alike.first});
    for (int p = alike.first + 1; p <= alike.last; ++p) {
      if (runs_alike(at(schedule.pipelines, groups.back().first), at(schedule.pipelines, p))) {
        groups.back().last = p;
      } else {
        groups.push_back({p, p});
      }
    }
  }
  return groups;
}

std::int64_t passes_of(const simulate::Schedule& schedule) {
  std::int64_t passes = 0;
  for (const simulate::SimPipeline& pipeline : schedule.pipelines) {
    std::int64_t executors = 0;
    for (const simulate::SimStage& stage : pipeline.stages) executors += static_cast<std::int64_t>(stage.parts.size());
    passes += 2 * executors * simulate::chunks_of(pipeline) * pipeline.microbatches;
  }
  return passes;
}

/// Parts of the stage of a pipeline that has most, of those that are drawn.
std::size_t most_parts(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline) {
  std::size_t most = 1;
  for (const int stage : pipeline.stages) most = std::max(most, parts_drawn(plan.stage(stage)));
  return most;
}

/// At least one.
std::size_t drawn_groups(const PlanPicture& picture) {
  std::size_t rows = 0;
  std::size_t groups = 0;
  for (; groups < picture.groups.size(); ++groups) {
    rows += picture.stages(groups).size() * most_parts(picture.plan, picture.pipeline(groups));
    if (groups > 0 && rows > kMostRowsDrawn) break;
  }
  return groups;
}

std::map<std::string, picture::Paint> paints_of(const plan::LaunchPlan& plan) {
  std::map<std::string, picture::Paint> paints;
  for (const plan::PlanIsland& island : plan.islands) {
    paints.try_emplace(island.device.name, picture::series(paints.size()));
  }
  return paints;
}

struct NamedBlocks {
  std::string name;
  model::BlockRange blocks;
};

std::vector<NamedBlocks> modules_in(const model::Model& model) {
  std::vector<NamedBlocks> modules;
  for (const model::Module& module : model.graph.modules) modules.push_back({module.name, module.blocks});
  if (!modules.empty()) return modules;
  for (const model::BlockRange& encoder : model::encoder_ranges(model)) modules.push_back({"encoder", encoder});
  if (!modules.empty()) modules.push_back({"language", {modules.back().blocks.last, model.block_count()}});
  return modules;
}

bool meets(const model::BlockRange& a, const model::BlockRange& b) { return a.first < b.last && b.first < a.last; }

}  // namespace

std::size_t parts_drawn(const plan::Stage& stage) { return std::min(stage.parts.size(), kMostPartsDrawn); }

MemoryUse memory_use(const plan::PartPrediction& predicted) {
  return {predicted.peak_memory.as_double() / std::max(1.0, predicted.usable_memory.as_double()),
          fmt::format("{} of {}", people_bytes(predicted.peak_memory), people_bytes(predicted.usable_memory))};
}

const plan::Pipeline& PlanPicture::pipeline(std::size_t group) const {
  return at(plan.pipelines, at(groups, group).first);
}

std::vector<std::size_t> PlanPicture::stages(std::size_t group) const {
  const std::size_t count = pipeline(group).stages.size();
  const std::size_t room = kMostRowsDrawn / most_parts(plan, pipeline(group));
  std::vector<std::size_t> places;
  for (std::size_t s = 0; s < count; ++s) {
    if (count <= room || s < room / 2 || s + room / 2 >= count) places.push_back(s);
  }
  return places;
}

const plan::Stage& PlanPicture::stage(std::size_t group, std::size_t place) const {
  return plan.stage(at(pipeline(group).stages, place));
}

picture::Paint PlanPicture::paint_of(const plan::Part& part) const {
  return paints.at(plan.island(part.island).device.name);
}

std::vector<std::string> PlanPicture::modules_of(const plan::Stage& stage) const {
  const auto modules = modules_in(plan.model);
  const std::vector<model::BlockRange> held = plan.blocks_held(stage);
  std::vector<std::string> names;
  if (modules.size() < 2) return names;
  for (const NamedBlocks& module : modules) {
    const auto has = [&](const model::BlockRange& chunk) { return meets(chunk, module.blocks); };
    if (!std::ranges::any_of(held, has)) continue;
    names.push_back(names.size() < kMostModules ? clipped(module.name, kLongestModule) : "…");
    if (names.size() > kMostModules) break;
  }
  return names;
}

PlanPicture picture_of(const plan::LaunchPlan& plan) {
  simulate::Schedule all = simulate::schedule_of(plan);
  PlanPicture picture{plan, groups_of(plan, all), 0, {}, std::nullopt, "", paints_of(plan)};
  for (const PipelineGroup& group : picture.groups) {
    picture.schedule.pipelines.push_back(std::move(at(all.pipelines, group.first)));
  }
  picture.drawn = drawn_groups(picture);
  if (const std::int64_t passes = passes_of(picture.schedule); passes > kMostPassesRecorded) {
    picture.why_no_run =
        fmt::format("Not drawn: {} passes, more than {}.", thousands(passes), thousands(kMostPassesRecorded));
    return picture;
  }
  simulate::Result run = simulate::simulate(picture.schedule, /*record=*/true);
  if (run.deadlock) {
    picture.why_no_run = "Not drawn: the schedule cannot finish, two stages wait for each other.";
  } else {
    picture.run = std::move(run);
  }
  return picture;
}

}  // namespace tangram::app
