#include "tangram/compose/target.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "space.hpp"
#include "tangram/parallelizer/degrees.hpp"

namespace tangram::compose {

namespace {

using cost::RecomputeMode;
using runtime::Rule;
using runtime::Runtime;

/// Of all blocks from `first` on.
parallelizer::SliceTraits traits_from(const model::Model& model, int first) {
  return parallelizer::traits_of(model, model::signature(model, first, model.block_count()));
}

/// With the groups that ZeRO shards inside, where the job wants any: those that it leaves free are not the same for all
/// stages. Runtimes divide the replicas of experts as they divide the others.
std::vector<cost::Degrees> degrees_of_shape(const model::Job& job, const cluster::DeviceShape& shape, int samples,
                                            const parallelizer::SliceTraits& traits) {
  std::vector<cost::Degrees> degrees = parallelizer::enumerate_degrees(shape, samples, traits, job.allow);
  if (job.sharding_group.kind == model::ShardingGroup::Kind::kAny) return degrees;
  degrees = parallelizer::with_sharding_groups(std::move(degrees), shape, traits, job.allow, job.sharding_group);
  std::erase_if(degrees, [](const cost::Degrees& d) { return d.edp() % d.dp_replicate != 0; });
  return degrees;
}

/// Every set of degrees that some shape of the fleet can have, and all blocks from `first` on.
std::vector<cost::Degrees> common_degrees(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                          int first = 0) {
  const auto traits = traits_from(model, first);
  std::set<cost::Degrees> found;
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    for (const cluster::IslandClass& island_class : level.classes) {
      for (const int gpus : shapes_of(island_class, gpu_count(level))) {
        const auto shape = cluster::make_shape(island_class, gpus);
        const auto samples = static_cast<int>(std::min<std::int64_t>(model.job.global_batch, 1 << 30));
        for (const cost::Degrees& d : degrees_of_shape(model.job, shape, samples, traits)) {
          if (d.tp > 1 && model.job.allow.sp && !d.sequence_parallel) continue;
          if (samples % d.dp != 0) continue;
          found.insert(d);
        }
      }
    }
  }
  // Many GPUs a stage first: few long stages are soon searched, and their plan spares much of the rest.
  std::vector<cost::Degrees> degrees(found.begin(), found.end());
  std::ranges::sort(degrees, {}, [](const cost::Degrees& d) { return std::pair(-d.gpus(), d); });
  return degrees;
}

bool spreads_experts(const model::Model& model) { return model.job.allow.ep && traits_from(model, 0).experts > 0; }

/// What is demanded of all stages, whatever the case, as far as it bears on the model: with some demands parts say
/// nothing of slices (parallelizer::are_inherited).
Constraints common_demands(const Runtime& runtime, const model::Model& model) {
  const model::Job& job = model.job;
  Constraints constraints;
  constraints.semantics = runtime.semantics;
  parallelizer::Demands& demands = constraints.demands;
  demands.sequence_parallel = runtime.has(Rule::kSequenceParallel) && job.allow.sp;
  demands.zero1 = runtime.has(Rule::kZero1) && job.allow.zero1;
  demands.alike = runtime.has(Rule::kAlikeBlocks);
  demands.equal_samples = runtime.has(Rule::kEqualSamples);
  demands.whole_modules = runtime.has(Rule::kWholeEncoders) && model::encoder_blocks(model) > 0;
  demands.power_of_two_tp = runtime.has(Rule::kPowerOfTwoTp);
  demands.whole_stage_experts = runtime.has(Rule::kExpertsOverStage) && spreads_experts(model);
  return constraints;
}

/// Numbers of model chunks that are tried.
constexpr std::array kUsualChunks{2, 3, 4, 6, 8};

bool interleaves(const Runtime& runtime, const model::Job& job) {
  return runtime.interleaved && job.allow.interleaving && job.allow.pipeline;
}

/// The same cases under interleaved 1F1B, which come last: the best plan of the others spares much of them (CutOffs),
/// and what was screened of them the rest (ScreenedSizes).
void add_interleaved(const Runtime& runtime, std::span<const Constraints> plain, std::vector<Constraints>& cases) {
  for (Constraints& constraints : cases) constraints.later_chunks.assign(kUsualChunks.begin(), kUsualChunks.end());
  for (const Constraints& constraints : plain) {
    cases.push_back(constraints);
    cases.back().semantics = *runtime.interleaved;
    cases.back().demands.alike = true;  // a policy counts blocks of each chunk
    cases.back().demands.whole_recompute = !constraints.demands.recompute;
    cases.back().chunks.assign(kUsualChunks.begin(), kUsualChunks.end());
  }
}

/// Whether exchanges of experts, if there are any, run beside passes.
bool overlaps_experts(const model::Model& model) { return model.job.overlap_experts && spreads_experts(model); }

/// Whole layers are not recomputed beside exchanges of experts: where they are, there is no expert parallelism.
void recompute_without_exchanges(const Runtime& runtime, const model::Model& model, std::vector<Constraints>& cases) {
  if (!runtime.has(Rule::kRecomputeAlone) || !overlaps_experts(model)) return;
  for (Constraints& constraints : cases) {
    if (constraints.demands.recompute == RecomputeMode::kFull) constraints.expert_parallel = false;
  }
}

/// Where exchanges of experts run beside passes: of plain 1F1B, what has no such exchanges, and single stages.
void split_overlapping(const Runtime& runtime, const model::Model& model, std::vector<Constraints>& cases) {
  if (!runtime.has(Rule::kOverlapInterleaved) || !overlaps_experts(model)) return;
  const std::size_t plain = cases.size();
  for (std::size_t i = 0; i < plain; ++i) {
    if (!cases[i].expert_parallel) continue;
    cases.push_back(cases[i]);
    cases.back().pipeline = false;
    cases[i].expert_parallel = false;
  }
}

using Types = std::set<std::string>;

/// GPU types by host, of hosts with several.
std::set<Types> mixed_hosts(const cluster::IslandHierarchy& hierarchy) {
  const cluster::IslandLevel& level = hierarchy.levels.front();
  std::map<std::size_t, Types> types;
  for (const cluster::Island& island : level.islands) {
    const std::string& name = level.classes[static_cast<std::size_t>(island.island_class)].device.name;
    for (const cluster::IslandMember& member : island.members) types[member.node].insert(name);
  }
  std::set<Types> mixed;
  for (auto& [node, on_host] : types) {
    if (on_host.size() > 1) mixed.insert(std::move(on_host));
  }
  return mixed;
}

/// The largest sets of GPU types of which no host has two; {{}}, which leaves none out, where every host has one.
std::vector<Types> types_apart(const cluster::IslandHierarchy& hierarchy) {
  const std::set<Types> mixed = mixed_hosts(hierarchy);
  if (mixed.empty()) return {Types{}};
  Types all;
  for (const cluster::IslandClass& c : hierarchy.levels.front().classes) all.insert(c.device.name);
  const auto fits = [&](const Types& chosen, const std::string& type) {
    return std::ranges::none_of(mixed, [&](const Types& host) {
      return host.contains(type) && std::ranges::any_of(chosen, [&](const std::string& c) { return host.contains(c); });
    });
  };
  // Each type first, then whatever else fits: every type is in one of the sets.
  std::set<Types> sets;
  for (const std::string& first : all) {
    Types chosen{first};
    for (const std::string& type : all) {
      if (fits(chosen, type)) chosen.insert(type);
    }
    sets.insert(std::move(chosen));
  }
  return {sets.begin(), sets.end()};
}

/// One case for each set of types that share no host.
std::vector<Types> types_of_cases(const Runtime& runtime, const cluster::IslandHierarchy& hierarchy) {
  return runtime.has(Rule::kOneTypeAHost) ? types_apart(hierarchy) : std::vector{Types{}};
}

/// One case for each tp of both ends where they have to be the same; {0}: they need not be.
std::set<int> widths_of_ends(const Runtime& runtime, const model::Model& model,
                             const cluster::IslandHierarchy& hierarchy) {
  if (!runtime.has(Rule::kSameTpAtEnds) || !model.tied_embeddings) return {0};
  std::set<int> widths;
  for (const cost::Degrees& degrees : common_degrees(model, hierarchy)) widths.insert(degrees.tp);
  return widths.empty() ? std::set{0} : widths;
}

/// One case for each set of degrees where it has to be the same for all stages; of encoders that are stages of their
/// own, the others'.
std::vector<std::optional<cost::Degrees>> degrees_of_cases(const Runtime& runtime, const model::Model& model,
                                                           const cluster::IslandHierarchy& hierarchy) {
  if (!runtime.has(Rule::kSameDegrees)) return {std::nullopt};
  const int first = runtime.has(Rule::kWholeEncoders) ? model::encoder_blocks(model) : 0;
  std::vector<std::optional<cost::Degrees>> cases;
  for (const cost::Degrees& degrees : common_degrees(model, hierarchy, first)) {
    if (runtime.has(Rule::kPowerOfTwoTp) && !std::has_single_bit(static_cast<unsigned>(degrees.tp))) continue;
    if (runtime.has(Rule::kContextKernels) && cost::repeats_heads(model, degrees)) continue;
    cases.emplace_back(degrees);
  }
  return cases;
}

std::vector<std::optional<RecomputeMode>> recompute_of_cases(const Runtime& runtime, const model::Techniques& allow) {
  if (!runtime.has(Rule::kSameRecompute)) return {std::nullopt};
  std::vector<std::optional<RecomputeMode>> modes{RecomputeMode::kNone};
  if (allow.recompute_selective) modes.emplace_back(RecomputeMode::kSelective);
  if (allow.recompute_full) modes.emplace_back(RecomputeMode::kFull);
  return modes;
}

/// Experts of a stage that are spread over all of its ranks, those of all equal pipelines: with several of these there
/// is no expert parallelism, so that it is a case of its own.
void add_cases_of_experts(Constraints constraints, std::vector<Constraints>& cases) {
  const bool experts = constraints.demands.whole_stage_experts;
  constraints.max_replicas = experts ? 1 : 0;
  cases.push_back(constraints);
  if (!experts) return;
  constraints.max_replicas = 0;
  constraints.expert_parallel = false;
  constraints.demands.whole_stage_experts = false;
  cases.push_back(std::move(constraints));
}

/// What a placement of encoders adds to the cases of a target.
std::vector<Constraints> placed(std::vector<Constraints> cases, EncoderPlacement placement) {
  for (Constraints& constraints : cases) {
    constraints.demands.whole_modules |= placement == EncoderPlacement::kDisjoint;
    constraints.demands.encoders_together |= placement == EncoderPlacement::kHomogeneous;
  }
  return cases;
}

}  // namespace

void restrict_to(const Runtime& runtime, model::Model& model) {
  model::Techniques& allow = model.job.allow;
  const auto forbid = [&](Rule rule, bool& technique) { technique = technique && !runtime.has(rule); };
  forbid(Rule::kNoMixedStages, allow.mixed_stages);
  forbid(Rule::kZero1, allow.zero2);
  forbid(Rule::kZero1, allow.zero3);
  forbid(Rule::kNoContextParallel, allow.cp);
  if (!model::context_conflict(model).empty()) forbid(Rule::kContextKernels, allow.cp);
  forbid(Rule::kNoSelectiveRecompute, allow.recompute_selective);
  if (!allow.sp) forbid(Rule::kTpOnlyWithSp, allow.tp);
  if (is_partial(model.job.cuda_graphs)) forbid(Rule::kRecomputeAlone, allow.recompute_full);
  if (overlaps_experts(model) && model::has_graphs_of_dense_layers(model)) {
    forbid(Rule::kOverlapInterleaved, allow.ep);
  }
  if (!model::recompute_conflict(model).empty()) forbid(Rule::kRecomputeAlone, allow.recompute_selective);
  if (runtime.target != Target::kGeneric) allow.interleaving = allow.interleaving && runtime.interleaved.has_value();
}

bool bears_on(Rule rule, const model::Model& model, const cluster::IslandHierarchy& hierarchy) {
  const model::Techniques& allow = model.job.allow;
  switch (rule) {
    case Rule::kSameTpAtEnds: return model.tied_embeddings;
    case Rule::kExpertsOverStage: return spreads_experts(model);
    case Rule::kOneTypeAHost: return !mixed_hosts(hierarchy).empty();
    case Rule::kNoContextParallel: return allow.cp;
    case Rule::kContextKernels:
      return allow.cp && (model.job.context_exchange == model::ContextExchange::kAllToAll ||
                          !model::context_conflict(model).empty());
    case Rule::kNoSelectiveRecompute: return allow.recompute_selective;
    case Rule::kNoMixedStages: return allow.mixed_stages && hierarchy.levels.front().classes.size() > 1;
    case Rule::kTpOnlyWithSp: return allow.tp && !allow.sp;
    case Rule::kSequenceParallel: return allow.tp && allow.sp;
    case Rule::kPowerOfTwoTp: return allow.tp;
    case Rule::kWholeEncoders: return model::encoder_blocks(model) > 0;
    case Rule::kRecomputeAlone:
      return (allow.recompute_full && (is_partial(model.job.cuda_graphs) || overlaps_experts(model))) ||
             (allow.recompute_selective && !model::recompute_conflict(model).empty());
    case Rule::kOverlapInterleaved: return overlaps_experts(model);
    case Rule::kSameRecompute: return allow.recompute_full || allow.recompute_selective;
    case Rule::kSameDegrees:
    case Rule::kAlikeBlocks:
    case Rule::kZero1:
    case Rule::kEqualSamples:
    case Rule::kBlockingTransfers:
    case Rule::kSchedule: break;
  }
  return true;
}

std::vector<Constraints> cases_of(Runtime runtime, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                                  EncoderPlacement placement) {
  if (runtime.target == Target::kGeneric && placement == EncoderPlacement::kHomogeneous) {
    runtime.rules = runtime.rules.with({Rule::kSameDegrees});
  }
  std::vector<Constraints> cases;
  Constraints constraints = common_demands(runtime, model);
  for (const Types& types : types_of_cases(runtime, hierarchy)) {
    constraints.gpu_types.assign(types.begin(), types.end());
    for (const int tp : widths_of_ends(runtime, model, hierarchy)) {
      constraints.demands.tp_at_ends = tp;
      for (const auto& degrees : degrees_of_cases(runtime, model, hierarchy)) {
        constraints.demands.degrees = degrees;
        for (const auto mode : recompute_of_cases(runtime, model.job.allow)) {
          constraints.demands.recompute = mode;
          add_cases_of_experts(constraints, cases);
        }
      }
    }
  }
  recompute_without_exchanges(runtime, model, cases);
  const std::vector<Constraints> plain = cases;
  split_overlapping(runtime, model, cases);
  if (interleaves(runtime, model.job)) add_interleaved(runtime, plain, cases);
  return placed(std::move(cases), placement);
}

}  // namespace tangram::compose
