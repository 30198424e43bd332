#include "tangram/evolve/difference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/model/execution_options.hpp"

namespace tangram::evolve {

namespace {

std::vector<Gpu> gpus_of(const plan::LaunchPlan& plan, const plan::Stage& stage) {
  std::vector<Gpu> gpus;
  for (const plan::Part& part : stage.parts) {
    for (int i = 0; i < part.strategy.degrees.gpus(); ++i) {
      const plan::Rank& rank = plan.rank(part, i);
      gpus.emplace_back(rank.host, rank.gpu);
    }
  }
  return gpus;
}

/// Which stage every GPU of a plan belongs to.
std::map<Gpu, int> stages_by_gpu(const plan::LaunchPlan& plan) {
  std::map<Gpu, int> stages;
  for (const plan::Rank& rank : plan.ranks) stages[{rank.host, rank.gpu}] = rank.stage;
  return stages;
}

int common_layers(const std::vector<model::BlockRange>& a, const std::vector<model::BlockRange>& b) {
  int common = 0;
  for (const model::BlockRange& x : a) {
    for (const model::BlockRange& y : b) {
      common += std::max(0, std::min(x.last, y.last) - std::max(x.first, y.first));
    }
  }
  return common;
}

/// How well an old stage fits a new one; more is better, earlier stages come first among equals.
struct Likeness {
  int gpus = 0;
  int layers = 0;
  int before = 0;
  int after = 0;
  [[nodiscard]] auto order() const { return std::tuple(-gpus, -layers, before, after); }
};

std::vector<Likeness> likenesses(const plan::LaunchPlan& before, const plan::LaunchPlan& after) {
  std::map<std::pair<int, int>, int> common;  // (old, new) -> GPUs
  const std::map<Gpu, int> old_stage = stages_by_gpu(before);
  for (const auto& [gpu, stage] : stages_by_gpu(after)) {
    const auto found = old_stage.find(gpu);
    if (found != old_stage.end()) ++common[{found->second, stage}];
  }
  std::vector<Likeness> all;
  all.reserve(common.size());
  for (const auto& [pair, gpus] : common) {
    all.push_back(
        {gpus, common_layers(before.blocks_held(before.stage(pair.first)), after.blocks_held(after.stage(pair.second))),
         pair.first, pair.second});
  }
  std::ranges::sort(all, {}, &Likeness::order);
  return all;
}

/// Stages that share no GPU with any other plan's stage are paired by their layers: on other hosts it is the same
/// stage.
void pair_by_layers(const plan::LaunchPlan& before, const plan::LaunchPlan& after, std::vector<int>& old_of,
                    std::vector<bool>& taken) {
  for (const plan::Stage& stage : after.stages) {
    int& mine = at(old_of, stage.id);
    if (mine >= 0) continue;
    const auto layers = after.blocks_held(stage);
    const auto found = std::ranges::find_if(
        before.stages, [&](const plan::Stage& old) { return !at(taken, old.id) && before.blocks_held(old) == layers; });
    if (found == before.stages.end()) continue;
    mine = found->id;
    at(taken, found->id) = true;
  }
}

bool same_inside(const plan::Stage& a, const plan::Stage& b) {
  return std::ranges::equal(a.parts, b.parts, [](const plan::Part& x, const plan::Part& y) {
    return x.strategy == y.strategy && x.samples == y.samples;
  });
}

StagePair compared(const plan::LaunchPlan& before, const plan::LaunchPlan& after, int old_id, int new_id) {
  StagePair pair{old_id, new_id};
  if (old_id < 0 || new_id < 0) return pair;
  const plan::Stage& a = before.stage(old_id);
  const plan::Stage& b = after.stage(new_id);
  pair.layers = before.blocks_held(a) != after.blocks_held(b);
  std::vector<Gpu> old_gpus = gpus_of(before, a);
  const std::vector<Gpu> new_gpus = gpus_of(after, b);
  pair.gpus = old_gpus != new_gpus;
  std::ranges::sort(old_gpus);
  pair.joined = static_cast<int>(
      std::ranges::count_if(new_gpus, [&](const Gpu& gpu) { return !std::ranges::binary_search(old_gpus, gpu); }));
  pair.inside = !same_inside(a, b);
  return pair;
}

std::vector<StagePair> pair_stages(const plan::LaunchPlan& before, const plan::LaunchPlan& after) {
  std::vector<int> old_of(after.stages.size(), -1);
  std::vector<bool> taken(before.stages.size(), false);
  for (const Likeness& likeness : likenesses(before, after)) {
    int& mine = at(old_of, likeness.after);
    if (mine >= 0 || at(taken, likeness.before)) continue;
    mine = likeness.before;
    at(taken, likeness.before) = true;
  }
  pair_by_layers(before, after, old_of, taken);
  std::vector<StagePair> pairs;
  pairs.reserve(after.stages.size());
  for (const plan::Stage& stage : after.stages) {
    pairs.push_back(compared(before, after, at(old_of, stage.id), stage.id));
  }
  for (const plan::Stage& stage : before.stages) {
    if (!at(taken, stage.id)) pairs.push_back(compared(before, after, stage.id, -1));
  }
  return pairs;
}

bool same_pipelines(const plan::LaunchPlan& a, const plan::LaunchPlan& b) {
  return std::ranges::equal(a.pipelines, b.pipelines, [](const plan::Pipeline& x, const plan::Pipeline& y) {
    return x.samples == y.samples && x.microbatch == y.microbatch && x.microbatches == y.microbatches &&
           x.stages.size() == y.stages.size();
  });
}

std::vector<cost::EncoderLayout> layouts_of(const plan::LaunchPlan& plan) {
  std::vector<cost::EncoderLayout> layouts;
  if (!plan.colocated) return layouts;
  for (const plan::ColocatedEncoders::Encoder& encoder : plan.colocated->encoders) layouts.push_back(encoder.layout);
  return layouts;
}

bool same_turns(const plan::LaunchPlan& a, const plan::LaunchPlan& b) {
  if (!a.colocated || !b.colocated) return !a.colocated && !b.colocated;
  return a.colocated->turns == b.colocated->turns && a.colocated->encoders == b.colocated->encoders;
}

/// What is fixed of modules is for a plan's check to judge, as forbidden techniques are.
model::Model without_constraints(model::Model model) {
  lift_constraints(model);
  return model;
}

}  // namespace

std::map<Gpu, Role> roles_of(const plan::LaunchPlan& plan) {
  std::map<Gpu, Role> roles;
  for (const plan::Rank& rank : plan.ranks) {
    const plan::Stage& stage = plan.stage(rank.stage);
    const plan::Part& part = at(stage.parts, rank.part);
    roles[{rank.host, rank.gpu}] = {plan.blocks_held(stage), part.strategy.degrees, layouts_of(plan)};
  }
  return roles;
}

GpuCounts count_roles(const std::map<Gpu, Role>& before, const std::map<Gpu, Role>& after) {
  GpuCounts counts;
  for (const auto& [gpu, role] : after) {
    const auto old = before.find(gpu);
    ++(old == before.end() ? counts.joined : old->second == role ? counts.same : counts.changed);
  }
  counts.left = static_cast<int>(before.size()) - counts.same - counts.changed;
  return counts;
}

bool Difference::same_structure() const {
  return same_model && other_job.empty() && same_batching && same_schedule &&
         std::ranges::all_of(stages, &StagePair::same);
}

std::string job_change(const model::Model& before, const model::Model& after) {
  model::Model other = after;
  other.job.allow = before.job.allow;
  other.job.microbatch = before.job.microbatch;
  if (model::write_model(without_constraints(before)) == model::write_model(without_constraints(other))) return "";
  std::vector<std::string> changes;
  const auto compare = [&](std::string_view name, const auto& was, const auto& is) {
    if (was != is) changes.push_back(fmt::format("{} {}, not {}", name, is, was));
  };
  const model::Job& a = before.job;
  const model::Job& b = after.job;
  compare("sequence length", a.sequence_length, b.sequence_length);
  compare("global batch", a.global_batch, b.global_batch);
  compare("precision", to_string(a.precision), to_string(b.precision));
  for (const auto& [name, option, _] : model::option_names()) {
    compare(name, model::value_of(option, a), model::value_of(option, b));
  }
  return changes.empty() ? "other settings of training" : fmt::format("{}", fmt::join(changes, "; "));
}

bool same_model(const model::Model& a, const model::Model& b) {
  const auto weights = [](const model::Model& from) {
    model::Model model = without_constraints(from);
    model.job = {};
    model.job.parameter_bytes = from.job.parameter_bytes;
    model.job.optimizer = from.job.optimizer;
    for (model::BlockType& type : model.types) type.tokens = 0;
    return model::write_model(model);
  };
  return weights(a) == weights(b);
}

Difference difference(const plan::LaunchPlan& before, const plan::LaunchPlan& after) {
  Difference result;
  result.same_body = plan::plan_digest(before) == plan::plan_digest(after);
  result.same_model = same_model(before.model, after.model);
  result.other_job = job_change(before.model, after.model);
  result.same_batching = same_pipelines(before, after);
  result.same_schedule =
      before.schedule() == after.schedule() && before.group == after.group && same_turns(before, after);
  result.stages = pair_stages(before, after);
  result.gpus = count_roles(roles_of(before), roles_of(after));
  return result;
}

}  // namespace tangram::evolve
