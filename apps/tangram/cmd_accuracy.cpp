#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "own_runs.hpp"
#include "table.hpp"
#include "tangram/accuracy/report.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct AccuracyArguments {
  std::string dataset;
  std::string gpus;                  ///< a catalogue that comes before the program's own; empty: none
  bool summary = false;              ///< the groups alone
  std::vector<std::string> without;  ///< what the prediction goes without: "hierarchical", "overlap"
};

Parameters parameters_of(AccuracyArguments& a) {
  return {{{"DATASET", "published measurements", &a.dataset}},
          {{"summary", "", "show groups only, not every measurement", &a.summary},
           {"gpus", "FILE", "a catalogue of GPU types that overrides the built-in one", &a.gpus},
           {"without",
            "METHOD",
            "hierarchical: predict without two-level collectives; overlap: without overlapping communication",
            &a.without,
            {"hierarchical", "overlap"},
            /*list=*/true}}};
}

std::string gibibytes(double bytes) { return fmt::format("{:.1f} GiB", bytes / (1024.0 * 1024.0 * 1024.0)); }

std::string lines_table(const std::vector<accuracy::Line>& lines, const Terminal& terminal) {
  Table table({{"measurement"},
               {"grade"},
               {"plan", false, 12},
               {"measured", true},
               {"predicted", true},
               {"error", true},
               {"memory", true},
               {"error", true}});
  for (const accuracy::Line& line : lines) {
    if (!line.timed() && !line.weighed()) continue;
    const auto& measured = line.measurement;
    const bool far = line.timed() && std::abs(line.time_error()) > 0.2;
    table.add({{measured.id},
               {measured.quality},
               {accuracy::parallelism_of(measured)},
               {line.timed() ? people_time(measured.iteration_s) : ""},
               {people_time(line.prediction.iteration_s)},
               {line.timed() ? signed_percent(line.time_error()) : "", far ? Style::kBold : Style::kPlain},
               {line.weighed() ? gibibytes(measured.peak_memory) : ""},
               {line.weighed() ? signed_percent(line.memory_error()) : ""}});
  }
  return table.render(terminal);
}

std::string groups_table(const std::vector<accuracy::Group>& groups, const Terminal& terminal) {
  Table table({{"by"},
               {"group", false, 16},
               {"rows", true},
               {"median", true},
               {"mean", true},
               {"90th", true},
               {"largest", true},
               {"bias", true},
               {"rank", true},
               {"memory rows", true},
               {"median", true}});
  for (const accuracy::Group& group : groups) {
    const bool timed = group.time.count > 0;
    if (!timed && group.memory.count == 0) continue;  // all of it is listed as not expressible
    table.add({{group.kind},
               {group.name},
               {fmt::format("{}", group.time.count)},
               {timed ? table_percent(group.time.median) : ""},
               {timed ? table_percent(group.time.mean) : ""},
               {timed ? table_percent(group.time.p90) : ""},
               {timed ? table_percent(group.time.largest) : ""},
               {timed ? signed_percent(group.time.bias) : ""},
               {group.time.count >= 3 ? fmt::format("{:.2f}", group.spearman) : ""},
               {group.memory.count > 0 ? fmt::format("{}", group.memory.count) : ""},
               {group.memory.count > 0 ? table_percent(group.memory.median) : ""}});
  }
  return table.render(terminal);
}

/// Runs that did not fit, beside what is predicted of them.
std::string failures_table(const std::vector<accuracy::Line>& lines, const Terminal& terminal) {
  Table table({{"ran out of memory"},
               {"grade"},
               {"plan", false, 12},
               {"predicted", true},
               {"of usable memory", true},
               {"found"}});
  bool any = false;
  for (const accuracy::Line& line : lines) {
    if (!line.measurement.out_of_memory || !line.reason.empty()) continue;
    any = true;
    table.add({{line.measurement.id},
               {line.measurement.quality},
               {accuracy::parallelism_of(line.measurement)},
               {gibibytes(line.predicted_memory())},
               {table_percent(line.prediction.usable_share)},
               {line.refused() ? "yes" : "no"}});
  }
  return any ? "\n" + table.render(terminal) : "";
}

/// Nothing where all runs had enough memory.
std::string verdicts_text(const accuracy::MemoryVerdicts& verdicts) {
  if (verdicts.ran_out == 0) return "";
  return fmt::format("\nPredicted to run out of memory: {} of {} runs that did, {} of {} that did not.\n",
                     verdicts.ran_out_found, verdicts.ran_out, verdicts.ran_refused, verdicts.ran);
}

std::string reasons_table(const std::vector<accuracy::Line>& lines, const Terminal& terminal) {
  Table table({{"not expressible"}, {"grade"}, {"why", false, 40}});
  bool any = false;
  for (const accuracy::Line& line : lines) {
    if (line.reason.empty()) continue;
    any = true;
    table.add({{line.measurement.id}, {line.measurement.quality}, {line.reason}});
  }
  return any ? "\n" + table.render(terminal) : "";
}

Json json_of(const accuracy::Errors& errors) {
  return {{"rows", errors.count}, {"median", errors.median},   {"mean", errors.mean},
          {"p90", errors.p90},    {"largest", errors.largest}, {"bias", errors.bias}};
}

Json json_of(const accuracy::MemoryVerdicts& verdicts) {
  return {{"ran_out", verdicts.ran_out},
          {"ran_out_found", verdicts.ran_out_found},
          {"ran", verdicts.ran},
          {"ran_refused", verdicts.ran_refused}};
}

Json json_of(const accuracy::Line& line) {
  Json json;
  json["id"] = line.measurement.id;
  json["dataset"] = line.measurement.dataset;
  json["quality"] = line.measurement.quality;
  json["plan"] = accuracy::parallelism_of(line.measurement);
  if (line.measurement.iteration_s > 0) json["measured_s"] = line.measurement.iteration_s;
  json["derived"] = line.measurement.derived;
  if (line.measurement.out_of_memory) json["out_of_memory"] = true;
  if (line.measurement.peak_memory > 0) json["measured_peak_bytes"] = line.measurement.peak_memory;
  if (!line.reason.empty()) {
    json["reason"] = line.reason;
    return json;
  }
  const accuracy::Prediction& prediction = line.prediction;
  json["predicted_s"] = prediction.iteration_s;
  json["predicted_peak_bytes"] = line.predicted_memory();
  json["usable_share"] = prediction.usable_share;
  json["bubble"] = prediction.bubble;
  json["exposed_sync_s"] = prediction.sync_s;
  json["optimizer_s"] = prediction.step_s;
  json["provenance"] = cost::to_string(prediction.provenance);
  if (line.timed()) json["time_error"] = line.time_error();
  if (line.weighed()) json["memory_error"] = line.memory_error();
  return json;
}

Json document_of(const std::vector<accuracy::Line>& lines, const std::vector<accuracy::Group>& groups) {
  Json json;
  json["schema"] = "tangram.accuracy/1";
  json["status"] = "ok";
  json["measurements"] = Json::array();
  for (const accuracy::Line& line : lines) json["measurements"].push_back(json_of(line));
  json["groups"] = Json::array();
  for (const accuracy::Group& group : groups) {
    json["groups"].push_back({{"kind", group.kind},
                              {"name", group.name},
                              {"time", json_of(group.time)},
                              {"memory", json_of(group.memory)},
                              {"spearman", group.spearman},
                              {"not_expressible", group.not_expressible}});
  }
  json["memory_verdicts"] = json_of(accuracy::verdicts_of(lines));
  return json;
}

struct AccuracyInputs {
  std::vector<cluster::GpuType> devices;
  cost::ProfileSet profiles;
  std::vector<accuracy::Measurement> measurements;
  std::optional<OwnRuns> own_runs;
};

/// All files, with the mistakes of all; profiles name GPU types, so that without these they are not read.
Expected<AccuracyInputs> load_inputs(const AccuracyArguments& arguments, const Context& context) {
  AccuracyInputs inputs;
  Diagnostics mistakes;
  take(load_devices(arguments.gpus), inputs.devices, mistakes);
  if (mistakes.empty())
    take(load_profiles(context.settings.files("profile"), inputs.devices), inputs.profiles, mistakes);
  take(load_measurements(arguments.dataset), inputs.measurements, mistakes);
  if (const auto own = context.settings.files("own-runs"); !own.empty() && mistakes.empty()) {
    take(load_own_runs(own, inputs.devices, inputs.profiles), inputs.own_runs, mistakes);
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

Expected<cluster::ExecutionMethods> methods_without(const std::vector<std::string>& words) {
  cluster::ExecutionMethods methods;
  for (const std::string& word : words) {
    if (word == "hierarchical") {
      methods.hierarchical = false;
    } else if (word == "overlap") {
      methods.overlapped = false;
    } else {
      return fail(usage_mistake("unknown-value", fmt::format("--without has no method \"{}\"", word),
                                "hierarchical (collectives in two levels) or overlap (of exchanges with compute)"));
    }
  }
  return methods;
}

ExitCode run_accuracy(const AccuracyArguments& arguments, const Context& context) {
  const auto methods = methods_without(arguments.without);
  if (!methods) return report(context.terminal, context.json, methods.error());
  auto inputs = load_inputs(arguments, context);
  if (!inputs) return report(context.terminal, context.json, inputs.error());
  auto lines = accuracy::judge(std::move(inputs->measurements), inputs->devices, inputs->profiles, *methods);
  if (inputs->own_runs) {
    report_left_out(context, *inputs->own_runs);
    accuracy::correct(lines, discrepancy::Discrepancy(std::move(inputs->own_runs->runs)));
  }
  const auto groups = accuracy::summarize(lines);
  const std::string each = arguments.summary
                               ? ""
                               : lines_table(lines, context.terminal) + failures_table(lines, context.terminal) +
                                     reasons_table(lines, context.terminal) + "\n";
  const std::string text = each + groups_table(groups, context.terminal) + verdicts_text(accuracy::verdicts_of(lines));
  return print_result(context, text, document_of(lines, groups));
}

}  // namespace

Command accuracy_command() {
  return {.name = "accuracy",
          .usage = "DATASET",
          .summary = "compare predictions with published measurements",
          .examples = R"(  tangram accuracy configs/measurements/validation.json
  tangram accuracy measurements.json --summary
  tangram accuracy measurements.json --json | jq '.groups[0]'
  tangram accuracy measurements.json --profile a100.json --gpus calibrated.json
  tangram accuracy measurements.json --own-runs runs.json
)",
          .details = R"(Builds the plan behind each measurement, predicts its iteration time and memory
with the planner's own cost model, and shows the errors: per measurement, and
per dataset, GPU type and parallelism. Measurements that cannot be expressed are
listed with the reason, runs that did not fit with the memory that is predicted,
and last how many of these are predicted not to fit.

Grades: A measured with a complete plan, A- one parameter inferred, B derived,
C partial. Bias is the mean error with its sign, rank the correlation of order.

Manual: tangram help predictions
)",
          .bind = bound<AccuracyArguments>(parameters_of, run_accuracy),
          .settings = {SettingGroup::kProfiles, SettingGroup::kOwnRuns}};
}

}  // namespace tangram::app
