#include "provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tangram/base/digest.hpp"
#include "tangram/base/version.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::planner {

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
std::string search_text(const objective::RequestResult& result, const objective::Request& request) {
  nlohmann::ordered_json json;
  if (request.budget) json["budget_usd_per_hour"] = request.budget->as_double() * 1e-6;
  if (request.longest_iteration) json["longest_iteration_s"] = to_seconds(*request.longest_iteration);
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

/// How good the plan is by an objective other than throughput.
std::string objective_note(const objective::RequestResult& result, objective::Objective objective) {
  const double share = result.bound > 0 ? (result.value / result.bound - 1) * 100 : 0;
  switch (objective) {
    case objective::Objective::kThroughput: break;
    case objective::Objective::kCost:
      if (result.found.optimal) {
        return fmt::format("by closed form no searched plan is cheaper per token, by {} searches", result.steps);
      }
      return fmt::format("the cheapest per token that {} searches found{}", result.steps,
                         result.bound > 0 ? fmt::format(", at most {:.1f} % above the cheapest possible", share) : "");
    case objective::Objective::kGpus:
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

/// Of all profiles in the order given, because of two that know the same the first counts.
std::string digest_of(const cost::ProfileSet& profiles) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const cost::Profile& profile : profiles.profiles()) all.push_back(cost::profile_json(profile));
  return digest(io::write_compact(all));
}

void add_profiles(const PlanOptions& options, plan::LaunchPlan& plan) {
  if (options.search.profiles == nullptr) return;
  plan.provenance.inputs.push_back({"profiles", digest_of(*options.search.profiles)});
}

}  // namespace

void set_provenance(plan::LaunchPlan& plan, const cluster::Fleet& fleet, const model::Model& model,
                    const objective::RequestResult& searched, const PlanOptions& options) {
  const compose::SearchResult& result = searched.found;
  const Nanoseconds closed_form = plan.predicted.closed_form;
  plan::PlanProvenance& p = plan.provenance;
  p.version = version();
  p.inputs = {{"cluster", fleet.digest}, {"model", model.digest}};
  for (const parallelizer::Tally& tally : result.parallelizers) {
    p.parallelizers.push_back(fmt::format("{} {}", tally.info.name, tally.info.version));
    if (!tally.info.built_in) p.outsiders.push_back(tally);
  }
  p.states = result.statistics.states;
  p.labels = result.statistics.labels;
  p.space = space_text(result.space);
  p.search = search_text(searched, options.request);
  p.objective = objective::to_string(options.request.objective);
  // `optimal` speaks of the closed form: a plan that simulation prefers keeps it only when it is as fast by that too.
  // Stages that lie closer to each other than the space counts on make it faster than all of that.
  // Where a parallelizer left queries open, its frontiers are not those the space speaks of.
  const bool whole = !parallelizer::any_failed(result.parallelizers);
  p.optimal = whole && result.optimal && closed_form <= result.best.front().closed_form;
  p.search_bound = whole ? result.search_bound : result.relaxed_bound;
  // It speaks of the degrees that the built-in parallelizers consider; a plan with others may be faster, and is then
  // itself what nothing known is faster than.
  p.relaxed_bound = std::min({result.relaxed_bound, p.search_bound, closed_form, plan.predicted.iteration});
  // Pipelines that are not alike are no part of what the search speaks of, and may be faster than its bound.
  p.search_gap = std::max(0.0, gap(closed_form, p.search_bound));
  // The relaxation holds pass by pass as well as by closed form.
  p.relaxed_gap = gap(std::min(closed_form, plan.predicted.iteration), p.relaxed_bound);
  add_profiles(options, plan);
}

/// What keeps context parallelism out of the space of a runtime that has it; empty: nothing.
std::string context_note(const model::Model& model, runtime::Target target) {
  const bool has_rule = runtime::runtime_of(target).has(runtime::Rule::kContextKernels);
  const std::string_view conflict = model::context_conflict(model);
  if (!has_rule || !model.job.allow.cp || conflict.empty()) return "";
  return fmt::format("no context parallelism, as {}", conflict);
}

std::string note_of(const objective::RequestResult& searched, const PlanOptions& options, const Deadline& deadline,
                    std::string why_chosen, const cluster::Fleet& fleet, const model::Model& model) {
  const objective::Request& request = options.request;
  const compose::SearchResult& result = searched.found;
  std::vector<std::string> notes = assumed_of(fleet, model);
  if (request.objective != objective::Objective::kThroughput)
    notes.push_back(objective_note(searched, request.objective));
  if (!why_chosen.empty()) notes.push_back(std::move(why_chosen));
  if (std::string text = context_note(model, options.target); !text.empty()) notes.push_back(std::move(text));
  if (!result.finished && !deadline.is_missed()) {
    notes.push_back(
        fmt::format("the search was not finished within its budget, after {} labels", result.statistics.labels));
  }
  for (const parallelizer::Tally& tally : result.parallelizers) {
    if (tally.failures() > 0) notes.push_back(parallelizer::failure_text(tally));
  }
  return fmt::format("{}", fmt::join(notes, "; "));
}

void set_time_limit(plan::PlanProvenance& provenance, const Deadline& deadline) {
  if (!deadline.is_missed()) return;
  provenance.time_limit = deadline.missed_seconds();
  add_note(
      provenance.note,
      fmt::format("the time limit of {:g} s stopped the search, after {} labels: another run may find another plan",
                  provenance.time_limit, provenance.labels));
}

void add_note(std::string& note, const std::string& text) {
  if (text.empty()) return;
  note += (note.empty() ? "" : "; ") + text;
}

}  // namespace tangram::planner
