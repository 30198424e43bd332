#include "tangram/compose/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "colocated_search.hpp"
#include "search_slices.hpp"
#include "space.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/parallelizer/degrees.hpp"
#include "tangram/relax/state_memory.hpp"
#include "target_cases.hpp"

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

/// What is demanded of all stages, whatever the case.
Constraints common_demands(const Runtime& runtime, const model::Job& job) {
  Constraints constraints;
  constraints.semantics = runtime.semantics;
  parallelizer::Demands& demands = constraints.demands;
  demands.sequence_parallel = runtime.has(Rule::kSequenceParallel) && job.allow.sp;
  demands.zero1 = runtime.has(Rule::kZero1) && job.allow.zero1;
  demands.alike = runtime.has(Rule::kAlikeBlocks);
  demands.equal_samples = runtime.has(Rule::kEqualSamples);
  demands.whole_modules = runtime.has(Rule::kWholeEncoders);
  demands.power_of_two_tp = runtime.has(Rule::kPowerOfTwoTp);
  demands.whole_stage_experts = runtime.has(Rule::kExpertsOverStage);
  return constraints;
}

/// Numbers of model chunks that are tried.
constexpr std::array kUsualChunks{2, 3, 4, 6, 8};

/// The same cases under interleaved 1F1B, which come last: the best plan of the others spares much of them (CutOffs).
void add_interleaved(const Runtime& runtime, const model::Job& job, std::span<const Constraints> plain,
                     std::vector<Constraints>& cases) {
  if (!runtime.interleaved || !job.allow.interleaving || !job.allow.pipeline) return;
  for (const Constraints& constraints : plain) {
    cases.push_back(constraints);
    cases.back().semantics = *runtime.interleaved;
    cases.back().demands.alike = true;  // a policy counts blocks of each chunk
    cases.back().demands.whole_recompute = !constraints.demands.recompute;
    cases.back().chunks.assign(kUsualChunks.begin(), kUsualChunks.end());
  }
}

/// Whether exchanges of experts, if there are any, run beside passes.
bool overlaps_experts(const model::Model& model) {
  return model.job.overlap_experts && model.job.allow.ep && traits_from(model, 0).experts > 0;
}

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
void add_cases_of_experts(const Runtime& runtime, const model::Model& model, Constraints constraints,
                          std::vector<Constraints>& cases) {
  const bool experts = runtime.has(Rule::kExpertsOverStage) && model.job.allow.ep && traits_from(model, 0).experts > 0;
  constraints.max_replicas = experts ? 1 : 0;
  cases.push_back(constraints);
  if (!experts) return;
  constraints.max_replicas = 0;
  constraints.expert_parallel = false;
  cases.push_back(std::move(constraints));
}

/// Whether hosts have GPU types beside the one that the runtime uses of them.
bool leaves_types_idle(const Runtime& runtime, const cluster::IslandHierarchy& hierarchy) {
  return runtime.has(Rule::kOneTypeAHost) && !mixed_hosts(hierarchy).empty();
}

void explain_idle_types(const Runtime& runtime, Diagnostics& infeasible) {
  for (Diagnostic& d : infeasible) {
    d.hint = fmt::format(
        "{} uses one GPU type of a host, and hosts of this fleet have several: --target megatron uses all of them; or "
        "{}",
        runtime.title, d.hint);
  }
}

bool is_near(const std::optional<cost::Degrees>& degrees, const std::vector<cost::Degrees>& wanted) {
  return wanted.empty() || !degrees || std::ranges::any_of(wanted, [&](const cost::Degrees& other) {
           return other.tp == degrees->tp && other.gpus() == degrees->gpus();
         });
}

std::string chunk_rule() {
  return fmt::format("interleaved: {} model chunks a stage, blocks that are unlike the rest in the first or last chunk",
                     fmt::join(kUsualChunks, ", "));
}

/// Where a schedule is wanted that the job's techniques leave out.
Diagnostics nothing_to_search() {
  return {problem(ErrorKind::kInfeasible, "schedule-forbidden",
                  "the wanted schedule, or the wanted GPU types and degrees, are not among what the job allows",
                  "allow the techniques interleaving and pipeline, or take --schedule any")};
}

/// What a placement of encoders adds to the cases of a target.
std::vector<Constraints> placed(std::vector<Constraints> cases, EncoderPlacement placement) {
  for (Constraints& constraints : cases) {
    constraints.demands.whole_modules |= placement == EncoderPlacement::kDisjoint;
    constraints.demands.encoders_together |= placement == EncoderPlacement::kHomogeneous;
  }
  return cases;
}

std::string placement_rule(EncoderPlacement placement) {
  return placement == EncoderPlacement::kHomogeneous
             ? "placement homogeneous: one set of degrees for all stages, the first has all encoders"
             : "placement disjoint: each encoder is one stage, without other blocks";
}

bool has_schedule(const Constraints& constraints, std::optional<runtime::Schedule> wanted) {
  const bool interleaved = std::ranges::max(constraints.chunks) > 1;
  return !wanted || interleaved == (*wanted == runtime::Schedule::kInterleaved);
}

/// Of no runtime in particular interleaved chunks are searched only where they are asked for: it takes many times as
/// long.
std::optional<runtime::Schedule> schedule_of(Target target, const SearchOptions& options) {
  if (options.schedule || target != Target::kGeneric) return options.schedule;
  return runtime::Schedule::k1F1B;
}

/// What plans of the next case must be faster than. The cases without chunks come first, and their best by closed form
/// cuts those that follow. Closed forms of interleaved plans may be above what these take where those of plain ones are
/// not: the best plain one cuts them by what it takes pass by pass, and as far above that as timetables are looked at.
class CutOffs {
 public:
  explicit CutOffs(const SearchOptions& options)
      : given_(options.incumbent), accepted_gap_(options.accepted_gap), reach_(options.tuning.solver.timetable_reach) {}

  void note(const SearchResult& found, bool interleaved) {
    if (!found.best.empty()) {
      Nanoseconds& best = interleaved ? interleaved_ : plain_;
      best = std::min(best, of_interest(found.best.front().closed_form));
    }
    if (!found.timed.empty()) fastest_ = std::min(fastest_, found.timed.front().time);
  }

  /// By closed form. Without labels no other schedule is looked at any further.
  [[nodiscard]] Nanoseconds next(bool interleaved, bool has_labels) const {
    const Nanoseconds best = std::min(plain_, interleaved_);
    if (!interleaved || !has_labels || fastest_ == Nanoseconds::max()) return std::min(given_, best);
    const Nanoseconds near(static_cast<std::int64_t>((1 + reach_) * fastest_.as_double()));
    return std::min({given_, interleaved_, std::max(best, near)});
  }

 private:
  [[nodiscard]] Nanoseconds of_interest(Nanoseconds time) const {
    return Nanoseconds(chain::of_interest(time.value(), accepted_gap_));
  }

  Nanoseconds given_;
  double accepted_gap_;
  double reach_;
  Nanoseconds plain_ = Nanoseconds::max();
  Nanoseconds interleaved_ = Nanoseconds::max();
  Nanoseconds fastest_ = Nanoseconds::max();  // pass by pass
};

/// What a case says of the plans it did not find. Without a plan of its own it is either through, and has none that is
/// better than the incumbent, or out of budget.
Nanoseconds bound_of(const SearchResult& found) {
  if (!found.best.empty()) return found.search_bound;
  return found.is_out_of_budget() ? found.search_bound : Nanoseconds::max();
}

/// Leaves of the types of a case those that are wanted; none named: all. False: there are none.
bool keep_wanted(const Types& wanted, std::vector<std::string>& of_case) {
  if (wanted.empty()) return true;
  if (of_case.empty()) of_case.assign(wanted.begin(), wanted.end());
  std::erase_if(of_case, [&](const std::string& type) { return !wanted.contains(type); });
  return !of_case.empty();
}

/// Whether a case has techniques that the one before it had not: no bound of that one holds for it.
bool allows_more(const Constraints& constraints, const Constraints& before) {
  return (constraints.expert_parallel && !before.expert_parallel) || (constraints.pipeline && !before.pipeline);
}

void merge(SearchResult found, int top, SearchResult& all) {
  for (Composition& composition : found.best) all.best.push_back(std::move(composition));
  keep_best(all.best, top);
  std::ranges::move(found.timed, std::back_inserter(all.timed));
  keep_fastest(all.timed, top);
  all.add_effort_of(found);
  for (std::size_t i = 0; i < all.levels.size(); ++i) {
    all.levels[i].best = std::min(all.levels[i].best, found.levels[i].best);
    all.levels[i].bound = std::min(all.levels[i].bound, found.levels[i].bound);
  }
}

}  // namespace

void restrict_to(const Runtime& runtime, model::Model& model) {
  model::Techniques& allow = model.job.allow;
  const auto forbid = [&](Rule rule, bool& technique) { technique = technique && !runtime.has(rule); };
  forbid(Rule::kNoMixedStages, allow.mixed_stages);
  forbid(Rule::kZero1, allow.zero2);
  forbid(Rule::kZero1, allow.zero3);
  forbid(Rule::kNoContextParallel, allow.cp);
  forbid(Rule::kNoSelectiveRecompute, allow.recompute_selective);
  if (!allow.sp) forbid(Rule::kTpOnlyWithSp, allow.tp);
  if (model.job.cuda_graphs == model::CudaGraphs::kBlocks) forbid(Rule::kRecomputeAlone, allow.recompute_full);
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
    case Rule::kExpertsOverStage: return allow.ep && traits_from(model, 0).experts > 0;
    case Rule::kOneTypeAHost: return !mixed_hosts(hierarchy).empty();
    case Rule::kNoContextParallel: return allow.cp;
    case Rule::kNoSelectiveRecompute: return allow.recompute_selective;
    case Rule::kNoMixedStages: return allow.mixed_stages && hierarchy.levels.front().classes.size() > 1;
    case Rule::kTpOnlyWithSp: return allow.tp && !allow.sp;
    case Rule::kSequenceParallel: return allow.tp && allow.sp;
    case Rule::kPowerOfTwoTp: return allow.tp;
    case Rule::kWholeEncoders: return model::encoder_blocks(model) > 0;
    case Rule::kRecomputeAlone:
      return (allow.recompute_full &&
              (model.job.cuda_graphs == model::CudaGraphs::kBlocks || overlaps_experts(model))) ||
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
  Constraints constraints = common_demands(runtime, model.job);
  for (const Types& types : types_of_cases(runtime, hierarchy)) {
    constraints.gpu_types.assign(types.begin(), types.end());
    for (const int tp : widths_of_ends(runtime, model, hierarchy)) {
      constraints.demands.tp_at_ends = tp;
      for (const auto& degrees : degrees_of_cases(runtime, model, hierarchy)) {
        constraints.demands.degrees = degrees;
        for (const auto mode : recompute_of_cases(runtime, model.job.allow)) {
          constraints.demands.recompute = mode;
          add_cases_of_experts(runtime, model, constraints, cases);
        }
      }
    }
  }
  recompute_without_exchanges(runtime, model, cases);
  const std::vector<Constraints> plain = cases;
  split_overlapping(runtime, model, cases);
  add_interleaved(runtime, model.job, plain, cases);
  return placed(std::move(cases), placement);
}

SearchResult search_cases(Target target, const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                          std::span<const parallelizer::Parallelizer* const> parallelizers, SearchOptions options,
                          const ProgressCallback& progress) {
  const EncoderPlacement placement = options.placement;
  const Runtime& row = runtime::runtime_of(target);
  const Runtime runtime = options.lifted ? row.without(*options.lifted) : row;
  const std::optional<runtime::Schedule> schedule = schedule_of(target, options);
  const bool puts_off = schedule == runtime::Schedule::kZeroBubble;
  if (target == Target::kGeneric && placement == EncoderPlacement::kAny && schedule == runtime::Schedule::k1F1B) {
    return search(model, hierarchy, parallelizers, options, progress);
  }
  if (placement == EncoderPlacement::kColocated) {
    return search_colocated(model, hierarchy, parallelizers, options, progress);
  }
  model::Model restricted = model;
  restrict_to(runtime, restricted);
  if (placement == EncoderPlacement::kHomogeneous) restricted.job.allow.mixed_stages = false;
  const SignatureTable signatures = signatures_of(restricted, options);
  model::Model model_of_case = restricted;
  SearchResult all;
  Nanoseconds open = Nanoseconds::max();
  const std::int64_t budget = options.label_budget;
  const int most_replicas = options.max_replicas;
  bool first = true;
  const bool is_bound_given = options.relaxed_bound.has_value();
  CutOffs cut_offs(options);
  int chunks = 1;     // that the relaxed bound counts on
  Bytes most_usable;  // of the cases so far: what the roomiest of them lacks is what is missing
  const Types types(options.constraints.gpu_types.begin(), options.constraints.gpu_types.end());
  for (Constraints constraints : cases_of(runtime, restricted, hierarchy, placement)) {
    if (!keep_wanted(types, constraints.gpu_types) || !is_near(constraints.demands.degrees, options.near_degrees) ||
        !has_schedule(constraints, schedule))
      continue;
    constraints.put_off = puts_off;
    if (!first && options.deadline.has_passed()) {  // nothing is known of the other cases
      open = Nanoseconds(0);
      for (LevelReport& level : all.levels) level.bound = Nanoseconds(0);
      if (all.best.empty()) all.infeasible = out_of_time(options.deadline);
      break;
    }
    model::Techniques& allow = model_of_case.job.allow;
    allow = restricted.job.allow;
    allow.ep = allow.ep && constraints.expert_parallel;
    allow.pipeline = allow.pipeline && constraints.pipeline;
    options.max_replicas =
        constraints.max_replicas > 0 ? std::min(most_replicas, constraints.max_replicas) : most_replicas;
    const int most_chunks = std::ranges::max(constraints.chunks);
    const bool is_wider = most_chunks != chunks || allows_more(constraints, options.constraints);
    if (is_wider && !is_bound_given) options.relaxed_bound.reset();
    chunks = most_chunks;
    options.constraints = std::move(constraints);
    options.label_budget = std::max<std::int64_t>(1, budget - all.statistics.labels);
    const bool is_interleaved = most_chunks > 1;
    options.incumbent = cut_offs.next(is_interleaved, all.statistics.labels < budget);
    SearchResult found = search_slices(model_of_case, hierarchy, parallelizers, options, signatures, progress);
    cut_offs.note(found, is_interleaved);
    open = std::min(open, bound_of(found));
    const Bytes usable = relax::usable_memory(hierarchy.levels.front(), options.constraints.gpu_types);
    if (first || usable > most_usable) {
      all.infeasible = found.infeasible;
      most_usable = usable;
    }
    if (first) {
      all.space = found.space;
      all.relaxed_bound = found.relaxed_bound;
      all.levels = found.levels;
      first = false;
    }
    all.relaxed_bound = std::min(all.relaxed_bound, found.relaxed_bound);
    options.relaxed_bound = found.relaxed_bound;
    merge(std::move(found), options.top, all);
  }
  if (first) all.infeasible = nothing_to_search();
  if (target != Target::kGeneric) all.space.rules.emplace_back(runtime.in_words);
  if (options.lifted) all.space.rules.push_back(fmt::format("without the rule: {}", in_words(*options.lifted)));
  if (placement != EncoderPlacement::kAny) all.space.rules.push_back(placement_rule(placement));
  if (chunks > 1) all.space.rules.push_back(chunk_rule());
  if (options.schedule) all.space.rules.push_back(fmt::format("schedule: {}", to_string(*options.schedule)));
  if (all.best.empty()) {
    if (leaves_types_idle(runtime, hierarchy)) explain_idle_types(runtime, all.infeasible);
    return all;
  }
  const Nanoseconds best = all.best.front().closed_form;
  const Nanoseconds wanted(chain::of_interest(best.value(), options.accepted_gap));
  all.finished = open >= wanted;
  all.search_bound = std::min(best, std::max(std::min(open, wanted), all.relaxed_bound));
  all.optimal = all.search_bound == best;
  return all;
}

}  // namespace tangram::compose
