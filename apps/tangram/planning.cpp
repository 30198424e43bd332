#include "planning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "idle.hpp"
#include "parallelizers.hpp"
#include "tangram/base/digest.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::app {

namespace {

FlopsPerSecond fleet_peak(const cluster::Fleet& fleet, DType precision) {
  double peak = 0;
  for (const cluster::Node& node : fleet.nodes) {
    for (const cluster::DeviceGroup& group : node.groups) {
      peak += cost::matrix_peak(group.device, precision).value() * group.count;
    }
  }
  return FlopsPerSecond(peak);
}

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

/// What a reader must know about how the plan was chosen; empty when it is simply the best.
std::string note_of(const compose::SearchResult& result, std::size_t chosen) {
  std::vector<std::string> notes;
  if (chosen > 0) {
    notes.push_back(
        fmt::format("number {} by closed form, the fastest of {} simulated", chosen + 1, result.best.size()));
  }
  if (!result.optimal) {
    notes.push_back(fmt::format("the search ended with its budget after {} labels", result.statistics.labels));
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

bool any_failed(const std::vector<parallelizer::Tally>& tallies) {
  return std::ranges::any_of(tallies, [](const parallelizer::Tally& tally) { return tally.failures() > 0; });
}

void set_provenance(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model,
                    const cluster::IslandHierarchy& hierarchy, const compose::SearchResult& result,
                    std::size_t chosen) {
  const compose::Composition& composition = result.best[chosen];
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
  p.level = hierarchy.levels[static_cast<std::size_t>(composition.level)].name;
  // `optimal` speaks of the closed form: a plan that simulation prefers keeps it only when it is as fast by that too.
  // Where a parallelizer left queries open, its frontiers are not those the space speaks of.
  const bool whole = !any_failed(result.parallelizers);
  p.optimal = whole && result.optimal && composition.closed_form == result.best.front().closed_form;
  p.search_bound = whole ? result.search_bound : result.relaxed_bound;
  p.relaxed_bound = result.relaxed_bound;
  p.search_gap = gap(composition.closed_form, p.search_bound);
  p.relaxed_gap = gap(composition.closed_form, result.relaxed_bound);
  p.note = note_of(result, chosen);
}

Diagnostic bug(std::string code, std::string message) {
  Diagnostic diagnostic;
  diagnostic.kind = ErrorKind::kInternal;
  diagnostic.code = std::move(code);
  diagnostic.message = std::move(message);
  diagnostic.hint = "this is a bug of tangram; please report it with the input files";
  return diagnostic;
}

Diagnostics bugs_of(const plan::CheckReport& report) {
  Diagnostics bugs;
  for (const plan::Violation& v : report.violations) {
    bugs.push_back(bug(v.code, fmt::format("the plan does not pass its check: {}: {}", v.where, v.message)));
  }
  return bugs;
}

/// Rules of the target that speak of hosts and paths are judged on the whole plan.
std::vector<plan::TargetReason> reasons_against(const plan::LaunchPlan& plan, compose::Target target) {
  for (plan::TargetVerdict& verdict : plan::target_verdicts(plan)) {
    if (verdict.target == to_string(target)) return std::move(verdict.reasons);
  }
  return {};
}

Diagnostics not_runnable(const std::vector<plan::TargetReason>& reasons, compose::Target target) {
  Diagnostics refusals;
  for (const plan::TargetReason& reason : reasons) {
    Diagnostic diagnostic;
    diagnostic.kind = ErrorKind::kInfeasible;
    diagnostic.code = reason.code;
    diagnostic.message = fmt::format("{} cannot run the best plans that were found: {}: {}", to_string(target),
                                     reason.code, reason.text);
    if (refusals.empty()) diagnostic.hint = "simulate more plans with --top, or plan for --target generic";
    refusals.push_back(std::move(diagnostic));
  }
  return refusals;
}

/// What the target costs; the plan without it is searched for as well.
std::string target_note(const plan::LaunchPlan& plan, const plan::LaunchPlan& generic, compose::Target target) {
  const double own = to_seconds(plan.predicted.iteration);
  const double other = to_seconds(generic.predicted.iteration);
  return fmt::format("target {} costs {:.1f} %: {:.4g} s an iteration, {:.4g} s without it", to_string(target),
                     (own / other - 1) * 100, own, other);
}

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

Expected<PlannedResult> make_plan(const cluster::Fleet& fleet, const model::Model& model,
                                  const PlanningOptions& options, const compose::ProgressCallback& progress) {
  const cluster::IslandHierarchy hierarchy = cluster::find_islands(fleet, options.island_tolerance);
  const auto enumerator = parallelizer::make_enumerator(model, options.search.profiles);
  std::vector<const parallelizer::Parallelizer*> parallelizers = options.parallelizers;
  if (parallelizers.empty()) parallelizers.push_back(enumerator.get());
  auto found = compose::search_target(options.target, model, hierarchy, parallelizers, options.search, progress);
  if (found.best.empty()) {
    return fail(any_failed(found.parallelizers) ? failures_of(found.parallelizers) : std::move(found.infeasible));
  }

  PlannedResult planned;
  planned.candidates = found.best.size();
  planned.search_finished = found.optimal;
  std::vector<plan::TargetReason> refused;
  bool any = false;
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    const auto& level = hierarchy.levels[static_cast<std::size_t>(found.best[i].level)];
    plan::LaunchPlan candidate = plan::assemble(found.best[i], fleet, level, model, options.search.profiles);
    if (auto reasons = reasons_against(candidate, options.target); !reasons.empty()) {
      if (refused.empty()) refused = std::move(reasons);
      continue;
    }
    const simulate::Result result = simulate::simulate(simulate::schedule_of(candidate));
    if (result.deadlock) return fail(bug("deadlock", "the schedule of a plan cannot finish"));
    simulate::predict(candidate, result, fleet_peak(fleet, model.job.precision));
    if (any && candidate.predicted.iteration >= planned.plan.predicted.iteration) continue;
    planned.plan = std::move(candidate);
    planned.chosen = i;
    any = true;
  }
  if (!any) return fail(not_runnable(refused, options.target));
  const compose::Composition& chosen = found.best[planned.chosen];
  set_provenance(planned.plan, fleet, model, hierarchy, found, planned.chosen);
  if (options.search.profiles != nullptr) {
    planned.plan.provenance.inputs.push_back({"profiles", digest_of(*options.search.profiles)});
  }

  if (options.target != compose::Target::kGeneric) {
    PlanningOptions free = options;
    free.target = compose::Target::kGeneric;
    const auto generic = make_plan(fleet, model, free, progress);
    if (!generic) return fail(generic.error());
    std::string& note = planned.plan.provenance.note;
    note = target_note(planned.plan, generic->plan, options.target) + (note.empty() ? "" : "; ") + note;
  }

  explain_idle(planned.plan, chosen, hierarchy.levels[static_cast<std::size_t>(chosen.level)],
               planned.plan.provenance.optimal);
  planned.plan.targets = plan::target_verdicts(planned.plan);

  const plan::CheckReport judged = plan::check(planned.plan, fleet, &model);
  if (!judged.ok()) return fail(bugs_of(judged));
  planned.statistics = found.statistics;
  planned.parallelizers = std::move(found.parallelizers);
  planned.space = std::move(found.space);
  return planned;
}

}  // namespace tangram::app
