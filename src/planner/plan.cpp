#include "tangram/planner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "idle.hpp"
#include "measured_look.hpp"
#include "options.hpp"
#include "planning.hpp"
#include "prediction.hpp"
#include "provenance.hpp"
#include "runtime_look.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/planner/own_runs.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::planner {

namespace {

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

/// `cannot` and `hint` say what it is that breaks the rules, and what to do.
Diagnostics refusals(const std::vector<plan::TargetReason>& reasons, runtime::Target target, const char* cannot,
                     const char* hint) {
  Diagnostics diagnostics;
  for (const plan::TargetReason& reason : reasons) {
    Diagnostic diagnostic;
    diagnostic.kind = ErrorKind::kInfeasible;
    diagnostic.code = reason.code;
    diagnostic.message =
        fmt::format("{} cannot {} the rule {}: {}", to_string(target), cannot, reason.code, reason.text);
    if (diagnostics.empty()) diagnostic.hint = hint;
    diagnostics.push_back(std::move(diagnostic));
  }
  return diagnostics;
}

Diagnostic no_room_to_put_off() {
  return problem(ErrorKind::kInfeasible, "zero-bubble-memory",
                 "no stage of the best plans has memory for weight gradients that are put off",
                 "--forbid recompute-full leaves out the plans that have least room for them, --top simulates more "
                 "plans, --schedule any plans without");
}

/// Part of the label budget that the search for pipelines that are not alike may use beside the search itself.
constexpr std::int64_t kUnequalShare = 4;

/// Fleets of fewer GPUs are looked at for such pipelines without being asked for.
constexpr int kLookedAt = 64;

/// On others it may pay where such a share of the GPUs is idle and plans that are faster by such a share are possible.
constexpr double kManyIdle = 0.1;
constexpr double kWideGap = 0.1;

std::string colocated_note(const plan::LaunchPlan& chain, const plan::LaunchPlan& colocated) {
  const double gain = chain.predicted.iteration.as_double() / colocated.predicted.iteration.as_double() - 1;
  return fmt::format("with colocated encoders {:.1f} % faster than with encoders in its pipelines", gain * 100);
}

/// Plans that the target can run, simulated.
struct Simulated {
  std::vector<plan::LaunchPlan> plans;
  std::vector<std::size_t> numbers;  // of their compositions; of pipelines that are not alike: one beyond those
  std::size_t best = 0;
  double expected_gain = 0;  // of the best over the best by prediction, where own runs favour another

  void heed(const discrepancy::Discrepancy* own_runs, objective::Objective objective) {
    const std::size_t first = best;
    best = favoured(plans, first, own_runs, objective);
    if (best != first) expected_gain = plans[first].predicted.expected_s() / plans[best].predicted.expected_s() - 1;
  }

  Expected<void> add(plan::LaunchPlan plan, std::size_t number, const cluster::Fleet& fleet,
                     const PlanOptions& options) {
    const objective::Objective objective = options.request.objective;
    if (auto done = predict(plan, fleet, options); !done) return fail(std::move(done.error()));
    plans.push_back(std::move(plan));
    numbers.push_back(number);
    if (rank_of(plans.back(), objective) < rank_of(plans[best], objective)) best = plans.size() - 1;
    return {};
  }
};

/// Interleaved, the first chunks are held longest; the search counts what chunks hold in the mean.
bool fits(const plan::LaunchPlan& plan) {
  return std::ranges::all_of(plan.stages, [](const plan::Stage& stage) {
    return std::ranges::all_of(
        stage.parts, [](const plan::Part& part) { return part.predicted.peak_memory <= part.predicted.usable_memory; });
  });
}

std::vector<plan::TargetReason> reasons_not_to_take(const plan::LaunchPlan& plan, runtime::Target target) {
  auto reasons = reasons_against(plan, target);
  if (reasons.empty() && plan.is_interleaved() && !fits(plan)) {
    reasons.push_back({"CHUNK_MEMORY", {}, "what a stage holds of all its chunks fits its GPUs"});
  }
  return reasons;
}

Expected<Simulated> simulate_all(const Planning& planning, const std::vector<compose::Composition>& compositions,
                                 const cluster::Fleet& fleet, const PlanOptions& options) {
  Simulated simulated;
  std::vector<plan::TargetReason> refused;
  bool no_room = false;
  for (std::size_t i = 0; i < compositions.size(); ++i) {
    if (!simulated.plans.empty() && options.search.deadline.has_passed()) break;
    auto candidate = planning.assemble(compositions[i]);
    if (!candidate) {
      no_room = true;
      continue;
    }
    if (auto reasons = reasons_not_to_take(*candidate, options.target); !reasons.empty()) {
      if (refused.empty()) refused = std::move(reasons);
      continue;
    }
    if (auto added = simulated.add(std::move(*candidate), i, fleet, options); !added) {
      return fail(std::move(added.error()));
    }
  }
  if (simulated.plans.empty() && no_room) return fail(no_room_to_put_off());
  if (simulated.plans.empty())
    return fail(refusals(refused, options.target, "run the best plans that were found, which break",
                         "simulate more plans with --top, or plan for --target generic"));
  return simulated;
}

/// Of a shortlist, where the runtime can run none of a shorter one: some of its rules are of plans, not of the search.
constexpr int kLongestShortlist = 256;

bool may_look_further(const PlanOptions& options) {
  return options.search.top < kLongestShortlist && !options.search.deadline.has_passed();
}

PlanOptions further(PlanOptions options) {
  options.search.top = kLongestShortlist;
  return options;
}

/// Runtimes that are a target start equal pipelines; limits on money and GPUs, placements of encoders and interleaved
/// chunks are kept by the search for equal ones.
bool may_differ_at_all(const PlanOptions& options) {
  return options.pipelines != Pipelines::kEqual && options.target == runtime::Target::kGeneric &&
         options.search.schedule != runtime::Schedule::kInterleaved &&
         options.search.placement == compose::EncoderPlacement::kAny &&
         options.request.objective == objective::Objective::kThroughput && !options.request.budget &&
         !options.search.spend;
}

bool may_differ(const PlanOptions& options, int gpus) {
  return may_differ_at_all(options) && (options.pipelines == Pipelines::kAny || gpus < kLookedAt);
}

/// When it may pay to look further at pipelines that are not alike; empty: nothing speaks for it.
std::string further_note(const plan::LaunchPlan& plan, bool differs, const PlanOptions& options) {
  if (options.pipelines != Pipelines::kAuto) return "";
  if (differs) return "--pipelines any looks further and may find faster ones";
  if (plan.fleet_gpus < kLookedAt || !may_differ_at_all(options)) return "";
  int idle = 0;
  for (const plan::IdleGpus& gpus : plan.idle) idle += gpus.gpus;
  if (idle < kManyIdle * plan.fleet_gpus || plan.provenance.relaxed_gap < kWideGap) return "";
  return fmt::format("{} GPUs are idle: --pipelines any may find work for them", idle);
}

/// By closed form under 1F1B. Under zero bubble plans of both schedules are on the shortlist; none slower than all of
/// these is of interest.
Nanoseconds time_of_interest(const compose::SearchResult& found, const PlanOptions& options) {
  if (!wants_zero_bubble(options)) return found.best.front().closed_form;
  return std::ranges::max(found.shortlist(), {}, &compose::Composition::closed_form).closed_form;
}

/// Pipelines that are not alike, where their closed form is better than that of the best that are.
Expected<ensemble::EnsembleSearch> add_unequal(const Planning& planning, const compose::SearchResult& found,
                                               std::size_t number, const cluster::Fleet& fleet,
                                               const PlanOptions& options, Simulated& simulated) {
  compose::SearchOptions limits = options.search;
  limits.incumbent = time_of_interest(found, options);
  limits.label_budget /= kUnequalShare;
  ensemble::EnsembleSearch search = planning.search_ensemble(limits, found.best.front().microbatch);
  if (search.best) {
    auto plan = planning.assemble(*search.best);
    if (!plan) return search;
    auto added = simulated.add(std::move(*plan), number, fleet, options);
    if (!added) return fail(std::move(added.error()));
  }
  return search;
}

/// Why this one of the simulated plans was taken; empty: it is the first by closed form.
std::string why_taken(const Simulated& simulated, std::size_t taken, std::size_t equal,
                      objective::Objective objective) {
  const std::size_t number = simulated.numbers[taken];
  if (taken != simulated.best) {
    return fmt::format("number {} by closed form, taken because fewest GPUs change their work", number + 1);
  }
  if (simulated.expected_gain > 0) {
    return fmt::format(
        "number {} by closed form, which own runs expect to be {:.1f} % faster than the {} by prediction", number + 1,
        simulated.expected_gain * 100, objective == objective::Objective::kThroughput ? "fastest" : "best");
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
                     objective == objective::Objective::kThroughput ? "fastest" : "best", equal);
}

std::set<std::string> types_without_price(const cluster::Fleet& fleet) {
  std::set<std::string> names;
  for (const cluster::Node& node : fleet.nodes) {
    if (node.price_per_hour.value() > 0) continue;
    for (const cluster::DeviceGroup& group : node.groups) {
      if (!(group.device.price_per_hour.value() > 0)) names.insert(group.device.name);
    }
  }
  return names;
}

std::set<std::string> types_of(const cluster::Fleet& fleet) {
  std::set<std::string> names;
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) names.insert(group.device.name);
  }
  return names;
}

/// A label goes on to every later cut, and deep models have as many more of them: fewer labels take the same time.
std::int64_t usual_budget(const cluster::Fleet& fleet, const model::Model& model) {
  constexpr std::int64_t kUsualDepth = 256;
  constexpr std::int64_t kLeast = 10'000;
  const std::int64_t labels = compose::usual_label_budget(fleet.gpu_count());
  const std::int64_t blocks = model.block_count();
  if (blocks <= kUsualDepth) return labels;
  return std::max(labels * kUsualDepth / blocks * kUsualDepth / blocks, kLeast);
}

}  // namespace

Expected<void> check_prices(const objective::Request& request, const cluster::Fleet& fleet) {
  if (!request.budget && request.objective != objective::Objective::kCost) return {};
  const std::set<std::string> names = types_without_price(fleet);
  if (names.empty()) return {};
  return fail(
      problem(ErrorKind::kInput, "no-price", fmt::format("no price is known of {}", fmt::join(names, ", ")),
              "give the nodes a \"price_per_hour_usd\" in the cluster file, or --set 'gpu(TYPE).price=DOLLARS'"));
}

Expected<void> check_constraints(const model::Model& model, const cluster::Fleet& fleet) {
  const std::set<std::string> types = types_of(fleet);
  for (const auto& [module, constraint] : constraints(model.graph)) {
    for (const std::string& name : constraint.gpus) {
      const auto named = [&](const std::string& type) { return model::names_gpu_type(name, type); };
      if (std::ranges::any_of(types, named)) continue;
      return fail(problem(ErrorKind::kInput, "no-gpus",
                          fmt::format("\"{}\" is to run on {}, which the fleet does not have", module, name),
                          fmt::format("it has {}", fmt::join(types, ", "))));
    }
  }
  return {};
}

PlanOptions usual_options(const cluster::Fleet& fleet, const model::Model& model) {
  PlanOptions options;
  options.pipelines = Pipelines::kAuto;
  options.look_at_runtimes = true;
  options.look_at_colocated = true;
  options.search.label_budget = usual_budget(fleet, model);
  return options;
}

Expected<Planned> make_plan(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options,
                            const compose::ProgressCallback& progress) {
  if (const auto own = as_run(model, options)) return make_plan(fleet, own->model(), own->options(), progress);
  if (!model.job.free_options.empty()) return plan_with_free_options(fleet, model, options, progress);
  if (auto priced = check_prices(options.request, fleet); !priced) return fail(std::move(priced.error()));
  if (auto known = check_constraints(model, fleet); !known) return fail(std::move(known.error()));
  if (const auto refused = plan::model_refusals(options.target, model); !refused.empty()) {
    return fail(refusals(refused, options.target, "train this model, which breaks", "plan for --target generic"));
  }
  const Planning planning(fleet, model, options, progress);
  auto searched = planning.search_best();
  compose::SearchResult& found = searched.found;
  if (found.best.empty()) {
    return fail(parallelizer::any_failed(found.parallelizers) ? parallelizer::failures_of(found.parallelizers)
                                                              : std::move(found.infeasible));
  }

  const std::vector<compose::Composition> shortlist = found.shortlist();
  Planned planned;
  planned.candidates = shortlist.size();
  planned.search_finished = found.finished;
  auto simulated = simulate_all(planning, shortlist, fleet, options);
  if (!simulated && may_look_further(options)) return make_plan(fleet, model, further(options), progress);
  if (!simulated) return fail(std::move(simulated.error()));
  if (may_differ(options, fleet.gpu_count())) {
    const auto effort = add_unequal(planning, found, shortlist.size(), fleet, options, *simulated);
    if (!effort) return fail(effort.error());
    planned.statistics += effort->statistics;
    for (std::size_t i = 0; i < effort->parallelizers.size(); ++i) {
      found.parallelizers[i].add(effort->parallelizers[i]);
    }
  }
  simulated->heed(options.own_runs, options.request.objective);
  const std::size_t taken = options.choose ? options.choose(simulated->plans, simulated->best) : simulated->best;
  planned.plan = std::move(simulated->plans[taken]);
  planned.chosen = simulated->numbers[taken];
  set_provenance(planned.plan, fleet, model, searched, options);
  planned.plan.provenance.note =
      note_of(searched, options, planning.deadline(),
              why_taken(*simulated, taken, shortlist.size(), options.request.objective), fleet, model);

  const PlanOptions looks =
      planning.no_dearer_than(planned.chosen < shortlist.size() ? shortlist[planned.chosen] : shortlist.front());
  if (looks_at_runtimes(options, fleet)) {
    planned.plan.provenance.runs_on = look_at_runtimes(shortlist, fleet, model, looks, progress);
  }

  if (looks_at_measured(planned.plan, options)) {
    add_note(planned.plan.provenance.note, measured_note(planned.plan, fleet, model, options, progress));
  }

  const bool equal = planned.chosen < shortlist.size();
  add_note(planned.plan.provenance.note, further_note(planned.plan, !equal, options));
  set_time_limit(planned.plan.provenance, planning.deadline());
  explain_idle(planned.plan, equal ? static_cast<int>(planned.plan.pipelines.size()) : 1, options.request);
  planned.plan.targets = plan::target_verdicts(planned.plan);

  if (takes_too_long(planned.plan)) return fail(too_long());
  if (looks_at_colocated(options, model)) {
    auto other = make_plan(fleet, model, for_colocated(options, found.best.front().closed_form), progress);
    if (other && other->plan.predicted.iteration < planned.plan.predicted.iteration) {
      add_note(other->plan.provenance.note, colocated_note(planned.plan, other->plan));
      other->statistics += found.statistics;
      return other;
    }
  }
  const plan::CheckReport judged = plan::check(planned.plan, fleet, &model);
  if (!judged.ok()) return fail(bugs_of(judged));
  planned.statistics += found.statistics;
  planned.parallelizers = std::move(found.parallelizers);
  planned.space = std::move(found.space);
  return planned;
}

}  // namespace tangram::planner
