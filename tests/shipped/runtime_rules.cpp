#include "shipped/runtime_rules.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tangram/plan/assemble.hpp"

namespace tangram::shipped {
namespace {

using runtime::Rule;

/// Largest first, into bins with so much room each; the bins are left with what remains.
bool pack(const std::vector<int>& sizes, std::size_t next, std::vector<int>& bins) {
  if (next == sizes.size()) return true;
  std::vector<int> seen;  // bins with equal room are alike
  for (int& room : bins) {
    if (room < sizes[next] || std::ranges::find(seen, room) != seen.end()) continue;
    seen.push_back(room);
    room -= sizes[next];
    if (pack(sizes, next + 1, bins)) return true;
    room += sizes[next];
  }
  return false;
}

bool pack(std::vector<int> sizes, std::vector<int>& bins) {
  std::ranges::sort(sizes, std::greater<>());
  return pack(sizes, 0, bins);
}

/// Shapes of at least a member take whole ones, of one island where that has enough; smaller ones share members.
bool fits_class(const std::vector<int>& gpus, const cluster::IslandClass& its_class) {
  const int island = its_class.gpus_per_member * its_class.members_per_island;
  std::vector<int> inside_members;
  std::vector<int> inside_islands;
  auto islands = static_cast<int>(its_class.islands.size());
  for (const int size : gpus) {
    if (size > island)
      islands -= (size + island - 1) / island;
    else if (size >= its_class.gpus_per_member)
      inside_islands.push_back(size / its_class.gpus_per_member);
    else
      inside_members.push_back(size);
  }
  if (islands < 0) return false;
  std::vector<int> members(static_cast<std::size_t>(islands), its_class.members_per_island);
  if (!pack(std::move(inside_islands), members)) return false;
  int left = 0;
  for (const int count : members) left += count;
  std::vector<int> rooms(static_cast<std::size_t>(left), its_class.gpus_per_member);
  return pack(std::move(inside_members), rooms);
}

/// GPUs of what lies together in one pipeline, by class: a part, or parts that share a member.
std::map<int, std::vector<int>> gpus_by_class(const compose::Composition& plan) {
  std::map<int, std::vector<int>> gpus;
  std::map<std::pair<int, int>, int> shared;
  for (const compose::StageChoice& stage : plan.stages) {
    for (const compose::PartChoice& part : stage.parts) {
      if (part.member == compose::PartChoice::kAnyMember)
        gpus[part.island_class].push_back(part.gpus);
      else
        shared[{part.island_class, part.member}] += part.gpus;
    }
  }
  for (const auto& [key, sum] : shared) gpus[key.first].push_back(sum);
  return gpus;
}

}  // namespace

// Sequence parallelism with tp and ZeRO-1 are demanded of each stage. A mesh's boundaries hand over sequence slices, so
// that there is no tp without sequence parallelism; its experts are spread over all ranks of a stage, those of all
// equal pipelines, so that several of these have no expert parallelism.
model::Model model_for(runtime::Target target, model::Model model, int replicas) {
  const runtime::Runtime& row = runtime::runtime_of(target);
  model::Techniques& allow = model.job.allow;
  if (row.rules.empty()) return model;
  allow.mixed_stages = allow.zero2 = allow.zero3 = false;
  allow.cp = allow.cp && !row.has(Rule::kNoContextParallel);
  allow.recompute_selective = allow.recompute_selective && !row.has(Rule::kNoSelectiveRecompute);
  if (!row.has(Rule::kSameDegrees)) {
    allow.tp = allow.tp && allow.sp;
    allow.ep = allow.ep && replicas == 1;
  }
  return model;
}

parallelizer::Demands demands_near(runtime::Target target, const compose::Composition& plan,
                                   const model::Model& model) {
  parallelizer::Demands demands;
  const runtime::Runtime& row = runtime::runtime_of(target);
  if (row.rules.empty()) return demands;
  demands.sequence_parallel = model.job.allow.sp;
  demands.zero1 = model.job.allow.zero1;
  demands.alike = demands.equal_samples = true;
  if (!row.has(Rule::kSameDegrees)) {
    demands.whole_stage_experts = true;
    if (model.tied_embeddings) demands.tp_at_ends = plan.stages.front().parts.front().plan.strategy.degrees.tp;
    return demands;
  }
  // Of stages without experts expert degrees say nothing: those of one with experts hold.
  demands.recompute = plan.stages.front().parts.front().plan.strategy.policy.recompute;
  for (const compose::StageChoice& stage : plan.stages) {
    const cost::Degrees& own = stage.parts.front().plan.strategy.degrees;
    if (!demands.degrees || own.ep * own.etp > demands.degrees->ep * demands.degrees->etp) demands.degrees = own;
  }
  return demands;
}

bool is_placeable(const compose::Composition& plan, const cluster::IslandLevel& level) {
  return std::ranges::all_of(gpus_by_class(plan), [&](const auto& entry) {
    std::vector<int> all;
    for (int replica = 0; replica < plan.replicas; ++replica) {
      all.insert(all.end(), entry.second.begin(), entry.second.end());
    }
    return fits_class(all, level.classes[static_cast<std::size_t>(entry.first)]);
  });
}

bool is_runnable(runtime::Target target, const compose::Composition& plan, const cluster::Fleet& fleet,
                 const cluster::IslandLevel& level, const model::Model& model) {
  if (!is_placeable(plan, level)) return false;
  plan::LaunchPlan placed = plan::assemble(plan, fleet, level, model);
  placed.runtime = target;
  return std::ranges::any_of(plan::target_verdicts(placed), [&](const plan::TargetVerdict& verdict) {
    return verdict.target == runtime::to_string(target) && verdict.ok;
  });
}

}  // namespace tangram::shipped
