#include "tangram/planner/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "neighbours.hpp"
#include "prediction.hpp"
#include "rule_costs.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/compose/target.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/evolve/variants.hpp"
#include "tangram/model/split.hpp"
#include "tangram/parallelizer/degrees.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::planner {

namespace {

constexpr double kMore = 1.1;                 // what one thing is made faster or larger by
constexpr std::size_t kAlternatives = 3;      // strategies of a stage that are simulated
constexpr int kCandidates = 8;                // plans among which the next best is looked for
constexpr std::size_t kExplainedStages = 16;  // of the first pipeline; later stages are like these

/// Of the job (model::Job), as its file has it.
struct JobOption {
  std::string_view key;
  std::string_view value;
  void (*set)(model::Job&);
};
/// Those that a job may have instead of its own.
auto job_options() {
  using model::AttentionKernel;
  using model::ContextExchange;
  using model::ExpertDispatch;
  return std::array{
      JobOption{"attention_kernel", to_string(AttentionKernel::kNative),
                [](model::Job& j) { j.attention_kernel = AttentionKernel::kNative; }},
      JobOption{"fused_kernels", "true", [](model::Job& j) { j.fused_kernels = true; }},
      JobOption{"cuda_graphs", "blocks", [](model::Job& j) { j.cuda_graphs = model::kGraphsOfBlocks; }},
      JobOption{"cuda_graphs", "step", [](model::Job& j) { j.cuda_graphs = model::kGraphOfStep; }},
      JobOption{"expert_dispatch", to_string(ExpertDispatch::kDeepEp),
                [](model::Job& j) { j.expert_dispatch = ExpertDispatch::kDeepEp; }},
      JobOption{"context_exchange", to_string(ContextExchange::kRing),
                [](model::Job& j) { j.context_exchange = ContextExchange::kRing; }},
      JobOption{"context_exchange", to_string(ContextExchange::kAllGather),
                [](model::Job& j) { j.context_exchange = ContextExchange::kAllGather; }},
      JobOption{"context_exchange", to_string(ContextExchange::kAllToAll),
                [](model::Job& j) { j.context_exchange = ContextExchange::kAllToAll; }},
      JobOption{"overlap_expert_communication", "true", [](model::Job& j) { j.overlap_experts = true; }},
      JobOption{"overlap_parameter_gather", "true", [](model::Job& j) { j.overlap_gather = true; }},
      JobOption{"overlap_tp_communication", "true", [](model::Job& j) { j.overlap_tp = true; }},
      JobOption{"narrow_parameters", "true", [](model::Job& j) { j.narrow_parameters = true; }},
      JobOption{"transpose_cache", "false",
                [](model::Job& j) { j.transpose_cache = !model::has_transposable_weights(j); }},
      JobOption{"precision_aware", "true", [](model::Job& j) { model::make_precision_aware(j); }},
  };
}

class Explainer {
 public:
  Explainer(const plan::LaunchPlan& plan, const cluster::Fleet& fleet, const PlanOptions& options,
            const compose::ProgressCallback& progress)
      : plan_(plan), fleet_(fleet), options_(options), progress_(progress) {
    options_.search.schedule = schedule_for(plan, options);
    options_.target = target_for(plan, options);
    options_.look_at_runtimes = false;
  }

  Expected<Explanation> run() {
    if (plan_.colocated) return run_colocated();
    evolve::Refit now = evolve::refit(plan_, fleet_, plan_.model, refit_options());
    plan::LaunchPlan* const plan = now.fitting();
    if (plan == nullptr) return fail(plan_does_not_fit(now));
    if (const auto refused = reasons_against(*plan, options_.target); !refused.empty()) {
      return fail(refusal(refused.front()));
    }
    price_for(options_.target, *plan);
    if (auto done = predict(*plan, fleet_, {}); !done) return fail(std::move(done.error()));
    result_.iteration = plan->predicted.iteration;
    note_memory(*plan);
    find_limits();
    try_cuts();
    try_degrees(*plan);
    try_options();
    try_rules(*plan);
    try_placements();
    plan_others();
    result_.time_limit = options_.search.deadline.missed_seconds();
    return std::move(result_);
  }

 private:
  Expected<Explanation> run_colocated() {
    const plan::CheckReport judged = plan::check(plan_, fleet_, nullptr);
    if (!judged.ok()) return fail(colocated_does_not_fit(judged));
    if (const auto refused = reasons_against(plan_, options_.target); !refused.empty()) {
      return fail(refusal(refused.front()));
    }
    options_.search.placement = compose::EncoderPlacement::kColocated;
    result_.iteration = plan_.predicted.iteration;
    note_memory(plan_);
    try_placements();
    plan_others();
    result_.time_limit = options_.search.deadline.missed_seconds();
    return std::move(result_);
  }

  [[nodiscard]] evolve::RefitOptions refit_options() const {
    return {options_.island_tolerance, options_.search.profiles};
  }

  static Diagnostics colocated_does_not_fit(const plan::CheckReport& judged) {
    const plan::Violation& first = judged.violations.front();
    return {problem(ErrorKind::kInfeasible, "plan-does-not-fit",
                    fmt::format("the plan does not fit the fleet: {}: {}", first.where, first.message),
                    "give the fleet that the plan was made for, or plan anew with plan --placement colocated")};
  }

  static Diagnostics plan_does_not_fit(const evolve::Refit& refit) {
    return {problem(ErrorKind::kInfeasible, "plan-does-not-fit",
                    refit.gone.empty()
                        ? fmt::format("the plan does not fit the fleet: {}", refit.incompatibilities.front().text)
                        : fmt::format("the fleet has no GPU {} of {}, which the plan uses", refit.gone.front().second,
                                      refit.gone.front().first),
                    "give the fleet that the plan was made for, or plan anew with plan --against")};
  }

  [[nodiscard]] Diagnostics refusal(const plan::TargetReason& reason) const {
    return {problem(ErrorKind::kInfeasible, reason.code,
                    fmt::format("{} cannot run this plan, which breaks the rule {}: {}", to_string(options_.target),
                                reason.code, reason.text),
                    "leave --target out, or name the runtime that the plan was made for")};
  }

  void report_phase(const std::string& phase) const {
    compose::Progress progress;
    progress.phase = phase;
    if (progress_) progress_(progress);
  }

  /// The variant on a fleet, simulated.
  [[nodiscard]] Alternative priced(Alternative changed, const plan::LaunchPlan& variant,
                                   const cluster::Fleet& fleet) const {
    evolve::Refit refit = evolve::refit(variant, fleet, variant.model, refit_options());
    plan::LaunchPlan* const plan = refit.fitting();
    if (plan == nullptr) {
      changed.why_not = refit.incompatibilities.empty() ? "GPUs are gone" : reason_of(refit.incompatibilities.front());
    } else if (const auto refused = reasons_against(*plan, options_.target); !refused.empty()) {
      changed.why_not = refused.front().text;
    } else {
      price_for(options_.target, *plan);
      if (!predict(*plan, fleet, {})) changed.why_not = "its schedule cannot finish";
      if (changed.why_not.empty()) changed.iteration = plan->predicted.iteration;
    }
    return changed;
  }

  static Nanoseconds time_of(const Alternative& a) { return a.iteration.value_or(Nanoseconds::max()); }

  /// Parts are named where a stage has several.
  [[nodiscard]] std::string reason_of(const evolve::Incompatibility& incompatibility) const {
    const bool mixed = std::ranges::any_of(plan_.stages, [](const plan::Stage& s) { return s.parts.size() > 1; });
    const std::string where =
        mixed ? incompatibility.where : incompatibility.where.substr(0, incompatibility.where.find(" part"));
    if (incompatibility.code == "memory-exceeded") return fmt::format("{} has too little memory", where);
    return incompatibility.text;
  }

  void note_memory(const plan::LaunchPlan& now) {
    for (const int id : now.pipelines.front().stages) {
      std::vector<MemoryUse> uses;
      for (const plan::Part& part : now.stage(id).parts) {
        uses.push_back({id, now.island(part.island).device.name, part.predicted, part.encoders});
      }
      result_.memory.push_back(*std::ranges::max_element(uses, {}, &MemoryUse::share));
    }
    std::ranges::stable_sort(result_.memory, std::greater<>(), &MemoryUse::share);
  }

  void find_limits() {
    report_phase("what limits the plan");
    const auto try_fleet = [&](Resource resource, const auto& change) {
      cluster::Fleet faster = fleet_;
      for (cluster::Node& node : faster.nodes) change(node);
      result_.limits.push_back(priced({Faster{resource}, {}, {}}, plan_, faster));
    };
    const auto quicken = [](BytesPerSecond& rate) { rate = rate * kMore; };
    try_fleet(Resource::kCompute, [](cluster::Node& node) {
      for (cluster::DeviceGroup& group : node.groups) {
        for (FlopsPerSecond& peak : group.device.peak) peak = peak * kMore;
      }
    });
    try_fleet(Resource::kMemoryBandwidth, [&](cluster::Node& node) {
      for (cluster::DeviceGroup& group : node.groups) quicken(group.device.memory_bandwidth);
    });
    try_fleet(Resource::kNodeLinks, [&](cluster::Node& node) {
      for (cluster::DeviceGroup& group : node.groups) {
        for (BytesPerSecond* rate :
             {&group.link.bandwidth, &group.device.peer_link.bandwidth, &group.device.peer_pair}) {
          quicken(*rate);
        }
      }
      quicken(node.host_link.bandwidth);
    });
    cluster::Fleet network = fleet_;
    for (cluster::Node& node : network.nodes) quicken(node.network.bandwidth);
    for (cluster::LinkRule& rule : network.rules) quicken(rule.link.bandwidth);
    for (cluster::Link& link : network.measured) quicken(link.bandwidth);
    result_.limits.push_back(priced({Faster{Resource::kNetwork}, {}, {}}, plan_, network));
    std::ranges::stable_sort(result_.limits, {}, time_of);
  }

  void try_cuts() {
    report_phase("what other cuts would take");
    const std::vector<int>& stages = plan_.pipelines.front().stages;
    for (std::size_t s = 0; s + 1 < std::min(stages.size(), kExplainedStages); ++s) {
      for (const int blocks : {-1, 1}) {
        const auto variant = evolve::with_cut_moved(plan_, stages[s], blocks);
        if (!variant) continue;
        const int layer = plan_.stage(stages[s]).last() + std::min(blocks, 0);
        result_.cuts.push_back(priced({LayerMoved{layer, s, blocks > 0 ? s : s + 1}, {}, {}}, *variant, fleet_));
      }
    }
  }

  /// So many blocks in a row as the stage has in its chunks, with the end of the model that it has.
  [[nodiscard]] model::SliceSignature slice_like(const plan::Stage& stage) const {
    const int first = stage.head ? stage.last() - stage.block_count() : stage.first();
    return model::signature(plan_.pipelined(), first, first + stage.block_count());
  }

  /// The fastest strategy of each other set of degrees, the fastest few of them.
  [[nodiscard]] std::vector<cost::Strategy> others_of(const plan::LaunchPlan& now, const plan::Stage& stage,
                                                      const plan::Part& part) const {
    parallelizer::Query query;
    query.slice = slice_like(stage);
    query.shape = plan::shape_of(now, part);
    query.samples = static_cast<int>(part.samples);
    query.max_in_flight = stage.warmup + 1;
    query.allow = plan_.model.job.allow;
    std::vector<parallelizer::Query> queries;
    const auto traits = parallelizer::traits_of(plan_.pipelined(), query.slice);
    for (const cost::Degrees& degrees : parallelizer::with_sharding_groups(
             parallelizer::enumerate_degrees(query.shape, query.samples, traits, query.allow), query.shape, traits,
             query.allow, plan_.model.job.sharding_group)) {
      // Sequence parallelism is free where there is tensor parallelism: leaving it out is no other way to divide a
      // stage.
      const bool without_sp = degrees.tp > 1 && query.allow.sp && !degrees.sequence_parallel;
      if (without_sp || degrees == part.strategy.degrees) continue;
      query.demands.degrees = degrees;
      queries.push_back(query);
    }
    const auto time_of_plan = [](const parallelizer::PartialPlan& p) { return p.cost.forward + p.cost.backward; };
    const auto enumerator = parallelizer::make_enumerator(plan_.pipelined(), options_.search.profiles);
    std::vector<parallelizer::PartialPlan> fastest;
    for (const parallelizer::Outcome& outcome : enumerator->solve(queries)) {
      if (outcome.plans.empty()) continue;
      fastest.push_back(*std::ranges::min_element(outcome.plans, {}, time_of_plan));
    }
    std::ranges::stable_sort(fastest, {}, time_of_plan);
    fastest.resize(std::min(fastest.size(), kAlternatives));
    std::vector<cost::Strategy> others;
    others.reserve(fastest.size());
    for (const parallelizer::PartialPlan& partial : fastest) others.push_back(partial.strategy);
    return others;
  }

  void try_degrees(const plan::LaunchPlan& now) {
    report_phase("what other degrees would take");
    const std::vector<int>& stages = plan_.pipelines.front().stages;
    for (std::size_t s = 0; s < std::min(stages.size(), kExplainedStages); ++s) {
      const plan::Stage& stage = now.stage(stages[s]);
      for (std::size_t p = 0; p < stage.parts.size(); ++p) {
        std::optional<Alternative> best;
        for (const cost::Strategy& strategy : others_of(now, stage, stage.parts[p])) {
          Alternative other = priced({OtherStrategy{s, stage.parts[p].strategy, strategy}, {}, {}},
                                     evolve::with_strategy(plan_, stage.id, p, strategy), fleet_);
          if (!best || time_of(other) < time_of(*best)) best = std::move(other);
        }
        if (best) result_.degrees.push_back(std::move(*best));
      }
    }
  }

  /// As far as figures are shown.
  [[nodiscard]] bool is_as_fast(Nanoseconds other) const {
    constexpr double kShown = 5e-5;
    return std::abs(other.as_double() / result_.iteration.as_double() - 1) < kShown;
  }

  void try_options() {
    report_phase("what other execution options would take");
    for (const JobOption& option : job_options()) {
      plan::LaunchPlan variant = plan_;
      option.set(variant.model.job);
      if (variant.model.job == plan_.model.job) continue;
      Alternative other = priced({OptionChanged{option.key, option.value}, {}, {}}, variant, fleet_);
      if (other.iteration && is_as_fast(*other.iteration)) continue;
      result_.options.push_back(std::move(other));
    }
    std::ranges::stable_sort(result_.options, {}, time_of);
  }

  void try_rules(const plan::LaunchPlan& now) {
    const runtime::Runtime& runtime = runtime::runtime_of(options_.target);
    const auto hierarchy = cluster::find_islands(fleet_, options_.island_tolerance);
    for (const runtime::Rule rule : runtime::rules_of(runtime)) {
      if (!compose::bears_on(rule, plan_.model, hierarchy)) continue;
      report_phase(fmt::format("what the rule {} costs", to_string(rule)));
      add_lifted(RuleLifted{rule}, time_without(rule, now, fleet_, options_, progress_));
    }
    if (!result_.rules.empty()) {
      report_phase("what all rules cost");
      add_lifted(RulesLifted{}, time_without_rules(now, fleet_, options_, progress_));
    }
    std::ranges::stable_sort(result_.rules, {}, time_of);
  }

  /// With the time of the fastest plan of a search for faster ones, if it found some.
  void add_lifted(Change lifted, std::optional<Nanoseconds> found) {
    Alternative without{std::move(lifted), std::min(result_.iteration, found.value_or(result_.iteration)), {}};
    if (!found && options_.search.deadline.is_missed()) {
      without.iteration.reset();
      without.why_not = "no plan was found in time";
    }
    result_.rules.push_back(std::move(without));
  }

  /// Encoders elsewhere, on the same fleet.
  void try_placements() {
    if (options_.target != runtime::Target::kGeneric || model::encoder_blocks(plan_.model) == 0) return;
    for (const compose::EncoderPlacement placement : compose::encoder_placements()) {
      const bool colocated = placement == compose::EncoderPlacement::kColocated;
      if (colocated && plan_.colocated) continue;
      report_phase(fmt::format("what {} encoders would take", to_string(placement)));
      Alternative other{OtherPlacement{placement}, {}, {}};
      if (colocated) other.why_not = model::why_not_split(plan_.model);
      if (other.why_not.empty()) other = planned_with(placement, std::move(other));
      result_.placements.push_back(std::move(other));
    }
    std::ranges::stable_sort(result_.placements, {}, time_of);
  }

  [[nodiscard]] Alternative planned_with(compose::EncoderPlacement placement, Alternative changed) const {
    PlanOptions options = options_;
    options.search.placement = placement;
    if (placement == compose::EncoderPlacement::kColocated) options.pipelines = Pipelines::kEqual;
    if (const auto found = make_plan(fleet_, plan_.model, options, progress_); found) {
      changed.iteration = found->plan.predicted.iteration;
    } else {
      changed.why_not = found.error().front().message;
    }
    return changed;
  }

  /// Planned anew on another fleet.
  [[nodiscard]] Alternative planned(Alternative changed, const Expected<cluster::Fleet>& fleet) const {
    if (!fleet) {
      changed.why_not = fleet.error().front().message;
    } else if (const auto found = make_plan(*fleet, plan_.model, options_, progress_); !found) {
      changed.why_not = found.error().front().message;
    } else {
      changed.iteration = found->plan.predicted.iteration;
    }
    return changed;
  }

  /// On a fleet that has all the plan needs: where the search finds nothing faster, the plan itself remains.
  [[nodiscard]] Alternative planned_with_more(Alternative changed, const Expected<cluster::Fleet>& fleet) const {
    Alternative found = planned(std::move(changed), fleet);
    const bool is_known = found.iteration || !options_.search.deadline.is_missed();
    if (fleet && is_known && time_of(found) > result_.iteration) found.iteration = result_.iteration;
    return found;
  }

  void plan_others() {
    find_next_best();
    try_memory();
    add_nodes();
    drop_islands();
  }

  void try_memory() {
    std::set<std::string> types;
    for (const cluster::Node& node : fleet_.nodes) {
      for (const cluster::DeviceGroup& group : node.groups) types.insert(group.device.name);
    }
    for (const std::string& type : types) {
      cluster::Fleet larger = fleet_;
      for (cluster::Node& node : larger.nodes) {
        for (cluster::DeviceGroup& group : node.groups) {
          if (group.device.name != type) continue;
          group.device.memory = Bytes(static_cast<std::int64_t>(group.device.memory.as_double() * kMore));
        }
      }
      result_.more_memory.push_back(planned_with_more({MoreMemory{type}, {}, {}}, larger));
    }
    std::ranges::stable_sort(result_.more_memory, {}, time_of);
  }

  /// The level of islands that the plan was made on; the finest where it is not known.
  [[nodiscard]] cluster::IslandLevel level_of_plan() const {
    cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet_, options_.island_tolerance);
    const auto level = std::ranges::find(hierarchy.levels, plan_.provenance.level, &cluster::IslandLevel::name);
    return level == hierarchy.levels.end() ? hierarchy.levels.front() : *level;
  }

  void add_nodes() {
    const cluster::IslandLevel level = level_of_plan();
    for (const cluster::IslandClass& each : level.classes) {
      const cluster::Island& island = at(level.islands, each.islands.front());
      const std::string& node = fleet_.nodes[island.members.front().node].name;
      result_.more.push_back(planned_with_more({NodeAdded{node, each.alias}, {}, {}}, with_one_more(fleet_, node)));
    }
  }

  void drop_islands() {
    std::map<std::string, std::vector<const plan::PlanIsland*>> classes;
    for (const plan::PlanIsland& island : plan_.islands) classes[island.island_class].push_back(&island);
    for (const plan::PlanIsland& island : plan_.islands) {
      const auto& alike = classes[island.island_class];
      if (alike.front() != &island) continue;
      std::vector<std::string> hosts;
      for (const plan::HostGpus& host : island.nodes) hosts.push_back(host.host);
      result_.fewer.push_back(
          planned({IslandDropped{island.id, island.island_class, alike.size()}, {}, {}}, without_nodes(fleet_, hosts)));
    }
  }

  /// The fastest of the plans that were simulated and do something else.
  void find_next_best() {
    PlanOptions options = options_;
    options.search.top = std::max(options.search.top, kCandidates);
    options.near = &plan_;
    options.choose = [&](const std::vector<plan::LaunchPlan>& plans, std::size_t best) {
      for (const plan::LaunchPlan& other : plans) {
        const evolve::GpuCounts counts = evolve::count_roles(evolve::roles_of(plan_), evolve::roles_of(other));
        const bool same = counts.moved() == 0 && counts.left == 0 &&
                          other.pipelines.front().microbatch == plan_.pipelines.front().microbatch;
        const Nanoseconds time = other.predicted.iteration;
        if (same || (result_.next_best && *result_.next_best->iteration <= time)) continue;
        result_.next_best =
            Alternative{OtherPlan{plan::plan_digest(other), other.stages.size(), other.pipelines.front().microbatch,
                                  counts.moved(), other.ranks.size()},
                        time, ""};
      }
      return best;
    };
    static_cast<void>(make_plan(fleet_, plan_.model, options, progress_));
  }

  const plan::LaunchPlan& plan_;
  const cluster::Fleet& fleet_;
  PlanOptions options_;
  const compose::ProgressCallback& progress_;
  Explanation result_;
};

}  // namespace

std::int64_t MemoryUse::room() const {
  return (predicted.usable_memory - predicted.peak_memory).value() /
         std::max<std::int64_t>(1, predicted.activation.value());
}

Expected<Explanation> explain(const plan::LaunchPlan& plan, const cluster::Fleet& fleet, const PlanOptions& options,
                              const compose::ProgressCallback& progress) {
  return Explainer(plan, fleet, options, progress).run();
}

}  // namespace tangram::planner
