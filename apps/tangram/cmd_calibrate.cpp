#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "calibrate_kernels.hpp"
#include "calibrate_runs.hpp"
#include "command.hpp"
#include "inputs.hpp"
#include "profile_words.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/calibrate/calibration.hpp"
#include "tangram/cost/profile_file.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/io/limits.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/profiles/detect.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTimings = "timings";
constexpr std::string_view kMegatronLog = "megatron-log";
constexpr std::string_view kRuns = "runs";
constexpr std::string_view kKernels = "kernels";

struct CalibrateArguments {
  std::vector<std::string> files;
  std::string from{kTimings};
  std::string plan;  ///< empty: not given
  std::string gpu;   ///< empty: all
  std::string skip = std::to_string(calibrate::kWarmUpSteps);
  bool measured_only = false;  ///< no rows for degrees and samples that were not timed
  bool summary = false;        ///< of runs: families alone
  std::string output;          ///< empty: not written
};

std::vector<std::string> sources_of_times() {
  return {std::string(kTimings), std::string(kMegatronLog), std::string(kRuns), std::string(kKernels)};
}

Parameters parameters_of(CalibrateArguments& a) {
  return {{{"TIMINGS", "what a run of a plan measured", &a.files}},
          {{"from", "FORMAT", "what the files are: timings (default), megatron-log, runs or kernels", &a.from,
            sources_of_times()},
           {"plan", "PLAN", "the plan that ran; megatron-log needs it", &a.plan},
           {"gpu", "NAME", "only this GPU type", &a.gpu},
           {"skip", "STEPS", "steps at the start of each run that warm up (default: 2)", &a.skip},
           {"measured-only", "", "no rows for degrees and samples that were not timed", &a.measured_only},
           {"summary", "", "with --from runs: show families only, not every run", &a.summary},
           output_option("PATH", "write the profile to PATH; a folder where there are several GPU types", a.output)}};
}

// Arguments and inputs

std::optional<std::int64_t> steps_of(const std::string& text) {
  constexpr io::IntegerRange kSteps = io::integer_limit("skip");
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), steps);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && steps >= kSteps.min && steps <= kSteps.max ? std::optional(steps) : std::nullopt;
}

/// Runs and kernels make no profile.
bool makes_profile(const CalibrateArguments& arguments) {
  return arguments.from != kRuns && arguments.from != kKernels;
}

std::string option_of_profiles(const CalibrateArguments& arguments) {
  if (!arguments.plan.empty()) return "--plan";
  if (!arguments.gpu.empty()) return "--gpu";
  if (arguments.measured_only) return "--measured-only";
  if (arguments.skip != CalibrateArguments{}.skip) return "--skip";
  return arguments.output.empty() ? "" : "--output";
}

std::optional<Diagnostics> complaint(const CalibrateArguments& arguments) {
  const std::vector<std::string> sources = sources_of_times();
  if (std::ranges::find(sources, arguments.from) == sources.end()) {
    return usage_mistake("unknown-format", fmt::format("--from {}: no such format", arguments.from),
                         suggestion(arguments.from, sources, listing("formats", sources)));
  }
  if (arguments.from == kMegatronLog && arguments.plan.empty()) {
    return usage_mistake("missing-option", "--from megatron-log needs --plan PLAN",
                         "the log does not say which layers and which GPU a rank had; the plan that ran does");
  }
  if (!makes_profile(arguments)) {
    if (const std::string option = option_of_profiles(arguments); !option.empty()) {
      return usage_mistake(
          "option-without-profile", fmt::format("{} has no meaning with --from {}", option, arguments.from),
          arguments.from == kRuns ? "plan and accuracy take files of runs as they are: --own-runs FILES"
                                  : "times of kernels are shown beside the model, and nothing is written");
    }
  }
  if (arguments.summary && arguments.from != kRuns) {
    return usage_mistake("option-without-runs", "--summary needs --from runs", "it shows families of runs");
  }
  if (!steps_of(arguments.skip)) {
    return usage_mistake("bad-value", fmt::format("--skip {} is not a number of steps", arguments.skip),
                         "0, or how many steps warm up");
  }
  return overwritten_input(arguments.output, arguments.files, "give the profile a name of its own");
}

struct CalibrateInputs {
  std::vector<profiles::SourceFile> files;
  std::optional<plan::LaunchPlan> plan;
};

/// All files, with the mistakes of all.
Expected<CalibrateInputs> load_inputs(const CalibrateArguments& arguments) {
  CalibrateInputs inputs;
  Diagnostics mistakes;
  for (const std::string& path : arguments.files) {
    std::string text;
    take(io::read_file(path), text, mistakes);
    inputs.files.push_back({path, std::move(text)});
  }
  if (!arguments.plan.empty()) take(load_plan(arguments.plan), inputs.plan, mistakes);
  if (inputs.plan) {
    const Diagnostics wrong = planner::mistakes_in(*inputs.plan, arguments.plan);
    mistakes.insert(mistakes.end(), wrong.begin(), wrong.end());
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

Expected<calibrate::Timings> timings_of(const CalibrateArguments& arguments, const CalibrateInputs& inputs) {
  if (arguments.from == kMegatronLog) return calibrate::read_megatron_log(inputs.files, *inputs.plan);
  return calibrate::read_timings(inputs.files, cluster::catalogue(), inputs.plan ? &*inputs.plan : nullptr);
}

// For people

const std::string& kind_or_type(const calibrate::CalibratedRow& row) {
  static const std::string embedding = "embedding";
  static const std::string head = "head";
  switch (row.unit.kind) {
    case cost::ProfileKind::kBlock: return row.type;
    case cost::ProfileKind::kEmbedding: return embedding;
    case cost::ProfileKind::kHead: return head;
  }
  return row.type;
}

std::string milliseconds(double seconds) { return fmt::format("{:.4g}", 1e3 * seconds); }

std::vector<const calibrate::CalibratedRow*> rows_of(const calibrate::Calibration& calibration,
                                                     const cost::Profile& profile) {
  std::vector<const calibrate::CalibratedRow*> rows;
  for (const calibrate::CalibratedRow& row : calibration.rows) {
    if (row.device.name == profile.device.name) rows.push_back(&row);
  }
  return rows;
}

double median_ratio(const std::vector<const calibrate::CalibratedRow*>& rows) {
  std::vector<double> ratios;
  for (const calibrate::CalibratedRow* row : rows) ratios.push_back(row->ratio());
  return median(std::move(ratios));
}

std::string rows_table(const std::vector<const calibrate::CalibratedRow*>& rows, const Terminal& terminal) {
  Table table({{"unit"},
               {"tokens", true},
               {"degrees"},
               {"samples", true},
               {"steps", true},
               {"ranks", true},
               {"forward", true},
               {"model", true},
               {"backward", true},
               {"model", true},
               {"ratio", true},
               {"spread", true}});
  for (const calibrate::CalibratedRow* row : rows) {
    table.add({{kind_or_type(*row), Style::kBold},
               {thousands(row->unit.sequence_length)},
               {degrees_text(row->row().degrees)},
               {std::to_string(row->row().samples)},
               {std::to_string(row->steps)},
               {std::to_string(row->ranks)},
               {milliseconds(to_seconds(row->row().forward))},
               {milliseconds(row->modelled.forward)},
               {milliseconds(to_seconds(row->row().backward))},
               {milliseconds(row->modelled.backward)},
               {fmt::format("{:.2f}", row->ratio()), Style::kBold},
               {table_percent(row->spread)}});
  }
  return table.render(terminal);
}

std::string for_people(const calibrate::Calibration& calibration, const Terminal& terminal) {
  std::string out;
  for (const cost::Profile& profile : calibration.profiles) {
    const auto rows = rows_of(calibration, profile);
    if (!out.empty()) out += "\n";
    out += fmt::format("{}: {:.2f} times as long as predicted; {}\n", profile.device.name, median_ratio(rows),
                       exchanges_text(profile.includes_tp_communication));
    for (const std::string& line : wrapped("source: " + profile.source, terminal.text_width())) out += line + "\n";
    out += "\n" + rows_table(rows, terminal);
  }
  return out + "times in ms; ratio of forward and backward together, measured over model\n";
}

std::string calibration_note(const profiles::Note& note) {
  return fmt::format("{}{}: {}", note.file.empty() ? "" : note.file + ": ", to_string(note.kind), note.message);
}

// For machines

Json row_json(const calibrate::CalibratedRow& row) {
  const cost::ProfileRow& measured = row.row();
  Json json;
  json["gpu"] = row.device.name;
  json["unit"] = row.unit.kind == cost::ProfileKind::kBlock ? "block" : kind_or_type(row);
  if (row.unit.kind == cost::ProfileKind::kBlock) json["type"] = row.type;
  json["dtype"] = to_string(row.unit.dtype);
  json["sequence_length"] = row.unit.sequence_length;
  json["tp"] = measured.degrees.tp;
  json["cp"] = measured.degrees.cp;
  json["ep"] = measured.degrees.ep;
  json["etp"] = measured.degrees.etp;
  json["sequence_parallel"] = measured.degrees.sequence_parallel;
  json["samples"] = measured.samples;
  json["steps"] = row.steps;
  json["ranks"] = row.ranks;
  json["outliers"] = row.outliers;
  json["forward_ms"] = measured.forward.as_double() / 1e6;
  json["backward_ms"] = measured.backward.as_double() / 1e6;
  json["spread"] = row.spread;
  json["modelled_forward_ms"] = 1e3 * row.modelled.forward;
  json["modelled_backward_ms"] = 1e3 * row.modelled.backward;
  json["ratio"] = row.ratio();
  return json;
}

Json calibration_json(const calibrate::Calibration& calibration) {
  Json json;
  json["schema"] = "tangram.calibration/1";
  json["status"] = "ok";
  json["rows"] = Json::array();
  for (const calibrate::CalibratedRow& row : calibration.rows) json["rows"].push_back(row_json(row));
  json["profiles"] = Json::array();
  for (const cost::Profile& profile : calibration.profiles) json["profiles"].push_back(cost::profile_json(profile));
  json["notes"] = Json::array();
  for (const profiles::Note& note : calibration.notes) {
    Json entry;
    entry["kind"] = to_string(note.kind);
    entry["code"] = note.code;
    if (!note.file.empty()) entry["about"] = note.file;
    entry["message"] = note.message;
    json["notes"].push_back(std::move(entry));
  }
  return json;
}

// Profiles

std::string profile_text(const cost::Profile& profile) { return io::write_canonical(cost::profile_json(profile)); }

bool names_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

/// A fleet may call its GPU types as it likes.
std::string file_name_of(const cost::Profile& profile) {
  std::string name = profile.device.name;
  std::ranges::replace(name, '/', '-');
  return name + ".json";
}

std::string profile_advice(const std::vector<std::string>& paths) {
  return fmt::format(": tangram plan CLUSTER MODEL --profile {}", fmt::join(paths, ","));
}

Expected<void> write_folder(const Context& context, std::string path, const std::vector<cost::Profile>& profiles) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  auto folder = context.signals.open_folder(path);
  if (!folder) return fail(std::move(folder.error()));
  std::vector<std::string> written;
  for (const cost::Profile& profile : profiles) {
    if (auto added = folder->add(file_name_of(profile), profile_text(profile)); !added) return added;
    written.push_back(path + "/" + file_name_of(profile));
  }
  if (auto committed = folder->commit(); !committed) return committed;
  context.signals.release();
  context.terminal.note(fmt::format("wrote {}{}", path, profile_advice(written)));
  return {};
}

Expected<void> write_profiles(const Context& context, const std::string& path,
                              const std::vector<cost::Profile>& profiles) {
  if (path.empty()) return {};
  if (names_folder(path)) return write_folder(context, path, profiles);
  if (profiles.size() > 1) {
    std::vector<std::string> names;
    for (const cost::Profile& profile : profiles) names.push_back(profile.device.name);
    return fail(problem(ErrorKind::kInput, "several-profiles",
                        fmt::format("there are times of {} GPU types, and a file holds the profile of one: {}",
                                    names.size(), fmt::join(names, ", ")),
                        fmt::format("-o {}/ writes a file for each into a folder; --gpu NAME chooses one", path)));
  }
  auto output = open_output(context, path);
  if (!output) return fail(std::move(output.error()));
  return write_output(context, *output, profile_text(profiles.front()), profile_advice({path}));
}

ExitCode run_calibrate(const CalibrateArguments& arguments, const Context& context) {
  const auto failed = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = complaint(arguments)) return failed(*wrong);
  if (arguments.from == kRuns) return validate_runs(arguments.files, arguments.summary, context);
  if (arguments.from == kKernels) return show_kernel_times(arguments.files, context);
  const auto inputs = load_inputs(arguments);
  if (!inputs) return failed(inputs.error());
  const auto timings = timings_of(arguments, *inputs);
  if (!timings) return failed(timings.error());
  const auto calibration =
      calibrate::calibrate(*timings, {*steps_of(arguments.skip), arguments.gpu, !arguments.measured_only});
  if (!calibration) return failed(calibration.error());
  for (const profiles::Note& note : calibration->notes) context.terminal.note(calibration_note(note));
  if (const auto written = write_profiles(context, arguments.output, calibration->profiles); !written) {
    return failed(written.error());
  }
  if (arguments.output == "-") return print_text(context, profile_text(calibration->profiles.front()));
  return print_result(context, for_people(*calibration, context.terminal), calibration_json(*calibration));
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .usage = "TIMINGS...",
          .summary = "turn what a run measured into a profile",
          .examples = R"(  tangram calibrate timings.jsonl -o a100.json
  tangram calibrate run1/*.jsonl run2/*.jsonl --plan plan.json -o profiles/
  tangram calibrate --from megatron-log train.log --plan plan.json -o a100.json
  tangram plan cluster.json model.yaml --profile a100.json
  tangram calibrate --from runs runs.json
  tangram calibrate --from kernels nccl-tests.json
  tangram plan cluster.json model.yaml --own-runs runs.json
)",
          .details = R"(Reads the times that ranks took for blocks, embedding and head while a plan ran,
makes one row of all times of equal units, shows it beside what the cost model
predicts, and writes a profile, which plan --profile takes. A profile is of one
GPU type: where there are several, PATH is a folder that does not exist or is
empty, and gets a file for each.

timings are JSON lines (tangram schema timings). --plan names the plan that ran:
GPU types that only its fleet knows are read from it, and predictions use its
links. megatron-log is the output of Megatron-LM with --timing-log-level 2
--timing-log-option all; the times of a stage are shared out among its units as
the cost model predicts them.

Left out: the first steps of each run, steps that stand out, and times that
cannot be true of the GPU. Ranks that fall behind the others of their type are
reported. For other degrees and samples than were timed the profile has the
model's times, as much slower or faster as the unit was ("scaled": true);
--measured-only leaves them out.

runs are iteration times alone, of whole jobs: {"plan": "plan.json",
"iter_time_s": 11.2}, or what tangram accuracy reads. The output shows how far
predictions are from them, and how far they are once the other runs of the same
family correct them, as plan --own-runs does. No profile is written.

kernels are tables of single products, collectives, exchanges of tokens and
copies (tangram schema kernel_times). The output shows how far the cost model is
from each with the catalogue's figures, and with figures fitted to half of the
rows from the other half. No profile is written.

Manual: tangram help predictions
)",
          .bind = bound<CalibrateArguments>(parameters_of, run_calibrate)};
}

}  // namespace tangram::app
