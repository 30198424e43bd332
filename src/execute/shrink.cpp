// Which pipelines, replicas and blocks of a plan are executed.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "scale.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

constexpr int kAlike = 2;                 // of what repeats: one could not differ from itself
constexpr std::int64_t kMostRanks = 768;  // of one pipeline; coroutines on one thread run that many in seconds

/// What must be equal for two pipelines to run alike.
using PipelineKind = std::tuple<std::int64_t, std::int64_t,
                                std::vector<std::tuple<std::vector<model::BlockRange>, std::int64_t,
                                                       std::vector<std::pair<std::int64_t, cost::Strategy>>>>>;

PipelineKind kind_of(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline) {
  PipelineKind kind{pipeline.microbatch, pipeline.samples, {}};
  for (const int id : pipeline.stages) {
    const plan::Stage& stage = plan.stage(id);
    std::vector<std::pair<std::int64_t, cost::Strategy>> parts;
    parts.reserve(stage.parts.size());
    for (const plan::Part& part : stage.parts) parts.emplace_back(part.samples, part.strategy);
    std::get<2>(kind).emplace_back(stage.chunks, stage.warmup, std::move(parts));
  }
  return kind;
}

/// Replicas that must stay together: an expert group is made of whole replicas, or a replica of whole expert groups;
/// where ZeRO shards inside groups, so are these, and so are lanes of encoders.
std::int64_t replicas_together(const plan::LaunchPlan& plan, const cost::Degrees& d) {
  const std::int64_t replica = std::int64_t{d.tp} * d.cp;
  std::int64_t ranks = std::lcm(replica, std::int64_t{d.ep} * d.etp);
  if (d.dp_replicate > 1) ranks = std::lcm(ranks, replica * d.dp_shard());
  if (plan.colocated) {
    for (const auto& encoder : plan.colocated->encoders) ranks = std::lcm(ranks, std::int64_t{encoder.layout.tp});
  }
  return ranks / replica;
}

/// Where a stage's microbatch can be cut without cutting a replica or an expert group.
std::set<std::int64_t> cuts_of(const plan::LaunchPlan& plan, const plan::Stage& stage) {
  std::set<std::int64_t> cuts{0};
  std::int64_t before = 0;
  for (const plan::Part& part : stage.parts) {
    const cost::Degrees& d = part.strategy.degrees;
    const std::int64_t step = replicas_together(plan, d);
    for (std::int64_t lane = step; lane <= d.dp; lane += step) cuts.insert(lane_of(part, before, lane).first);
    before += part.samples;
    cuts.insert(before);
  }
  return cuts;
}

std::int64_t lanes_in(const plan::Part& part, std::int64_t before, Window window) {
  std::int64_t lanes = 0;
  for (int lane = 0; lane < part.strategy.degrees.dp; ++lane) {
    const Window own = lane_of(part, before, lane);
    lanes += window.first <= own.first && own.last <= window.last ? 1 : 0;
  }
  return lanes;
}

/// How many samples of the last microbatch lie in a window, and of each part of each stage how many replicas with how
/// many samples of a whole one: equal for windows that repeat each other.
std::vector<std::int64_t> kind_of(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline, Window window) {
  std::vector<std::int64_t> kind{std::clamp(pipeline.last_microbatch(), window.first, window.last) - window.first};
  for (const int id : pipeline.stages) {
    std::int64_t before = 0;
    for (const plan::Part& part : plan.stage(id).parts) {
      const std::int64_t first = std::max(before, window.first);
      const std::int64_t last = std::min(before + part.samples, window.last);
      kind.push_back(std::max<std::int64_t>(0, last - first));
      kind.push_back(lanes_in(part, before, window));
      before += part.samples;
    }
  }
  return kind;
}

std::int64_t ranks_in(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline,
                      const std::vector<Window>& windows) {
  const int folds = context_folds(plan);
  std::int64_t ranks = 0;
  for (const Window& window : windows) {
    for (const int id : pipeline.stages) {
      std::int64_t before = 0;
      for (const plan::Part& part : plan.stage(id).parts) {
        const cost::Degrees& d = part.strategy.degrees;
        ranks += lanes_in(part, before, window) * d.tp * (d.cp / folds);
        before += part.samples;
      }
    }
  }
  return ranks;
}

std::vector<Window> some_of(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline,
                            const std::vector<Window>& all, int alike) {
  std::map<std::vector<std::int64_t>, int> seen;
  std::vector<Window> kept;
  for (const Window& window : all) {
    if (++seen[kind_of(plan, pipeline, window)] <= alike) kept.push_back(window);
  }
  return kept;
}

}  // namespace

std::vector<int> kept_pipelines(const plan::LaunchPlan& plan) {
  std::map<PipelineKind, int> seen;
  std::vector<int> kept;
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    if (++seen[kind_of(plan, pipeline)] <= kAlike) kept.push_back(pipeline.id);
  }
  return kept;
}

int context_folds(const plan::LaunchPlan& plan) {
  if (plan.colocated) return 1;  // lanes of encoders are made of all ranks
  int common = 0;
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) common = std::gcd(common, part.strategy.degrees.cp);
  }
  const auto good = [&](int folds) {
    return std::ranges::all_of(plan.stages, [&](const plan::Stage& stage) {
      return std::ranges::all_of(stage.parts, [&](const plan::Part& part) {
        const cost::Degrees& d = part.strategy.degrees;
        const int kept = d.cp / folds;
        return kept >= kAlike && d.tp * kept % (d.ep * d.etp) == 0;
      });
    });
  };
  for (int folds = common; folds > 1; --folds) {
    if (common % folds == 0 && good(folds)) return folds;
  }
  return 1;
}

std::vector<Window> kept_windows(const plan::LaunchPlan& plan, const plan::Pipeline& pipeline) {
  std::set<std::int64_t> common = cuts_of(plan, plan.stage(pipeline.stages.front()));
  for (const int id : pipeline.stages) {
    const std::set<std::int64_t> own = cuts_of(plan, plan.stage(id));
    std::erase_if(common, [&](std::int64_t cut) { return !own.contains(cut); });
  }
  std::vector<Window> all;
  for (auto it = common.begin(); std::next(it) != common.end(); ++it) all.push_back({*it, *std::next(it)});
  std::vector<Window> kept = some_of(plan, pipeline, all, kAlike);
  if (ranks_in(plan, pipeline, kept) > kMostRanks) kept = some_of(plan, pipeline, all, 1);
  return kept;
}

std::set<int> ends_and_changes(const model::Model& model) {
  std::set<int> kept;
  if (model.block_count() > 0) kept = {0, model.block_count() - 1};
  for (int b = 1; b < model.block_count(); ++b) {
    if (at(model.blocks, b) != at(model.blocks, b - 1)) kept.insert({b - 1, b});
  }
  return kept;
}

std::vector<int> kept_blocks(const plan::LaunchPlan& plan, const std::vector<int>& pipelines) {
  std::set<int> kept = ends_and_changes(plan.pipelined());
  const auto keep_around = [&](int edge) {  // both sides of a cut
    for (const int block : {edge - 1, edge}) {
      if (block >= 0 && block < plan.pipelined().block_count()) kept.insert(block);
    }
  };
  for (const int id : pipelines) {
    for (const int s : at(plan.pipelines, id).stages) {
      const plan::Stage& stage = plan.stage(s);
      for (const model::BlockRange& chunk : stage.chunks) {
        keep_around(chunk.first);
        keep_around(chunk.last);
        for (const plan::Part& part : stage.parts) {
          int edge = chunk.first;
          for (const cost::BlockRun& run : cost::runs_of(part.strategy.policy, chunk.count())) {
            keep_around(edge += run.blocks);
          }
        }
      }
    }
  }
  return {kept.begin(), kept.end()};
}

}  // namespace tangram::execute
