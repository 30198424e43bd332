// Who runs what, and where: islands, hosts, GPUs, ranks, coordinates.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "findings.hpp"

namespace tangram::plan {

namespace {

using Gpu = std::pair<std::string, int>;  // host, number on the host

std::string name_of(const Gpu& gpu) { return "GPU " + std::to_string(gpu.second) + " of " + gpu.first; }

/// Which island each GPU of the plan belongs to.
std::map<Gpu, int> island_gpus(const LaunchPlan& plan, Findings& findings) {
  std::map<Gpu, int> owner;
  for (const auto& island : plan.islands) {
    for (const auto& node : island.nodes) {
      for (const int number : node.gpus) {
        const Gpu gpu{node.host, number};
        const auto [entry, fresh] = owner.emplace(gpu, island.id);
        if (!fresh) {
          findings.add("islands-overlap", at_island(island.id),
                       name_of(gpu) + " is also in island " + std::to_string(entry->second));
        }
      }
    }
  }
  return owner;
}

void check_placement(const LaunchPlan& plan, Findings& findings) {
  const auto owner = island_gpus(plan, findings);
  std::map<Gpu, int> taken;
  for (const auto& rank : plan.ranks) {
    const Gpu gpu{rank.host, rank.gpu};
    const auto found = owner.find(gpu);
    if (found == owner.end() || found->second != rank.island) {
      findings.add("gpu-not-in-island", at_rank(rank.rank),
                   name_of(gpu) + " is not listed in island " + std::to_string(rank.island));
    }
    const auto [entry, fresh] = taken.emplace(gpu, rank.rank);
    if (!fresh) {
      findings.add("gpu-shared", at_rank(rank.rank),
                   name_of(gpu) + " already runs rank " + std::to_string(entry->second));
    }
  }
  for (const auto& [gpu, island] : owner) {
    if (!taken.contains(gpu))
      findings.add("gpu-unused", at_island(island), name_of(gpu) + " is listed but runs no rank");
  }
}

void check_local_ranks(const LaunchPlan& plan, Findings& findings) {
  std::map<std::string, std::vector<const Rank*>> hosts;
  for (const auto& rank : plan.ranks) hosts[rank.host].push_back(&rank);
  for (auto& [host, ranks] : hosts) {
    std::ranges::sort(ranks, {}, [](const Rank* rank) { return std::pair(rank->gpu, rank->rank); });
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i]->local_rank != static_cast<int>(i)) {
        findings.add("local-rank", at_rank(ranks[i]->rank),
                     "must be " + std::to_string(i) + " on " + host + ", counting the host's ranks by GPU");
      }
    }
  }
}

// Parts claim ranks one after another, pipeline by pipeline, without gap or overlap.
void check_order(const LaunchPlan& plan, Findings& findings) {
  std::int64_t next = 0;
  for (const auto& pipeline : plan.pipelines) {
    for (const int id : pipeline.stages) {
      const auto& parts = plan.stage(id).parts;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].first_rank < next) {
          findings.add("ranks-overlap", at_part(id, p),
                       "begins at rank " + std::to_string(parts[p].first_rank) + ", which another part has");
        } else if (parts[p].first_rank > next) {
          findings.add(
              "ranks-gap", at_part(id, p),
              "begins at rank " + std::to_string(parts[p].first_rank) + ", rank " + std::to_string(next) + " is next");
        }
        next = std::int64_t{parts[p].first_rank} + parts[p].strategy.degrees.gpus();
      }
    }
  }
  if (next != static_cast<std::int64_t>(plan.ranks.size())) {
    findings.add("ranks-gap", "plan",
                 "stages use " + std::to_string(next) + " ranks, the plan lists " + std::to_string(plan.ranks.size()));
  }
}

/// Position of a rank in a grid whose first degree is the fastest.
int position(int fast, int fast_degree, int middle, int middle_degree, int slow) {
  return fast + fast_degree * (middle + middle_degree * slow);
}

void check_coordinates(const Rank& rank, int index, const cost::Degrees& d, Findings& findings) {
  const bool inside =
      rank.tp >= 0 && rank.tp < d.tp && rank.cp >= 0 && rank.cp < d.cp && rank.dp >= 0 && rank.dp < d.dp;
  if (!inside || position(rank.tp, d.tp, rank.cp, d.cp, rank.dp) != index) {
    findings.add("rank-coordinates", at_rank(rank.rank), "tp, cp and dp do not give its place in the stage");
  }
  if (d.gpus() % (std::int64_t{d.ep} * d.etp) != 0) return;  // reported with the degrees
  const bool expert_inside =
      rank.etp >= 0 && rank.etp < d.etp && rank.ep >= 0 && rank.ep < d.ep && rank.edp >= 0 && rank.edp < d.edp();
  if (!expert_inside || position(rank.etp, d.etp, rank.ep, d.ep, rank.edp) != index) {
    findings.add("rank-coordinates", at_rank(rank.rank), "etp, ep and edp do not give its place in the stage");
  }
}

void check_part_ranks(const LaunchPlan& plan, const Stage& stage, std::size_t p, Findings& findings) {
  const Part& part = stage.parts[p];
  const std::string& island_class = plan.island(part.island).island_class;
  const int gpus = part.strategy.degrees.gpus();
  for (int i = 0; i < gpus; ++i) {
    const Rank& rank = plan.rank(part, i);
    if (rank.stage != stage.id || rank.part != static_cast<int>(p) || rank.replica != stage.pipeline) {
      findings.add("rank-placement", at_rank(rank.rank),
                   "is in the range of " + at_part(stage.id, p) + " but says otherwise");
    }
    if (plan.island(rank.island).island_class != island_class) {
      findings.add("rank-island", at_rank(rank.rank), "is not on an island like that of " + at_part(stage.id, p));
    }
    check_coordinates(rank, i, part.strategy.degrees, findings);
  }
  if (plan.rank(part, 0).island != part.island) {
    findings.add("rank-island", at_part(stage.id, p), "its first rank is on another island");
  }
}

// A shape is a part of one member, or whole members; the GPUs of a member share a host.
void check_shape(const LaunchPlan& plan, const Stage& stage, std::size_t p, Findings& findings) {
  const Part& part = stage.parts[p];
  const int gpus = part.strategy.degrees.gpus();
  const int member = plan.island(part.island).gpus_per_member;
  const bool inside = part.members == 1 && gpus <= member;
  const bool whole = part.members > 1 && gpus == std::int64_t{part.members} * member;
  if (!inside && !whole) {
    findings.add("shape-invalid", at_part(stage.id, p),
                 std::to_string(gpus) + " GPUs in " + std::to_string(part.members) + " members of " +
                     std::to_string(member) + " are no shape");
    return;
  }
  const int per_member = gpus / part.members;
  for (int i = 0; i < gpus; ++i) {
    const Rank& rank = plan.rank(part, i);
    const Rank& lead = plan.rank(part, i / per_member * per_member);
    if (rank.host != lead.host) {
      findings.add("member-split", at_rank(rank.rank),
                   "is on " + rank.host + ", the rest of its member on " + lead.host);
    }
  }
}

void check_idle(const LaunchPlan& plan, Findings& findings) {
  std::int64_t total = static_cast<std::int64_t>(plan.ranks.size());
  for (const auto& idle : plan.idle) total += idle.gpus;
  if (total != plan.fleet_gpus) {
    findings.add("idle-count", "plan",
                 "used and idle GPUs are " + std::to_string(total) + " together, the fleet has " +
                     std::to_string(plan.fleet_gpus));
  }
}

}  // namespace

void check_ranks(const LaunchPlan& plan, Findings& findings) {
  check_placement(plan, findings);
  check_local_ranks(plan, findings);
  check_order(plan, findings);
  for (const auto& stage : plan.stages) {
    for (std::size_t p = 0; p < stage.parts.size(); ++p) {
      check_part_ranks(plan, stage, p, findings);
      check_shape(plan, stage, p, findings);
    }
  }
  check_idle(plan, findings);
}

}  // namespace tangram::plan
