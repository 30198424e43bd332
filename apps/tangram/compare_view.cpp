#include "compare_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "plan_sentences.hpp"
#include "table.hpp"
#include "words.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;
using baseline::Candidate;

std::string dollars(double cost) { return cost > 0 ? fmt::format("${:.3f}", cost) : "-"; }

std::string planning_text(double seconds) { return seconds > 0 ? people_time(seconds) : "-"; }

std::string name_of(const planner::ComparedPlanner& line) { return fmt::format("{} ({})", line.name, line.mode); }

/// What became of the plan that the planner itself puts first.
std::string first_text(const planner::ComparedPlanner& line) {
  const Candidate* reported = line.verdict.reported();
  if (reported == nullptr) return "no plan";
  if (reported->label == baseline::Label::kOk) return "ok";
  const Candidate* usable = line.verdict.usable();
  const std::string label(baseline::to_string(reported->label));
  return usable == nullptr    ? fmt::format("{}; none of {} runs", label, line.verdict.judged.size())
         : usable == reported ? label
                              : fmt::format("{}; number {} runs", label, usable->rank);
}

std::string plans_table(const planner::Comparison& comparison, const Terminal& terminal) {
  Table table({{"planner"},
               {"iteration", true},
               {"tangram is", true},
               {"claims", true},
               {"GPUs", true},
               {"$/Mtoken", true},
               {"plans", true},
               {"planned in", true},
               {"its first plan", false, 14}});
  const auto& ours = comparison.ours;
  table.add({{"tangram", Style::kBold},
             {people_time(comparison.iteration_s()), Style::kBold},
             {""},
             {people_time(to_seconds(ours.predicted.closed_form))},
             {fmt::format("{}", ours.ranks.size())},
             {dollars(ours.predicted.cost_per_mtoken)},
             {thousands(comparison.labels)},
             {planning_text(comparison.planning_s)},
             {"ok"}});
  for (const planner::ComparedPlanner& line : comparison.planners) {
    const Candidate* usable = line.verdict.usable();
    const plan::LaunchPlan* plan = line.verdict.plan();
    const double ratio = line.iteration_s() / comparison.iteration_s();
    const bool slower = ratio < 1;
    table.add({{name_of(line)},
               {usable != nullptr ? people_time(line.iteration_s()) : "-"},
               {usable != nullptr ? fmt::format("{:.2f}x", ratio) : "alone", slower ? Style::kRed : Style::kGreen},
               {usable != nullptr && usable->claimed > 0 ? people_time(usable->claimed) : "-"},
               {plan != nullptr ? fmt::format("{}", plan->ranks.size()) : "-"},
               {plan != nullptr ? dollars(plan->predicted.cost_per_mtoken) : "-"},
               {thousands(line.effort.examined) + (line.effort.cut ? "+" : "")},
               {planning_text(line.planning_s)},
               {first_text(line)}});
  }
  return table.render(terminal);
}

std::string step_text(const planner::AblationStep& step, double ours) {
  if (!step.used) return "not in the plan";
  if (step.iteration_s == 0) return "no plan fits";
  return fmt::format("{}, {:.2f}x", people_time(step.iteration_s), step.iteration_s / ours);
}

/// All but the last step are of one technique.
std::string without_text(const planner::AblationStep& step) {
  if (step.forbidden.size() == 1) return step.forbidden.front();
  return "all of these but mixed_stages: the space of metis and sailor";
}

std::string ablation_table(const planner::Comparison& comparison, const Terminal& terminal) {
  Table table({{"without", false, 20}, {"our plan takes", true}});
  for (const planner::AblationStep& step : comparison.ablation) {
    table.add(
        {{without_text(step)}, {step_text(step, comparison.iteration_s()), step.used ? Style::kPlain : Style::kDim}});
  }
  return table.render(terminal);
}

std::string formula_table(const planner::Comparison& comparison, const Terminal& terminal) {
  Table table({{"by the formula of", false, 17}, {"its plan", true}, {"ours", true}, {"ours in its space", true}});
  for (const planner::FormulaLine& line : comparison.formulas) {
    table.add(
        {{line.planner}, {claim_text(line.its_plan)}, {claim_text(line.ours)}, {claim_text(line.ours_in_its_space)}});
  }
  return table.render(terminal);
}

std::string notes_of(const planner::Comparison& comparison, const Terminal& terminal) {
  std::string out;
  for (const planner::ComparedPlanner& line : comparison.planners) {
    if (line.mode == "repaired" && !out.empty() && line.notes.empty()) continue;
    for (const std::string& note : line.notes) {
      for (const std::string& text : wrapped(fmt::format("{}: {}", name_of(line), note), terminal.text_width()))
        out += text + "\n";
    }
  }
  return out;
}

/// As launch plans have them.
Json chosen_options_json(const std::vector<plan::ChosenOption>& options) {
  Json json = Json::array();
  for (const plan::ChosenOption& chosen : options) {
    json.push_back({{"option", model::to_string(chosen.option)}, {"value", chosen.value}});
    if (chosen.gain) json.back()["gain"] = *chosen.gain;
  }
  return json;
}

Json candidate_json(const Candidate& candidate) {
  Json json{{"rank", candidate.rank},
            {"label", baseline::to_string(candidate.label)},
            {"claimed_s", candidate.claimed},
            {"stages", candidate.text}};
  if (!candidate.reason.empty()) json["reason"] = candidate.reason;
  if (!candidate.plan) return json;
  const plan::Predicted& p = candidate.plan->predicted;
  json["iteration_s"] = to_seconds(p.iteration);
  json["tokens_per_s"] = p.tokens_per_s;
  json["cost_per_mtoken"] = p.cost_per_mtoken;
  json["gpus"] = candidate.plan->ranks.size();
  return json;
}

Json planner_json(const planner::ComparedPlanner& line, double ours) {
  Json json{{"planner", line.name}, {"mode", line.mode}, {"summary", line.summary}};
  const Candidate* usable = line.verdict.usable();
  json["ratio"] = usable != nullptr ? Json(line.iteration_s() / ours) : Json(nullptr);
  json["planning_cpu_s"] = line.planning_s;
  json["effort"] = {{"layouts", line.effort.layouts},
                    {"examined", line.effort.examined},
                    {"costed", line.effort.costed},
                    {"cut", line.effort.cut}};
  json["tried"] = line.verdict.judged.size();
  json["not_tried"] = line.verdict.left;
  json["reported"] = line.verdict.reported() != nullptr ? candidate_json(*line.verdict.reported()) : Json(nullptr);
  json["usable"] = usable != nullptr ? candidate_json(*usable) : Json(nullptr);
  json["lacks"] = line.lacks;
  json["notes"] = line.notes;
  return json;
}

}  // namespace

std::string claim_text(const std::optional<double>& seconds) { return seconds ? people_time(*seconds) : "-"; }

std::string as_run_by(runtime::Target target) {
  if (target == runtime::Target::kGeneric) return "";
  return fmt::format(", as {} runs them", runtime::runtime_of(target).title);
}

std::string comparison_for_people(const planner::Comparison& comparison, const Terminal& terminal) {
  const plan::LaunchPlan& ours = comparison.ours;
  std::string out = fmt::format("{} on {} ({}): all plans under one simulator and one memory model{}\n\n{}",
                                ours.model.name, ours.fleet_name, counted(ours.fleet_gpus, "GPU"),
                                as_run_by(ours.runtime), plans_table(comparison, terminal));
  if (const auto& options = ours.provenance.options; !options.empty()) {
    out += "\n" + labelled(terminal, "options", options_line(options));
  }
  if (const std::string notes = notes_of(comparison, terminal); !notes.empty()) out += "\n" + notes;
  if (!comparison.ablation.empty()) out += "\n" + ablation_table(comparison, terminal);
  if (!comparison.formulas.empty()) out += "\n" + formula_table(comparison, terminal);
  if (comparison.time_limit > 0) out += "\n" + labelled(terminal, "note", time_limit_text(comparison.time_limit));
  return out;
}

nlohmann::ordered_json comparison_json(const planner::Comparison& comparison) {
  const plan::LaunchPlan& ours = comparison.ours;
  Json json{{"fleet", ours.fleet_name}, {"fleet_gpus", ours.fleet_gpus}, {"model", ours.model.name}};
  json["target"] = runtime::to_string(ours.runtime);
  json["tangram"] = {{"iteration_s", comparison.iteration_s()},           {"tokens_per_s", ours.predicted.tokens_per_s},
                     {"cost_per_mtoken", ours.predicted.cost_per_mtoken}, {"gpus", ours.ranks.size()},
                     {"planning_cpu_s", comparison.planning_s},           {"labels", comparison.labels},
                     {"search_finished", comparison.search_finished},     {"optimal", ours.provenance.optimal}};
  if (const auto& options = ours.provenance.options; !options.empty()) {
    json["tangram"]["chosen_options"] = chosen_options_json(options);
  }
  if (comparison.time_limit > 0) json["time_limit_s"] = comparison.time_limit;
  json["planners"] = Json::array();
  for (const planner::ComparedPlanner& line : comparison.planners) {
    json["planners"].push_back(planner_json(line, comparison.iteration_s()));
  }
  json["ablation"] = Json::array();
  for (const planner::AblationStep& step : comparison.ablation) {
    Json entry{{"forbidden", step.forbidden}, {"used", step.used}};
    entry["iteration_s"] = step.iteration_s > 0 ? Json(step.iteration_s) : Json(nullptr);
    entry["slower"] = step.iteration_s > 0 ? Json(step.iteration_s / comparison.iteration_s()) : Json(nullptr);
    json["ablation"].push_back(std::move(entry));
  }
  json["formulas"] = Json::array();
  for (const planner::FormulaLine& line : comparison.formulas) {
    const auto number = [](const std::optional<double>& seconds) { return seconds ? Json(*seconds) : Json(nullptr); };
    json["formulas"].push_back({{"planner", line.planner},
                                {"its_plan_s", number(line.its_plan)},
                                {"ours_s", number(line.ours)},
                                {"ours_in_its_space_s", number(line.ours_in_its_space)}});
  }
  return json;
}

}  // namespace tangram::app
