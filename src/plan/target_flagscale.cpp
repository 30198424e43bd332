// FlagScale heterogeneous training. Rules as in FlagOpen/FlagScale 0.8 flagscale/train/arguments.py and
// flagscale/train/hetero/parallel_context.py: one mesh (tp, cp, ep, dp) per pipeline stage, a device type per host.
#include <map>
#include <set>

#include "target_rules.hpp"

namespace tangram::plan {

namespace {

using cost::RecomputeMode;

/// Each connected path through the stages' ranks becomes a communicator; beyond this many per rank they cost memory
/// and start-up time.
constexpr double kMostPathsPerRank = 64;

// Logical ranks follow the order of hosts: hosts must have an order in which stages follow each other.
void refuse_host_order(Rules& rules, const LaunchPlan& plan) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> span;  // host -> first and last stage depth on it
  std::map<std::string, std::set<std::string>> types;
  for (const auto& rank : plan.ranks) {
    const std::int64_t depth = depth_of(plan, plan.stage(rank.stage));
    auto [entry, fresh] = span.try_emplace(rank.host, depth, depth);
    entry->second.first = std::min(entry->second.first, depth);
    entry->second.second = std::max(entry->second.second, depth);
    types[rank.host].insert(plan.island(rank.island).device.name);
  }
  const auto on_hosts = [&](const std::set<std::string>& hosts) {
    std::set<int> stages;
    for (const auto& rank : plan.ranks) {
      if (hosts.contains(rank.host)) stages.insert(rank.stage);
    }
    return std::vector<int>(stages.begin(), stages.end());
  };

  std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::string>> order;
  for (const auto& [host, range] : span) order.emplace_back(range, host);
  std::ranges::sort(order);
  std::set<std::string> tangled;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i].first.first < order[i - 1].first.second) {
      tangled.insert(order[i].second);
      tangled.insert(order[i - 1].second);
    }
  }
  if (!tangled.empty()) {
    rules.refuse("FS_HOST_ORDER", on_hosts(tangled),
                 "ranks follow the hosts' order, and no order of the hosts gives the order of the stages");
  }
  std::set<std::string> mixed;
  for (const auto& [host, names] : types) {
    if (names.size() > 1) mixed.insert(host);
  }
  if (!mixed.empty()) {
    rules.refuse("FS_HOST_MIXED", on_hosts(mixed), "a host has one device type; this one has GPUs of several");
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
      if (rank.stage == pipeline.stages.front()) in[static_cast<std::size_t>(rank.rank)] = 1;
      if (rank.stage == pipeline.stages.back()) out[static_cast<std::size_t>(rank.rank)] = 1;
    }
  }
  // Boundaries are written first to last inside a pipeline.
  for (const auto& boundary : plan.boundaries) {
    for (const auto& t : boundary.transfers) in[static_cast<std::size_t>(t.dst)] += in[static_cast<std::size_t>(t.src)];
  }
  for (auto boundary = plan.boundaries.rbegin(); boundary != plan.boundaries.rend(); ++boundary) {
    for (const auto& t : boundary->transfers) {
      out[static_cast<std::size_t>(t.src)] += out[static_cast<std::size_t>(t.dst)];
    }
  }
  std::set<int> crowded;
  for (const auto& rank : plan.ranks) {
    const auto i = static_cast<std::size_t>(rank.rank);
    if (in[i] * out[i] > kMostPathsPerRank) crowded.insert(rank.stage);
  }
  if (!crowded.empty()) {
    rules.refuse("FS_TOO_MANY_PATHS", {crowded.begin(), crowded.end()},
                 "more than 64 pipeline paths run through one rank, each of them a communicator");
  }
}

void refuse_memory_policies(Rules& rules, const std::vector<const Stage*>& stages) {
  rules.same(
      stages, [](const Stage& s) { return policy_of(s).zero; }, "FS_ZERO_VARIES",
      "the optimizer is sharded in all stages or in none");
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
  rules.none(
      stages, [](const Stage& s) { return degrees_of(s).cp > 1; }, "FS_CP", "context parallelism is not supported");
  rules.none(
      stages,
      [&](const Stage& s) {
        return plan.pipelines[static_cast<std::size_t>(s.pipeline)].microbatch % degrees_of(s).dp != 0;
      },
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
  refuse_host_order(rules, plan);
  refuse_tied_ends(rules, plan);
  refuse_memory_policies(rules, stages);
  refuse_many_paths(rules, plan);
  return std::move(rules).verdict();
}

}  // namespace tangram::plan
