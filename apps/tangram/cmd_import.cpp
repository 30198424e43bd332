#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "plan_view.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/base/version.hpp"
#include "tangram/cost/compute.hpp"
#include "tangram/cost/scaled_rows.hpp"
#include "tangram/import/import.hpp"
#include "tangram/io/file.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/planner/option_gains.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::app {

namespace {

namespace fs = std::filesystem;
using importing::Source;

struct ImportArguments {
  std::vector<std::string> files;  ///< or folders of files
  std::string from;                ///< the format
  std::string cluster;
  std::string model;
  std::string output;     ///< empty: the plan is not written
  std::int64_t rank = 1;  ///< of the plan in a file that lists several
};

Parameters parameters_of(ImportArguments& a) {
  const std::vector<std::string> formats = names_of(importing::source_names());
  return {{{"FILE", "the job's files, or a folder", &a.files}},
          {{"from", "FORMAT", any_of(formats), &a.from, formats},
           {"cluster", "CLUSTER", "the fleet the job runs on", &a.cluster},
           {"model", "MODEL", "the model the job trains", &a.model},
           {"rank", "N", "which plan of a ranked list (metis, sailor); 1 is the first", &a.rank},
           output_option("FILE", "write the plan to FILE", a.output)}};
}

Expected<Source> source_of(const std::string& name) {
  for (const importing::SourceName& source : importing::source_names()) {
    if (source.name == name) return source.source;
  }
  const std::vector<std::string> known = names_of(importing::source_names());
  if (name.empty()) {
    return fail(usage_mistake("missing-argument", "import needs --from FORMAT", listing("formats", known)));
  }
  return fail(usage_mistake("unknown-format", fmt::format("--from {}: no such format", name),
                            suggestion(name, known, listing("formats", known))));
}

std::optional<Diagnostics> complaint(const ImportArguments& arguments) {
  if (arguments.cluster.empty() || arguments.model.empty()) {
    return usage_mistake("missing-argument",
                         arguments.cluster.empty() ? "import needs --cluster CLUSTER" : "import needs --model MODEL",
                         "the fleet that the job runs on and the model that it trains");
  }
  std::vector<std::string> inputs = arguments.files;
  inputs.insert(inputs.end(), {arguments.cluster, arguments.model});
  if (arguments.rank < 1) return usage_mistake("bad-rank", "--rank starts at 1", "1 is the first plan of the file");
  return overwritten_input(arguments.output, inputs);
}

/// Where the job of a format stands among the files that export writes.
bool is_job_file(const fs::path& path, Source source) {
  switch (source) {
    case Source::kMegatron:
    case Source::kMimo: return path.filename() == "arguments.sh";
    case Source::kFlagscale: return path.extension() == ".yaml";
    case Source::kMetis: return path.extension() == ".txt" || path.extension() == ".log";
    case Source::kSailor:
    case Source::kGalvatron:
    case Source::kFlashflex: break;
  }
  return path.extension() == ".json";
}

/// A folder stands for the job in it (FlagScale's lies in train/), its host file and its rank map.
std::vector<std::string> expanded(const std::string& path, Source source) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return {path};
  std::vector<std::string> files;
  for (const char* inner : {"", "train"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(path) / inner, failed)) {
      const fs::path& file = entry.path();
      const bool placement = file.filename() == "hostfile" || file.filename() == "rankmap.csv";
      if (placement || is_job_file(file, source)) files.push_back(file.string());
    }
  }
  std::ranges::sort(files);
  return files.empty() ? std::vector{path} : files;
}

Expected<std::vector<importing::SourceFile>> load_files(const ImportArguments& arguments, Source source) {
  std::vector<importing::SourceFile> files;
  Diagnostics mistakes;
  for (const std::string& given : arguments.files) {
    for (const std::string& path : expanded(given, source)) {
      std::string text;
      take(io::read_file(path), text, mistakes);
      files.push_back({path, std::move(text)});
    }
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return files;
}

struct ImportInputs {
  cluster::Fleet fleet;
  model::Model model;
  cost::ProfileSet profiles;
};

/// All files, with the mistakes of all. Without a fleet its GPU types are unknown, and profiles are not read.
Expected<ImportInputs> load_inputs(const ImportArguments& arguments, const model::JobOverrides& job,
                                   const Settings& settings) {
  ImportInputs inputs;
  Diagnostics mistakes;
  take(load_fleet(arguments.cluster), inputs.fleet, mistakes);
  if (mistakes.empty())
    take(load_profiles(settings.files("profile"), devices_of(inputs.fleet)), inputs.profiles, mistakes);
  take(load_model(arguments.model, job), inputs.model, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  inputs.profiles = cost::with_scaled_rows(inputs.profiles, inputs.model);
  return inputs;
}

/// What the planner adds to its own plans: predictions, where it comes from.
void finish(plan::LaunchPlan& plan, const ImportInputs& inputs, const std::string& from) {
  plan.provenance.version = version();
  plan.provenance.inputs = {{"cluster", inputs.fleet.digest}, {"model", inputs.model.digest}};
  plan.provenance.note = fmt::format("imported from {}", from);
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
  simulate::predict(plan, result, cost::fleet_peak(inputs.fleet, inputs.model.job.precision));
}

/// The execution options that the job says, and not the model file, with what each brings to a plan that runs.
void note_options(plan::LaunchPlan& plan, const ImportInputs& inputs, double island_tolerance) {
  planner::PlanOptions options = planner::usual_options(inputs.fleet, plan.model);
  options.target = plan.runtime;
  options.island_tolerance = island_tolerance;
  if (!inputs.profiles.empty()) options.search.profiles = &inputs.profiles;
  plan.provenance.options = planner::option_gains(plan, inputs.model.job, inputs.fleet, options);
}

std::string for_people(const importing::Imported& imported, const plan::CheckReport& judged, const Terminal& terminal) {
  std::string text = plan_for_people(imported.plan, terminal);
  if (judged.ok()) return text;
  Table table({{"code"}, {"where", false, 12}, {"what does not hold", false, 40}});
  for (const plan::Violation& v : judged.violations) table.add({{v.code, Style::kRed}, {v.where}, {v.message}});
  return text + fmt::format("\n{}\n{}", counted(static_cast<std::int64_t>(judged.violations.size()), "violation"),
                            table.render(terminal));
}

Diagnostics errors_of(const plan::CheckReport& judged) {
  Diagnostics errors;
  for (const plan::Violation& v : judged.violations) {
    errors.push_back(problem(ErrorKind::kInfeasible, v.code, fmt::format("{}: {}", v.where, v.message)));
  }
  return errors;
}

ExitCode run_import(const ImportArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  const auto source = source_of(arguments.from);
  if (!source) return refuse(source.error());
  if (const auto wrong = complaint(arguments)) return refuse(*wrong);
  const auto files = load_files(arguments, *source);
  if (!files) return refuse(files.error());
  const auto job = importing::read_job(*source, *files, arguments.rank);
  if (!job) return refuse(job.error());
  const auto inputs = load_inputs(arguments, job->overrides(), context.settings);
  if (!inputs) return refuse(inputs.error());
  auto output = open_output(context, arguments.output);
  if (!output) return refuse(output.error());

  importing::Options options;
  options.island_tolerance = context.settings.share("island-tolerance");
  if (!inputs->profiles.empty()) options.profiles = &inputs->profiles;
  auto imported = importing::make_plan(*job, inputs->fleet, inputs->model, options);
  if (!imported) return refuse(imported.error());
  finish(imported->plan, *inputs, arguments.from);
  for (const std::string& note : imported->notes) context.terminal.note(note);
  const plan::CheckReport judged = plan::check(imported->plan, inputs->fleet, &imported->model);
  const bool to_stdout = context.json || arguments.output == "-";
  if (!judged.ok()) {
    if (to_stdout) return refuse(errors_of(judged));
    if (*output)
      context.terminal.note(fmt::format("{} was not written: the plan does not pass its check", arguments.output));
    return print_text(context, for_people(*imported, judged, context.terminal), ExitCode::kInfeasible);
  }
  note_options(imported->plan, *inputs, options.island_tolerance);
  const auto text = planner::checked_text(imported->plan, inputs->fleet, imported->model);
  if (!text) return refuse(text.error());
  if (const auto written = write_output(context, *output, *text); !written) return refuse(written.error());
  return print_text(context, to_stdout ? *text : for_people(*imported, judged, context.terminal));
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .usage = "FILE... --from FORMAT --cluster CLUSTER --model MODEL",
          .summary = "read a running job as a launch plan",
          .examples = R"(  tangram import pretrain.sh hostfile --from megatron \
    --cluster fleet.json --model model.yaml -o plan.json
  tangram import metis.log --from metis --rank 3 \
    --cluster fleet.json --model model.yaml
  tangram import start --from megatron \
    --cluster fleet.json --model model.yaml   (a folder that export wrote)
)",
          .details = R"(Turns a running job into a launch plan that can be checked, simulated, verified
and compared. FORMAT is megatron (a script with Megatron-LM's arguments), mimo
(a script with --component of each module, for Megatron-Bridge), flagscale (its
training YAML), sailor, galvatron or flashflex (their plan JSON), or metis (its
printed output). A host file (HOST slots=N) or a rank map (rankmap.csv) assigns
ranks to GPUs; a folder stands for its files. Sequence length, batch and
execution options are the job's, where it gives them. Violations are listed, and
a plan with violations is not written. Exit 0: the plan is valid; 3: it has
violations; 4: the files cannot be read as a plan.

Manual: tangram help runtimes
)",
          .bind = bound<ImportArguments>(parameters_of, run_import),
          .settings = {SettingGroup::kProfiles, SettingGroup::kIslands}};
}

}  // namespace tangram::app
