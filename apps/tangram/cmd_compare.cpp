#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "compare_view.hpp"
#include "inputs.hpp"
#include "page_output.hpp"
#include "planning_inputs.hpp"
#include "tangram/baseline/planner_files.hpp"
#include "tangram/compose/encoder_placement.hpp"

namespace tangram::app {

namespace {

using baseline::Mode;

struct CompareArguments {
  std::string cluster;
  std::string model;
  std::vector<std::string> with;  ///< planners, placements of encoders; empty: all planners
  std::string mode = "both";
  std::vector<std::string> plans;  ///< files to compare with, too
  std::string html;                ///< empty: not written
  std::string inputs;              ///< folder for what other programs read; empty: not written
  bool no_ablation = false;
};

std::vector<std::string> known_planners() {
  const auto names = baseline::planner_names();
  return {names.begin(), names.end()};
}

/// What --with takes.
std::vector<std::string> known_names() {
  std::vector<std::string> names = known_planners();
  for (const compose::EncoderPlacement placement : compose::encoder_placements())
    names.emplace_back(to_string(placement));
  return names;
}

Parameters parameters_of(CompareArguments& a) {
  return {{{"CLUSTER", "cluster.json", &a.cluster}, {"MODEL", "model.yaml or config.json", &a.model}},
          {{"with", "NAMES", "planners to compare with: metis,sailor (default: all); homogeneous,colocated,disjoint",
            &a.with, known_names(),
            /*list=*/true},
           {"mode", "MODE", "faithful, repaired or both (default: both)", &a.mode, {"faithful", "repaired", "both"}},
           {"plan", "FILE", "add a launch plan, or the output of Metis, Sailor, AMP or FlashFlex", &a.plans},
           html_option("write a page for browsers to FILE", a.html),
           {"write-inputs", "FOLDER", "write the input files of Metis and Sailor to FOLDER, and stop", &a.inputs},
           {"no-ablation", "", "skip planning without each technique", &a.no_ablation}}};
}

/// What our plan is compared with.
struct Compared {
  std::vector<std::string> planners;
  std::vector<compose::EncoderPlacement> placements;
};

Expected<Compared> compared_with(const CompareArguments& arguments) {
  if (arguments.with.empty()) return Compared{known_planners(), {}};
  const std::vector<std::string> known = known_names();
  Compared compared;
  for (const std::string& name : arguments.with) {
    if (std::ranges::find(known, name) == known.end()) {
      return fail(usage_mistake("unknown-planner", fmt::format("--with {}: no such planner", name),
                                suggestion(name, known, listing("planners and placements", known))));
    }
    if (const auto placement = compose::placement_named(name)) {
      compared.placements.push_back(*placement);
    } else {
      compared.planners.push_back(name);
    }
  }
  return compared;
}

/// Placements that make no difference, or that the target does not have.
std::optional<Diagnostics> complaint(const std::vector<compose::EncoderPlacement>& placements,
                                     planner::PlanOptions options, const model::Model& model) {
  for (const compose::EncoderPlacement placement : placements) {
    options.search.placement = placement;
    if (auto wrong = placement_complaint(options, model, "--with")) return Diagnostics{*std::move(wrong)};
  }
  return std::nullopt;
}

Expected<std::vector<Mode>> modes_of(const std::string& mode) {
  if (mode == "both") return std::vector{Mode::kFaithful, Mode::kRepaired};
  if (mode == "faithful") return std::vector{Mode::kFaithful};
  if (mode == "repaired") return std::vector{Mode::kRepaired};
  return fail(
      usage_mistake("unknown-mode", fmt::format("--mode {}: no such mode", mode), "modes: faithful, repaired, both"));
}

Expected<std::vector<planner::GivenPlan>> given_plans(const std::vector<std::string>& paths) {
  std::vector<planner::GivenPlan> plans;
  Diagnostics mistakes;
  for (const std::string& path : paths) {
    std::string text;
    take(io::read_file(path), text, mistakes);
    plans.push_back({path, std::move(text)});
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return plans;
}

std::optional<Diagnostics> complaint(const CompareArguments& arguments, const Context& context) {
  if (arguments.cluster == "-" && arguments.model == "-") {
    return usage_mistake("two-standard-inputs", "only one of CLUSTER and MODEL can be standard input");
  }
  std::vector<std::string> inputs = arguments.plans;
  inputs.insert(inputs.end(), {arguments.cluster, arguments.model});
  return page_complaint(context, arguments.html, "", inputs);
}

/// Hosts, profiles and the rest, for the programs themselves.
ExitCode write_inputs(const std::string& path, const PlanningInputs& inputs, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  auto folder = context.signals.open_folder(path);
  if (!folder) return refuse(folder.error());
  const auto made = baseline::write_planner_files(
      inputs.fleet,
      baseline::read_input(inputs.fleet, inputs.model, inputs.profiles.empty() ? nullptr : &inputs.profiles));
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  for (const baseline::PlannerFile& file : made.files) {
    if (const auto added = folder->add(file.path, file.text); !added) return refuse(added.error());
    names.push_back(file.path);
  }
  if (const auto done = folder->commit(); !done) return refuse(done.error());
  context.signals.release();
  for (const std::string& note : made.notes) context.terminal.note(note);
  const nlohmann::ordered_json document{{"schema", "tangram.planner_files/1"},
                                        {"status", "ok"},
                                        {"folder", path},
                                        {"files", names},
                                        {"notes", made.notes}};
  return print_result(context, fmt::format("wrote {} files to {}\n", made.files.size(), path), document);
}

ExitCode run_compare(const CompareArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = complaint(arguments, context)) return refuse(*wrong);
  auto compared = compared_with(arguments);
  if (!compared) return refuse(compared.error());
  const auto modes = modes_of(arguments.mode);
  if (!modes) return refuse(modes.error());
  const auto inputs = load_planning_inputs(arguments.cluster, arguments.model, context.settings, context.edits);
  if (!inputs) return refuse(inputs.error());
  report_assumptions(context, inputs->fleet, &inputs->model);
  if (!arguments.inputs.empty()) return write_inputs(arguments.inputs, *inputs, context);
  auto plans = given_plans(arguments.plans);
  if (!plans) return refuse(plans.error());
  auto html = open_output(context, arguments.html);
  if (!html) return refuse(html.error());
  std::optional<tbb::global_control> threads;
  if (const auto jobs = context.settings.count("jobs")) {
    threads.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(*jobs));
  }
  auto usual = plan_options(context.settings, inputs->fleet, inputs->model);
  if (!usual) return refuse(usual.error());
  if (const auto wrong = complaint(compared->placements, *usual, inputs->model)) return refuse(*wrong);
  planner::CompareOptions options{
      *std::move(usual), std::move(compared->planners), *modes, std::move(compared->placements),
      std::move(*plans), !arguments.no_ablation};
  if (!inputs->profiles.empty()) options.plan.search.profiles = &inputs->profiles;
  const auto comparison =
      planner::compare(inputs->fleet, inputs->model, options, [&](const compose::Progress& progress) {
        context.terminal.progress(progress.phase.empty() ? "planning" : progress.phase);
      });
  context.terminal.clear_progress();
  if (!comparison) return refuse(comparison.error());
  const ExitCode code = comparison->time_limit > 0 ? ExitCode::kStoppedEarly : ExitCode::kOk;
  const std::string page = arguments.html.empty() ? "" : comparison_html(*comparison);
  if (const auto written = write_output(context, *html, page); !written) return refuse(written.error());
  if (arguments.html == "-") return print_text(context, page, code);
  nlohmann::ordered_json document{{"schema", "tangram.comparison/1"}, {"status", "ok"}};
  document.update(comparison_json(*comparison));
  return print_result(context, comparison_for_people(*comparison, context.terminal), document, code);
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .usage = "CLUSTER MODEL",
          .summary = "compare Tangram with other planners",
          .examples = R"(  tangram compare fleet.json model.yaml
  tangram compare fleet.json model.yaml --with metis,sailor --mode faithful
  tangram compare fleet.json model.yaml --html report.html
  tangram compare fleet.json llava.yaml --with homogeneous,colocated,disjoint
)",
          .details = R"(Plans the job with Tangram and as other planners do, and judges all plans with
one simulator and one memory model. The others are reimplemented from their
publications: megatron (the best single set of degrees for all GPUs), amp,
metis, sailor and flashflex; faithful keeps the defects of the published
programs, repaired removes them. Each planner is represented by the first plan
in its own ranking that runs; the report says what was wrong with the plans
before it. An ablation follows: Tangram without each technique it uses, and
without all techniques that the others lack.

With --target, Tangram plans for that runtime, and the plans of the others are
timed as it would run them, even where its rules exclude them.

For a multimodal model, --with homogeneous,colocated,disjoint also plans with
the encoders in the first stage, all stages alike, on all GPUs of the language
model, and each on GPUs of its own.

--plan adds launch plans or the output of the published programs: Metis' ranked
list, Sailor's plan JSON, AMP's ranks, FlashFlex' hetero_configs.
--write-inputs writes the input files of Metis and Sailor, for runs of your
own.

Manual: tangram help comparison
)",
          .bind = bound<CompareArguments>(parameters_of, run_compare),
          .settings = {SettingGroup::kTarget, SettingGroup::kJob, SettingGroup::kProfiles, SettingGroup::kSearch,
                       SettingGroup::kIslands},
          .edits_fleet = true};
}

}  // namespace tangram::app
