// FlagScale heterogeneous training. Rules as in FlagOpen/FlagScale 0.8 flagscale/train/arguments.py and
// flagscale/train/hetero/parallel_context.py: one mesh (tp, cp, ep, dp) per pipeline stage, a device type per host.
#include <iterator>
#include <set>

#include "tangram/base/at.hpp"
#include "tangram/plan/launch_order.hpp"
#include "target_rules.hpp"

namespace tangram::plan {

namespace {

using cost::RecomputeMode;

/// Each connected path through the stages' ranks becomes a communicator; beyond this many per rank they cost memory
/// and start-up time.
constexpr double kMostPathsPerRank = 64;

// Logical ranks follow the order of hosts, of which each has one device type.
void refuse_hosts(Rules& rules, const LaunchPlan& plan) {
  std::set<int> tangled;
  std::set<int> mixed;
  const LaunchOrder order = stage_order(plan);
  for (const HostRanks& host : order.hosts) {
    const bool gap = host.ranks.back() - host.ranks.front() + 1 != static_cast<int>(host.ranks.size());
    std::set<std::string> types;
    std::set<int> stages;
    for (const int r : host.ranks) {
      const Rank& rank = at(plan.ranks, at(order.plan_rank, r));
      types.insert(plan.island(rank.island).device.name);
      stages.insert(rank.stage);
    }
    if (gap) tangled.insert(stages.begin(), stages.end());
    if (types.size() > 1) mixed.insert(stages.begin(), stages.end());
  }
  if (!tangled.empty()) {
    rules.refuse("FS_HOST_ORDER", {tangled.begin(), tangled.end()},
                 "ranks follow the hosts' order, and no order of the hosts gives the order of the stages");
  }
  if (!mixed.empty()) {
    rules.refuse("FS_HOST_MIXED", {mixed.begin(), mixed.end()},
                 "a host has one device type; this one has GPUs of several");
  }
}

// Tied embeddings: the first and the last stage exchange the gradient of the shared table.
void refuse_tied_ends(Rules& rules, const LaunchPlan& plan) {
  if (!plan.model.tied_embeddings || plan.pipelines.front().stages.size() < 2) return;
  const Stage& first = plan.stage(plan.pipelines.front().stages.front());
  const Stage& last = plan.stage(plan.pipelines.front().stages.back());
  const auto& a = degrees_of(first);
  const auto& b = degrees_of(last);
  if (a.tp != b.tp) {
    rules.refuse("FS_TIED_TP", {first.id, last.id},
                 "tied embeddings need equal tensor parallelism in first and last stage");
  }
  if (a.dp != b.dp && std::max(a.dp, b.dp) % std::min(a.dp, b.dp) != 0) {
    rules.refuse("FS_TIED_DP", {first.id, last.id},
                 "tied embeddings need data parallel degrees of first and last stage that divide each other");
  }
}

// Paths through a rank: ways to reach it times ways on from it.
void refuse_many_paths(Rules& rules, const LaunchPlan& plan) {
  std::vector<double> in(plan.ranks.size(), 0);
  std::vector<double> out(plan.ranks.size(), 0);
  for (const auto& pipeline : plan.pipelines) {
    for (const auto& rank : plan.ranks) {
      if (rank.stage == pipeline.stages.front()) at(in, rank.rank) = 1;
      if (rank.stage == pipeline.stages.back()) at(out, rank.rank) = 1;
    }
  }
  // Boundaries are written first to last inside a pipeline.
  for (const auto& boundary : plan.boundaries) {
    for (const auto& t : boundary.transfers) at(in, t.dst) += at(in, t.src);
  }
  for (auto boundary = plan.boundaries.rbegin(); boundary != plan.boundaries.rend(); ++boundary) {
    for (const auto& t : boundary->transfers) at(out, t.src) += at(out, t.dst);
  }
  std::set<int> crowded;
  for (const auto& rank : plan.ranks) {
    if (at(in, rank.rank) * at(out, rank.rank) > kMostPathsPerRank) crowded.insert(rank.stage);
  }
  if (!crowded.empty()) {
    rules.refuse("FS_TOO_MANY_PATHS", {crowded.begin(), crowded.end()},
                 "more than 64 pipeline paths run through one rank, each of them a communicator");
  }
}

void refuse_memory_policies(Rules& rules, const LaunchPlan& plan, const std::vector<const Stage*>& stages) {
  std::vector<const Stage*> sharding;
  std::ranges::copy_if(stages, std::back_inserter(sharding),
                       [&](const Stage* s) { return !has_nothing_to_shard(plan, *s); });
  rules.same(
      sharding, [](const Stage& s) { return policy_of(s).zero; }, "FS_ZERO_VARIES",
      "the optimizer is sharded in all stages or in none");
  refuse_sharding_groups(rules, stages, "FS");
  rules.none(
      stages, [](const Stage& s) { return policy_of(s).zero >= 2; }, "FS_ZERO_LEVEL",
      "only the optimizer is sharded (ZeRO-1)");
  const bool other =
      std::ranges::any_of(stages, [](const Stage* s) { return policy_of(*s).recompute != RecomputeMode::kSelective; });
  if (other) {
    rules.none(
        stages, [](const Stage& s) { return policy_of(s).recompute == RecomputeMode::kSelective; },
        "FS_RECOMPUTE_SELECTIVE", "per stage, recompute is full or off; selective holds for all stages or none");
  }
}

}  // namespace

TargetVerdict flagscale_verdict(const LaunchPlan& plan) {
  Rules rules("flagscale");
  const auto stages = all_stages(plan);
  const auto replicas = static_cast<int>(plan.pipelines.size());
  refuse_general(rules, plan, "FS");
  refuse_interleaving(rules, plan, "FS");
  rules.none(
      stages, [](const Stage& s) { return degrees_of(s).cp > 1; }, "FS_CP", "context parallelism is not supported");
  rules.none(
      stages, [&](const Stage& s) { return at(plan.pipelines, s.pipeline).microbatch % degrees_of(s).dp != 0; },
      "FS_MICROBATCH_DP", "every stage's data parallelism must divide the microbatch");
  rules.none(
      stages, [&](const Stage& s) { return plan.model.job.sequence_length % degrees_of(s).tp != 0; }, "FS_SEQ_TP",
      "tensor parallelism must divide the sequence length");
  rules.none(
      stages, [](const Stage& s) { return degrees_of(s).tp > 1 && !degrees_of(s).sequence_parallel; }, "FS_SP_REQUIRED",
      "boundaries exchange sequence slices: tensor parallelism needs sequence parallelism");
  rules.none(
      stages,
      [&](const Stage& s) {
        const auto& d = degrees_of(s);
        return d.ep > 1 && depth_of(plan, s) > 0 && d.ep * d.etp != d.tp * d.dp * replicas;
      },
      "FS_EP_MESH", "after the first stage, ep x etp must be all ranks of the stage (expert groups are lost else)");
  refuse_hosts(rules, plan);
  refuse_tied_ends(rules, plan);
  refuse_memory_policies(rules, plan, stages);
  refuse_many_paths(rules, plan);
  refuse_options(rules, plan.model, runtime::runtime_of(runtime::Target::kFlagscale).options, "FS");
  refuse_model(rules, plan.model, "FS");
  return std::move(rules).verdict();
}

}  // namespace tangram::plan
