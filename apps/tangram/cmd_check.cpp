#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "table.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/planner/checked_plan.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct CheckArguments {
  std::string plan;
  std::string cluster;  ///< empty: not given
  std::string model;
};

Parameters parameters_of(CheckArguments& a) {
  return {{{"PLAN", "a launch plan", &a.plan}},
          {{"cluster", "CLUSTER", "the fleet the plan was made for", &a.cluster},
           {"model", "MODEL", "the model the plan was made for", &a.model}}};
}

struct CheckInputs {
  plan::LaunchPlan plan;
  std::optional<cluster::Fleet> fleet;
  std::optional<model::Model> model;
};

/// All files, with the mistakes of all.
Expected<CheckInputs> load_inputs(const CheckArguments& arguments) {
  CheckInputs inputs;
  Diagnostics mistakes;
  take(load_plan(arguments.plan), inputs.plan, mistakes);
  if (!arguments.cluster.empty()) take(load_fleet(arguments.cluster), inputs.fleet, mistakes);
  if (!arguments.model.empty()) {
    // What the options of `plan` replaced in the model file is no difference of the model.
    const model::Job& job = inputs.plan.model.job;
    model::JobOverrides overrides;
    if (mistakes.empty()) {
      overrides = {job.sequence_length, job.global_batch, job.microbatch, frozen_parts(inputs.plan.model.graph)};
      overrides.constraints = constraints(inputs.plan.model.graph);
      overrides.adapters = model::adapters_of(inputs.plan.model);
    }
    take(load_model(arguments.model, overrides), inputs.model, mistakes);
    if (inputs.model) inputs.model->job.allow = job.allow;
    for (const plan::ChosenOption& chosen : inputs.plan.provenance.options) {
      if (inputs.model) inputs.model->job.free_options.add(chosen.option);
    }
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

Json document_of(const plan::CheckReport& report) {
  Json json;
  json["schema"] = "tangram.check/1";
  json["status"] = report.ok() ? "ok" : "violations";
  json["stages"] = report.stages;
  json["ranks"] = report.ranks;
  json["transfers"] = report.transfers;
  json["closed_form_s"] = to_seconds(report.closed_form);
  json["tightest_memory"] = report.tightest_memory;
  json["tightest_stage"] = report.tightest_stage;
  json["violations"] = Json::array();
  for (const plan::Violation& v : report.violations) {
    json["violations"].push_back({{"code", v.code}, {"where", v.where}, {"message", v.message}});
  }
  return json;
}

std::string for_people(const plan::CheckReport& report, const Terminal& terminal) {
  if (report.ok()) {
    return fmt::format("{}: {}, {}, {}; fullest memory {:.1f} % of usable (stage {}); closed form {}\n",
                       terminal.styled("ok", Style::kGreen), counted(report.stages, "stage"),
                       counted(report.ranks, "rank"), counted(report.transfers, "transfer"),
                       report.tightest_memory * 100, report.tightest_stage,
                       people_time(to_seconds(report.closed_form)));
  }
  Table table({{"code"}, {"where", false, 12}, {"what does not hold", false, 40}});
  for (const plan::Violation& v : report.violations) table.add({{v.code, Style::kRed}, {v.where}, {v.message}});
  return fmt::format("{}\n{}", counted(static_cast<std::int64_t>(report.violations.size()), "violation"),
                     table.render(terminal));
}

/// A plan that lacks lists, and nothing else is wrong with it, is a wrong plan: it was cut, not mistaken for another
/// file.
Diagnostics judged_incomplete(Diagnostics mistakes) {
  const auto is_cut = [](const Diagnostic& mistake) { return mistake.code == "missing-list"; };
  if (!std::ranges::all_of(mistakes, is_cut)) return mistakes;
  for (Diagnostic& mistake : mistakes) mistake.kind = ErrorKind::kInfeasible;
  return mistakes;
}

ExitCode run_check(const CheckArguments& arguments, const Context& context) {
  if (arguments.cluster.empty() && !arguments.model.empty()) {
    return report(context.terminal, context.json, usage_mistake("model-without-cluster", "--model needs --cluster"));
  }
  const auto inputs = load_inputs(arguments);
  if (!inputs) return report(context.terminal, context.json, judged_incomplete(inputs.error()));
  const auto& [written, fleet, model] = *inputs;
  const model::Model* wanted = model ? &*model : nullptr;
  const plan::CheckReport judged = fleet ? planner::full_check(written, *fleet, wanted) : planner::full_check(written);
  return print_result(context, for_people(judged, context.terminal), document_of(judged),
                      judged.ok() ? ExitCode::kOk : ExitCode::kInfeasible);
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .usage = "PLAN",
          .summary = "check a written plan",
          .examples = R"(  tangram check plan.json
  tangram check plan.json --cluster fleet.json --model model.yaml
)",
          .details = R"(Recomputes structure, memory, times, rates and runtime verdicts from the file
alone and lists what does not hold. Bounds and gaps must be consistent with the
times; the search is not repeated. --cluster and --model also compare hosts,
links, prices and layers with the inputs. Exit 0: the plan is valid; 3: it has
violations; 4: the file is not a launch plan.

Manual: tangram help plans
)",
          .bind = bound<CheckArguments>(parameters_of, run_check)};
}

}  // namespace tangram::app
