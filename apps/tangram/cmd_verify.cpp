#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "plan_view.hpp"
#include "table.hpp"
#include "tangram/execute/verify.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct VerifyArguments {
  std::string plan;
  std::string fault;  ///< empty: none is injected
};

Parameters parameters_of(VerifyArguments& a) {
  const std::vector<std::string> faults = names_of(execute::fault_names());
  return {{{"PLAN", "a launch plan", &a.plan}},
          {{"inject", "FAULT", fmt::format("inject a fault: {}", fmt::join(faults, ", ")), &a.fault, faults}}};
}

Expected<execute::VerifyOptions> options_of(const VerifyArguments& arguments) {
  execute::VerifyOptions options;
  if (arguments.fault.empty()) return options;
  for (const execute::FaultName& fault : execute::fault_names()) {
    if (fault.name == arguments.fault) options.fault = fault.fault;
  }
  if (options.fault) return options;
  const std::vector<std::string> names = names_of(execute::fault_names());
  return fail(usage_mistake("unknown-fault", fmt::format("--inject {}: no such fault", arguments.fault),
                            suggestion(arguments.fault, names, listing("faults", names))));
}

/// Rounding of the last bits depends on the machine and says nothing.
constexpr double kRounding = 1e-12;

std::string error_text(double error) { return error <= kRounding ? "< 1e-12" : fmt::format("{:.1e}", error); }

std::string worst_text(const execute::Worst& worst) {
  if (worst.error <= kRounding) return "all differ by less than 1e-12";
  return fmt::format("largest difference {:.1e}, {} on rank {}", worst.error, worst.name, worst.rank);
}

std::string findings_text(const execute::Report& report, const Terminal& terminal) {
  Table table({{"code"}, {"where", false, 12}, {"what does not hold", false, 40}});
  for (const execute::Finding& f : report.findings) table.add({{f.code, Style::kRed}, {f.where}, {f.message}});
  return fmt::format("{}\n{}", counted(static_cast<std::int64_t>(report.findings.size()), "finding"),
                     table.render(terminal));
}

std::string reduced_text(const execute::Report& report) {
  if (report.shrunk.empty()) return "nothing: every rank, block and sample ran";
  std::vector<std::string> parts;
  parts.reserve(report.shrunk.size());
  for (const execute::Shrunk& shrunk : report.shrunk) {
    parts.push_back(fmt::format("{} {} of {}", shrunk.what, thousands(shrunk.kept), thousands(shrunk.of)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string stage_table(const plan::LaunchPlan& plan, const execute::Report& report, const Terminal& terminal) {
  Table table({{"pipeline", true},
               {"stage", true},
               {"layers"},
               {"parallel", false, 16},
               {"ranks run", true},
               {"in flight", true},
               {"gradients differ", true}});
  for (const execute::StageReport& stage : report.stages) {
    if (!stage.executed) continue;
    const plan::Stage& written = plan.stage(stage.stage);
    std::vector<std::string> parallel;
    parallel.reserve(written.parts.size());
    for (const plan::Part& part : written.parts) parallel.push_back(strategy_text(part.strategy));
    const bool right = stage.in_flight == stage.planned;
    table.add({{fmt::format("{}", stage.pipeline)},
               {fmt::format("{}", stage.stage)},
               {layers_text(written)},
               {fmt::format("{}", fmt::join(parallel, " + "))},
               {fmt::format("{}", stage.ranks)},
               {right ? fmt::format("{}", stage.in_flight) : fmt::format("{} not {}", stage.in_flight, stage.planned),
                right ? Style::kPlain : Style::kRed},
               {error_text(stage.gradient.error)}});
  }
  return table.render(terminal);
}

/// Empty: the plan has no colocated encoders.
std::string encoder_table(const execute::Report& report, const Terminal& terminal) {
  if (report.encoders.empty()) return "";
  Table table({{"encoder"}, {"trained"}, {"lanes run", true}, {"samples held", true}, {"gradients differ", true}});
  for (const execute::EncoderReport& encoder : report.encoders) {
    const bool right = encoder.held == encoder.planned_held;
    table.add({{encoder.module},
               {encoder.trained ? "yes" : "no"},
               {fmt::format("{}", encoder.lanes)},
               {right ? fmt::format("{}", encoder.held) : fmt::format("{} not {}", encoder.held, encoder.planned_held),
                right ? Style::kPlain : Style::kRed},
               {encoder.trained ? error_text(encoder.gradient.error) : "-"}});
  }
  return "\n" + table.render(terminal);
}

std::string for_people(const plan::LaunchPlan& plan, const execute::Report& report, const Terminal& terminal) {
  std::string out;
  if (!report.ok()) out += findings_text(report, terminal);
  if (!report.executed) return out;
  if (report.ok()) {
    out += fmt::format("{}: the plan computes what one process computes\n", terminal.styled("ok", Style::kGreen));
  }
  const std::vector<std::pair<const char*, std::string>> lines{
      {"loss", fmt::format("{:.12f}, one process {:.12f}", report.loss, report.reference_loss)},
      {"gradients", fmt::format("of {}: {}", counted(report.matrices, "weight"), worst_text(report.gradient))},
      {"after SGD", worst_text(report.weight)},
      {"traffic",
       fmt::format("{}, {}", counted(report.messages, "message"), counted(report.collectives, "collective"))},
      {"reduced", reduced_text(report)}};
  for (const auto& [label, text] : lines) {
    const char* shown = label;
    for (const std::string& line : wrapped(text, terminal.text_width() - 11)) {
      out += fmt::format("{:<9}  {}\n", shown, line);
      shown = "";
    }
  }
  return out + "\n" + stage_table(plan, report, terminal) + encoder_table(report, terminal);
}

Json json_of(const execute::Worst& worst) {
  Json json;
  json["error"] = worst.error;
  json["matrix"] = worst.name;
  json["rank"] = worst.rank;
  return json;
}

Json encoders_json(const execute::Report& report) {
  Json list = Json::array();
  for (const execute::EncoderReport& encoder : report.encoders) {
    Json entry;
    entry["module"] = encoder.module;
    if (report.executed) {
      entry["trained"] = encoder.trained;
      entry["lanes"] = encoder.lanes;
      entry["held"] = encoder.held;
      entry["planned_held"] = encoder.planned_held;
      if (encoder.trained) entry["gradient"] = json_of(encoder.gradient);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json document_of(const execute::Report& report) {
  Json json;
  json["schema"] = "tangram.verification/1";
  json["status"] = report.ok() ? "ok" : "violations";
  json["executed"] = report.executed;
  json["tolerance"] = execute::kTolerance;
  if (report.executed) {
    json["loss"] = report.loss;
    json["reference_loss"] = report.reference_loss;
    json["loss_error"] = report.loss_error;
    json["matrices"] = report.matrices;
    json["gradient"] = json_of(report.gradient);
    json["weight"] = json_of(report.weight);
    json["messages"] = report.messages;
    json["collectives"] = report.collectives;
  }
  json["stages"] = Json::array();
  for (const execute::StageReport& stage : report.stages) {
    Json entry;
    entry["pipeline"] = stage.pipeline;
    entry["stage"] = stage.stage;
    entry["in_flight"] = stage.in_flight;
    entry["planned_in_flight"] = stage.planned;
    entry["ranks"] = stage.ranks;
    if (stage.executed) entry["gradient"] = json_of(stage.gradient);
    json["stages"].push_back(std::move(entry));
  }
  if (!report.encoders.empty()) json["encoders"] = encoders_json(report);
  json["reduced"] = Json::array();
  for (const execute::Shrunk& shrunk : report.shrunk) {
    json["reduced"].push_back({{"what", shrunk.what}, {"kept", shrunk.kept}, {"of", shrunk.of}});
  }
  json["violations"] = Json::array();
  for (const execute::Finding& f : report.findings) {
    json["violations"].push_back({{"code", f.code}, {"where", f.where}, {"message", f.message}});
  }
  return json;
}

ExitCode run_verify(const VerifyArguments& arguments, const Context& context) {
  const auto options = options_of(arguments);
  if (!options) return report(context.terminal, context.json, options.error());
  const auto plan = load_plan(arguments.plan);
  if (!plan) return report(context.terminal, context.json, plan.error());
  const auto verified = execute::verify(*plan, *options);
  if (!verified) return report(context.terminal, context.json, verified.error());
  return print_result(context, for_people(*plan, *verified, context.terminal), document_of(*verified),
                      verified->ok() ? ExitCode::kOk : ExitCode::kInfeasible);
}

}  // namespace

Command verify_command() {
  return {.name = "verify",
          .usage = "PLAN",
          .summary = "execute a small model as planned, compare with one process",
          .examples = R"(  tangram verify plan.json
  tangram verify plan.json --inject missing-all-reduce   (must be detected)
  tangram verify plan.json --json | jq .gradient
)",
          .details = R"(Runs one iteration of a small model in fp64 with the plan's stages, degrees,
ZeRO, recompute, transfers and warm-ups, with all ranks in this process. The
loss, every gradient and the weights after one SGD step must equal those of one
process to 1e-9, and what is frozen must not change. Colocated encoders run in
their own lanes, in turn with the language model. It also counts the
microbatches in flight and proves that the order of passes cannot deadlock. What
repeats in a large plan is run twice; the output lists what was left out. Exit
0: all results are equal; 3: they differ, and the output says where; 4: the file
is not a launch plan.

Manual: tangram help plans
)",
          .bind = bound<VerifyArguments>(parameters_of, run_verify)};
}

}  // namespace tangram::app
