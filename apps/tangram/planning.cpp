#include "planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "idle.hpp"
#include "parallelizers.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/ensemble/ensemble.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/simulate/simulate.hpp"
#include "wishes.hpp"

namespace tangram::app {

namespace {

std::string space_text(const compose::Space& space) {
  nlohmann::ordered_json json;
  json["name"] = space.name;
  json["levels"] = space.levels;
  json["replicas"] = space.replicas;
  json["microbatches"] = space.microbatches;
  json["shapes"] = nlohmann::ordered_json::object();
  for (const auto& [alias, sizes] : space.shapes) json["shapes"][alias] = sizes;
  json["rules"] = space.rules;
  return io::write_compact(json);
}

double gap(Nanoseconds time, Nanoseconds bound) {
  return bound > Nanoseconds(0) ? time.as_double() / bound.as_double() - 1 : 0;
}

/// What the search tells about itself beside the bounds.
std::string search_text(const compose::WishResult& result, const compose::Wish& wish) {
  nlohmann::ordered_json json;
  if (wish.budget) json["budget_usd_per_hour"] = wish.budget->as_double() * 1e-6;
  if (wish.longest_iteration) json["longest_iteration_s"] = to_seconds(*wish.longest_iteration);
  json["value"] = result.value;
  json["bound"] = result.bound;
  json["levels"] = nlohmann::ordered_json::array();
  for (const compose::LevelReport& level : result.found.levels) {
    nlohmann::ordered_json entry{{"name", level.name}, {"classes", level.classes}, {"islands", level.islands}};
    if (level.best < Nanoseconds::max()) entry["best_s"] = to_seconds(level.best);
    if (level.bound < Nanoseconds::max()) entry["bound_s"] = to_seconds(level.bound);
    json["levels"].push_back(std::move(entry));
  }
  const compose::SearchStatistics& s = result.found.statistics;
  const compose::CutYield& cuts = s.cuts;
  json["cuts"] = {{"programs_by_bound", s.programs_cut},
                  {"slices_by_capacity", cuts.slices_by_capacity},
                  {"windows_by_bound", cuts.windows_by_bound},
                  {"groups_by_units", cuts.groups_by_units},
                  {"groups_by_spending", cuts.groups_by_spending},
                  {"groups_by_remainder", cuts.groups_by_remainder},
                  {"groups_by_packing", cuts.groups_by_packing},
                  {"labels_by_time", cuts.labels_by_time},
                  {"labels_by_bound", cuts.labels_by_bound},
                  {"labels_by_remainder", cuts.labels_by_remainder},
                  {"labels_by_dominance", cuts.labels_by_dominance}};
  return io::write_compact(json);
}

/// How good the plan is by a wish other than the fastest.
std::string wish_note(const compose::WishResult& result, compose::Objective objective) {
  const double share = result.bound > 0 ? (result.value / result.bound - 1) * 100 : 0;
  switch (objective) {
    case compose::Objective::kThroughput: break;
    case compose::Objective::kCost:
      if (result.found.optimal) {
        return fmt::format("by closed form no searched plan is cheaper per token, by {} searches", result.steps);
      }
      return fmt::format("the cheapest per token that {} searches found, at most {:.1f} % above the cheapest possible",
                         result.steps, share);
    case compose::Objective::kGpus:
      if (result.value <= result.least) {
        return fmt::format("{:.0f} GPUs; at least {:.0f} are needed", result.value, result.least);
      }
      return fmt::format(
          "{:.0f} GPUs; no plan of fewer was found that reaches the throughput, and fewer than {:.0f} cannot",
          result.value, result.least);
  }
  return "";
}

/// What edits of the fleet and the model file leave open, and what was taken.
std::vector<std::string> assumed_of(const cluster::Fleet& fleet, const model::Model& model) {
  std::vector<std::string> assumed = fleet.assumed;
  if (!model.assumed.empty()) assumed.push_back(model.assumed);
  return assumed;
}

/// What a reader must know about the effort behind a plan; empty when it is simply the best.
std::string note_of(const compose::WishResult& granted, const compose::Wish& wish, std::string why_chosen,
                    std::vector<std::string> assumed) {
  const compose::SearchResult& result = granted.found;
  std::vector<std::string> notes = std::move(assumed);
  if (wish.objective != compose::Objective::kThroughput) notes.push_back(wish_note(granted, wish.objective));
  if (!why_chosen.empty()) notes.push_back(std::move(why_chosen));
  if (!result.finished) {
    notes.push_back(
        fmt::format("the search was not finished within its budget, after {} labels", result.statistics.labels));
  }
  for (const parallelizer::Tally& tally : result.parallelizers) {
    if (tally.failures() > 0) notes.push_back(failure_text(tally));
  }
  return fmt::format("{}", fmt::join(notes, "; "));
}

/// Of all profiles in the order given, because of two that know the same the first counts.
std::string digest_of(const cost::ProfileSet& profiles) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const cost::Profile& profile : profiles.profiles()) all.push_back(cost::profile_json(profile));
  return digest(io::write_compact(all));
}

void add_profiles(const PlanningOptions& options, plan::LaunchPlan& plan) {
  if (options.search.profiles == nullptr) return;
  plan.provenance.inputs.push_back({"profiles", digest_of(*options.search.profiles)});
}

bool any_failed(const std::vector<parallelizer::Tally>& tallies) {
  return std::ranges::any_of(tallies, [](const parallelizer::Tally& tally) { return tally.failures() > 0; });
}

void set_provenance(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model,
                    const compose::WishResult& granted, const compose::Wish& wish) {
  const compose::SearchResult& result = granted.found;
  const Nanoseconds closed_form = plan.predicted.closed_form;
  plan::PlanProvenance& p = plan.provenance;
  p.version = TANGRAM_VERSION;
  p.inputs = {{"cluster", fleet.digest}, {"model", model.digest}};
  for (const parallelizer::Tally& tally : result.parallelizers) {
    p.parallelizers.push_back(fmt::format("{} {}", tally.info.name, tally.info.version));
    if (!tally.info.built_in) p.outsiders.push_back(tally);
  }
  p.states = result.statistics.states;
  p.labels = result.statistics.labels;
  p.space = space_text(result.space);
  p.search = search_text(granted, wish);
  p.objective = to_string(wish.objective);
  // `optimal` speaks of the closed form: a plan that simulation prefers keeps it only when it is as fast by that too.
  // Where a parallelizer left queries open, its frontiers are not those the space speaks of.
  const bool whole = !any_failed(result.parallelizers);
  p.optimal = whole && result.optimal && closed_form == result.best.front().closed_form;
  p.search_bound = whole ? result.search_bound : result.relaxed_bound;
  // It speaks of the degrees that the built-in parallelizers consider; a plan with others may be faster, and is then
  // itself what nothing known is faster than.
  p.relaxed_bound = std::min({result.relaxed_bound, p.search_bound, closed_form, plan.predicted.iteration});
  // Pipelines that are not alike are no part of what the search speaks of, and may be faster than its bound.
  p.search_gap = std::max(0.0, gap(closed_form, p.search_bound));
  // The relaxation holds pass by pass as well as by closed form.
  p.relaxed_gap = gap(std::min(closed_form, plan.predicted.iteration), p.relaxed_bound);
}

Diagnostic bug(std::string code, std::string message) {
  return problem(ErrorKind::kInternal, std::move(code), std::move(message),
                 "this is a bug of tangram; please report it with the input files");
}

Diagnostics bugs_of(const plan::CheckReport& report) {
  Diagnostics bugs;
  for (const plan::Violation& v : report.violations) {
    bugs.push_back(bug(v.code, fmt::format("the plan does not pass its check: {}: {}", v.where, v.message)));
  }
  return bugs;
}

/// Times saturate far above what is real, and then say nothing about each other.
bool takes_too_long(const plan::LaunchPlan& plan) {
  static constexpr Nanoseconds kLongest(std::int64_t{365} * 24 * 3600 * 1'000'000'000);
  const auto is_long = [](const plan::Part& part) {
    const plan::PartPrediction& p = part.predicted;
    return std::max({p.forward, p.backward, p.gradient_sync, p.optimizer_step}) > kLongest;
  };
  return plan.predicted.iteration > kLongest || plan.predicted.closed_form > kLongest ||
         std::ranges::any_of(plan.stages, [&](const plan::Stage& s) { return std::ranges::any_of(s.parts, is_long); });
}

Diagnostic too_long() {
  return problem(
      ErrorKind::kInfeasible, "too-slow", "an iteration of the best plan takes longer than a year",
      "look for a slip of the unit: a peak, a bandwidth or a latency of the cluster, the batch of the model");
}

/// Rules against the model hold for every plan of it.
bool is_of_model(const plan::TargetReason& reason) { return reason.code.find("_MODEL_") != std::string::npos; }

Diagnostics not_runnable(const std::vector<plan::TargetReason>& reasons, compose::Target target) {
  const bool model = std::ranges::any_of(reasons, is_of_model);
  Diagnostics refusals;
  for (const plan::TargetReason& reason : reasons) {
    if (model && !is_of_model(reason)) continue;
    Diagnostic diagnostic;
    diagnostic.kind = ErrorKind::kInfeasible;
    diagnostic.code = reason.code;
    diagnostic.message =
        fmt::format("{} cannot {} the rule {}: {}", to_string(target),
                    model ? "train this model, which breaks" : "run the best plans that were found, which break",
                    reason.code, reason.text);
    if (refusals.empty()) {
      diagnostic.hint =
          model ? "plan for --target generic" : "simulate more plans with --top, or plan for --target generic";
    }
    refusals.push_back(std::move(diagnostic));
  }
  return refusals;
}

/// Part of the label budget that the search for pipelines that are not alike may use beside the search itself.
constexpr std::int64_t kUnequalShare = 4;

/// Fleets of fewer GPUs are looked at for such pipelines without being asked for.
constexpr int kLookedAt = 64;

/// On others it may pay where such a share of the GPUs is idle and plans that are faster by such a share are possible.
constexpr double kManyIdle = 0.1;
constexpr double kWideGap = 0.1;

/// Slower by so much, transfers that block are named.
constexpr double kWorthSaying = 1.001;

/// What the target costs; the plan without it is searched for as well.
std::string target_note(const plan::LaunchPlan& plan, const plan::LaunchPlan& generic, compose::Target target) {
  const double own = to_seconds(plan.predicted.iteration);
  const double other = to_seconds(generic.predicted.iteration);
  std::string note = fmt::format("target {} costs {:.1f} %: {:.4g} s an iteration, {:.4g} s without it",
                                 to_string(target), (own / other - 1) * 100, own, other);
  // The search and the predictions know transfers that run beside the passes; Megatron-LM's schedule, which all targets
  // run, stops for them.
  const simulate::Result stopped = simulate::simulate(simulate::schedule_of(plan, simulate::Transfers::kBlocking));
  if (stopped.deadlock || to_seconds(stopped.iteration) < own * kWorthSaying) return note;
  return note + fmt::format("; {:.4g} s where stages stop for transfers", to_seconds(stopped.iteration));
}

/// Less is better.
std::pair<double, double> worth(const plan::LaunchPlan& plan, compose::Objective objective) {
  const double seconds = to_seconds(plan.predicted.iteration);
  switch (objective) {
    case compose::Objective::kThroughput: return {seconds, 0};
    case compose::Objective::kCost: return {plan.predicted.cost_per_mtoken, seconds};
    case compose::Objective::kGpus: return {static_cast<double>(plan.ranks.size()), seconds};
  }
  return {seconds, 0};
}

/// What the steps of planning share: islands, parallelizers, options.
class Planner {
 public:
  Planner(const cluster::Fleet& fleet, const model::Model& model, const PlanningOptions& options,
          const compose::ProgressCallback& progress)
      : fleet_(fleet),
        model_(model),
        options_(options),
        progress_(progress),
        hierarchy_(cluster::find_islands(fleet, options.island_tolerance)),
        enumerator_(parallelizer::make_enumerator(model, options.search.profiles)),
        parallelizers_(options.parallelizers) {
    if (parallelizers_.empty()) parallelizers_.push_back(enumerator_.get());
  }

  [[nodiscard]] const cluster::IslandHierarchy& hierarchy() const { return hierarchy_; }
  [[nodiscard]] compose::SearchResult search(const compose::SearchOptions& limits) const {
    if (options_.kept != nullptr) {
      return options_.kept->search({options_.target, model_, hierarchy_, parallelizers_, limits}, progress_);
    }
    return compose::search_target(options_.target, model_, hierarchy_, parallelizers_, limits, progress_);
  }
  [[nodiscard]] compose::WishResult grant_wish() const {
    compose::SearchOptions limits = options_.search;
    limits.timed = options_.wish.objective == compose::Objective::kThroughput;
    return compose::search_wish(
        options_.wish, model_, hierarchy_, limits, [this](const compose::SearchOptions& each) { return search(each); },
        [this](const compose::Composition& plan) { return simulated(plan); });
  }
  [[nodiscard]] compose::ParetoPlans find_choices(std::size_t most) const {
    return compose::pareto_plans(
        options_.wish, model_, hierarchy_, options_.search, most,
        [this](const compose::SearchOptions& each) { return search(each); },
        [this](const compose::Composition& plan) { return simulated(plan); });
  }
  [[nodiscard]] plan::LaunchPlan assemble(const compose::Composition& composition) const {
    return plan::assemble(composition, fleet_, level_at(composition.level), model_, options_.search.profiles,
                          options_.near);
  }
  /// A look is at microbatches of the size that is best for equal pipelines.
  [[nodiscard]] ensemble::EnsembleSearch search_ensemble(const compose::SearchOptions& limits,
                                                         std::int64_t microbatch) const {
    if (options_.pipelines == Pipelines::kAny) {
      return ensemble::search_ensemble(model_, hierarchy_, parallelizers_, limits, progress_);
    }
    model::Model model = model_;
    model.job.microbatch = microbatch;
    return ensemble::search_ensemble(model, hierarchy_, parallelizers_, limits, progress_,
                                     ensemble::EnsembleEffort::kLook);
  }
  [[nodiscard]] plan::LaunchPlan assemble(const compose::Ensemble& ensemble) const {
    return plan::assemble(ensemble, fleet_, level_at(ensemble.level), model_, options_.search.profiles);
  }

 private:
  [[nodiscard]] std::optional<Nanoseconds> simulated(const compose::Composition& composition) const {
    const plan::LaunchPlan candidate = assemble(composition);
    if (!reasons_against(candidate, options_.target).empty()) return std::nullopt;
    const simulate::Result result = simulate::simulate(simulate::schedule_of(candidate));
    return result.deadlock ? std::nullopt : std::optional(result.iteration);
  }
  [[nodiscard]] const cluster::IslandLevel& level_at(int level) const {
    return hierarchy_.levels[static_cast<std::size_t>(level)];
  }

  const cluster::Fleet& fleet_;
  const model::Model& model_;
  const PlanningOptions& options_;
  const compose::ProgressCallback& progress_;
  cluster::IslandHierarchy hierarchy_;
  std::unique_ptr<parallelizer::Parallelizer> enumerator_;
  std::vector<const parallelizer::Parallelizer*> parallelizers_;
};

}  // namespace

std::string_view to_string(compose::Target target) {
  switch (target) {
    case compose::Target::kGeneric: return "generic";
    case compose::Target::kMegatron: return "megatron";
    case compose::Target::kFlagscale: return "flagscale";
    case compose::Target::kMimo: return "mimo";
  }
  return "generic";
}

FlopsPerSecond fleet_peak(const cluster::Fleet& fleet, DType precision) {
  double peak = 0;
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) {
      peak += cost::matrix_peak(group.device, precision).value() * group.count;
    }
  }
  return FlopsPerSecond(peak);
}

double worth_of(const plan::LaunchPlan& plan, compose::Objective objective) { return worth(plan, objective).first; }

// Rules of the target that speak of hosts and paths are judged on the whole plan.
std::vector<plan::TargetReason> reasons_against(const plan::LaunchPlan& plan, compose::Target target) {
  for (plan::TargetVerdict& verdict : plan::target_verdicts(plan)) {
    if (verdict.target == to_string(target)) return std::move(verdict.reasons);
  }
  return {};
}

Expected<void> predict(plan::LaunchPlan& plan, const cluster::Fleet& fleet) {
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
  if (result.deadlock) return fail(bug("deadlock", "the schedule of a plan cannot finish"));
  simulate::predict(plan, result, fleet_peak(fleet, plan.model.job.precision));
  return {};
}

namespace {

/// Plans that the target can run, simulated.
struct Simulated {
  std::vector<plan::LaunchPlan> plans;
  std::vector<std::size_t> numbers;  // of their compositions; of pipelines that are not alike: one beyond those
  std::size_t best = 0;

  Expected<void> add(plan::LaunchPlan plan, std::size_t number, const cluster::Fleet& fleet,
                     compose::Objective objective) {
    if (auto done = predict(plan, fleet); !done) return fail(std::move(done.error()));
    plans.push_back(std::move(plan));
    numbers.push_back(number);
    if (worth(plans.back(), objective) < worth(plans[best], objective)) best = plans.size() - 1;
    return {};
  }
};

Expected<Simulated> simulate_all(const Planner& planner, const std::vector<compose::Composition>& compositions,
                                 const cluster::Fleet& fleet, const PlanningOptions& options) {
  Simulated simulated;
  std::vector<plan::TargetReason> refused;
  for (std::size_t i = 0; i < compositions.size(); ++i) {
    plan::LaunchPlan candidate = planner.assemble(compositions[i]);
    if (auto reasons = reasons_against(candidate, options.target); !reasons.empty()) {
      if (refused.empty()) refused = std::move(reasons);
      continue;
    }
    if (auto added = simulated.add(std::move(candidate), i, fleet, options.wish.objective); !added) {
      return fail(std::move(added.error()));
    }
  }
  if (simulated.plans.empty()) return fail(not_runnable(refused, options.target));
  return simulated;
}

/// Runtimes that are a target start equal pipelines; limits on money and GPUs are kept by the search for equal ones.
bool may_differ_at_all(const PlanningOptions& options) {
  return options.pipelines != Pipelines::kEqual && options.target == compose::Target::kGeneric &&
         options.wish.objective == compose::Objective::kThroughput && !options.wish.budget && !options.search.spend;
}

bool may_differ(const PlanningOptions& options, int gpus) {
  return may_differ_at_all(options) && (options.pipelines == Pipelines::kAny || gpus < kLookedAt);
}

/// When it may pay to look further at pipelines that are not alike; empty: nothing speaks for it.
std::string further_note(const plan::LaunchPlan& plan, bool differs, const PlanningOptions& options) {
  if (options.pipelines != Pipelines::kAuto) return "";
  if (differs) return "--pipelines any looks further and may find faster ones";
  if (plan.fleet_gpus < kLookedAt || !may_differ_at_all(options)) return "";
  int idle = 0;
  for (const plan::IdleGpus& gpus : plan.idle) idle += gpus.gpus;
  if (idle < kManyIdle * plan.fleet_gpus || plan.provenance.relaxed_gap < kWideGap) return "";
  return fmt::format("{} GPUs are idle: --pipelines any may find work for them", idle);
}

/// Pipelines that are not alike, where their closed form is better than that of the best that are.
Expected<ensemble::EnsembleSearch> add_unequal(const Planner& planner, const compose::SearchResult& found,
                                               std::size_t number, const cluster::Fleet& fleet,
                                               const PlanningOptions& options, Simulated& simulated) {
  compose::SearchOptions limits = options.search;
  limits.incumbent = found.best.front().closed_form;
  limits.label_budget /= kUnequalShare;
  ensemble::EnsembleSearch search = planner.search_ensemble(limits, found.best.front().microbatch);
  if (search.best) {
    auto added = simulated.add(planner.assemble(*search.best), number, fleet, options.wish.objective);
    if (!added) return fail(std::move(added.error()));
  }
  return search;
}

/// The plan that a target's is compared with.
PlanningOptions for_any_runtime(PlanningOptions options) {
  options.target = compose::Target::kGeneric;
  options.choose = {};
  return options;
}

/// Why this one of the simulated plans was taken; empty: it is the first by closed form.
std::string why_taken(const Simulated& simulated, std::size_t taken, std::size_t equal, compose::Objective objective) {
  const std::size_t number = simulated.numbers[taken];
  if (taken != simulated.best) {
    return fmt::format("number {} by closed form, taken because fewest GPUs change their work", number + 1);
  }
  if (number == equal) {
    double best = 0;
    for (std::size_t i = 0; i < simulated.plans.size(); ++i) {
      const double seconds = to_seconds(simulated.plans[i].predicted.iteration);
      if (simulated.numbers[i] < equal && (best == 0 || seconds < best)) best = seconds;
    }
    return fmt::format("pipelines with islands and shares of their own: {:.1f} % faster than the best equal ones",
                       (best / to_seconds(simulated.plans[taken].predicted.iteration) - 1) * 100);
  }
  if (number == 0) return "";
  return fmt::format("number {} by closed form, the {} of {} simulated", number + 1,
                     objective == compose::Objective::kThroughput ? "fastest" : "best", equal);
}

}  // namespace

Expected<PlannedResult> make_plan(const cluster::Fleet& fleet, const model::Model& model,
                                  const PlanningOptions& options, const compose::ProgressCallback& progress) {
  const Planner planner(fleet, model, options, progress);
  auto granted = planner.grant_wish();
  compose::SearchResult& found = granted.found;
  if (found.best.empty()) {
    return fail(any_failed(found.parallelizers) ? failures_of(found.parallelizers) : std::move(found.infeasible));
  }

  const std::vector<compose::Composition> shortlist = found.shortlist();
  PlannedResult planned;
  planned.candidates = shortlist.size();
  planned.search_finished = found.finished;
  auto simulated = simulate_all(planner, shortlist, fleet, options);
  if (!simulated) return fail(std::move(simulated.error()));
  if (may_differ(options, fleet.gpu_count())) {
    const auto effort = add_unequal(planner, found, shortlist.size(), fleet, options, *simulated);
    if (!effort) return fail(effort.error());
    planned.statistics += effort->statistics;
    for (std::size_t i = 0; i < effort->parallelizers.size(); ++i) {
      found.parallelizers[i].add(effort->parallelizers[i]);
    }
  }
  const std::size_t taken = options.choose ? options.choose(simulated->plans, simulated->best) : simulated->best;
  planned.plan = std::move(simulated->plans[taken]);
  planned.chosen = simulated->numbers[taken];
  set_provenance(planned.plan, fleet, model, granted, options.wish);
  planned.plan.provenance.note =
      note_of(granted, options.wish, why_taken(*simulated, taken, shortlist.size(), options.wish.objective),
              assumed_of(fleet, model));
  add_profiles(options, planned.plan);

  if (options.target != compose::Target::kGeneric) {
    const auto generic = make_plan(fleet, model, for_any_runtime(options), progress);
    if (!generic) return fail(generic.error());
    std::string& note = planned.plan.provenance.note;
    note = target_note(planned.plan, generic->plan, options.target) + (note.empty() ? "" : "; ") + note;
  }

  const bool equal = planned.chosen < shortlist.size();
  if (const std::string further = further_note(planned.plan, !equal, options); !further.empty()) {
    std::string& note = planned.plan.provenance.note;
    note += (note.empty() ? "" : "; ") + further;
  }
  explain_idle(planned.plan, equal ? static_cast<int>(planned.plan.pipelines.size()) : 1, options.wish);
  planned.plan.targets = plan::target_verdicts(planned.plan);

  if (takes_too_long(planned.plan)) return fail(too_long());
  const plan::CheckReport judged = plan::check(planned.plan, fleet, &model);
  if (!judged.ok()) return fail(bugs_of(judged));
  planned.statistics += found.statistics;
  planned.parallelizers = std::move(found.parallelizers);
  planned.space = std::move(found.space);
  return planned;
}

void make_searches(const cluster::Fleet& fleet, const model::Model& model, const PlanningOptions& options,
                   const compose::ProgressCallback& progress) {
  const bool feasible = !Planner(fleet, model, options, progress).grant_wish().found.best.empty();
  if (options.target == compose::Target::kGeneric || !feasible) return;
  make_searches(fleet, model, for_any_runtime(options), progress);
}

namespace {

/// A plan among others to choose from is a plan like any: what it was made by, and judged.
Expected<void> complete_choice(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model,
                               const compose::WishResult& granted, const PlanningOptions& options) {
  set_provenance(plan, fleet, model, granted, options.wish);
  plan.provenance.note =
      fmt::format("one of several choices, the best for its GPUs or money of {} searches", granted.steps);
  add_profiles(options, plan);
  for (plan::IdleGpus& idle : plan.idle) idle.reason = "this choice does without them";
  plan.targets = plan::target_verdicts(plan);
  const plan::CheckReport judged = plan::check(plan, fleet, &model);
  if (!judged.ok()) return fail(bugs_of(judged));
  return {};
}

}  // namespace

Expected<Choices> make_choices(const cluster::Fleet& fleet, const model::Model& model, const PlanningOptions& options,
                               std::size_t most, const compose::ProgressCallback& progress) {
  const Planner planner(fleet, model, options, progress);
  compose::ParetoPlans found = planner.find_choices(most);
  std::vector<parallelizer::Tally>& tallies = found.effort.parallelizers;
  if (found.plans.empty()) {
    return fail(any_failed(tallies) ? failures_of(tallies) : std::move(found.infeasible));
  }
  Choices choices;
  choices.finished = found.effort.finished;
  compose::WishResult granted;
  granted.steps = found.steps;
  granted.found = std::move(found.effort);
  for (const compose::Shown& shown : found.plans) {
    plan::LaunchPlan candidate = planner.assemble(shown.plan);
    if (auto done = predict(candidate, fleet); !done) return fail(std::move(done.error()));
    if (auto done = complete_choice(candidate, fleet, model, granted, options); !done) {
      return fail(std::move(done.error()));
    }
    choices.plans.push_back(std::move(candidate));
  }
  choices.parallelizers = std::move(granted.found.parallelizers);
  return choices;
}

}  // namespace tangram::app
