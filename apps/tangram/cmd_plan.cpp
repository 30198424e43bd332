#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "cache_settings.hpp"
#include "choices_view.hpp"
#include "command.hpp"
#include "inputs.hpp"
#include "objective_settings.hpp"
#include "own_runs.hpp"
#include "page_output.hpp"
#include "parallelizers.hpp"
#include "plan_page.hpp"
#include "plan_view.hpp"
#include "planning_inputs.hpp"
#include "replan_view.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/objective/remedies.hpp"
#include "tangram/planner/ahead.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/planner/own_runs.hpp"

namespace tangram::app {

namespace {

struct PlanArguments {
  std::string cluster;
  std::string model;
  std::string output;   ///< empty: the plan is not written
  std::string against;  ///< a plan that runs already; empty: none
  std::string html;     ///< empty: no page is written
  bool detailed_exitcode = false;
};

Parameters parameters_of(PlanArguments& a) {
  return {{{"CLUSTER", "cluster.json, or the name of a shipped cluster", &a.cluster},
           {"MODEL", "model.yaml, config.json, or the name of a shipped model", &a.model}},
          {output_option("FILE", "write the plan to FILE; with --pareto: to a folder, one plan per row", a.output),
           html_option("write a page for browsers to FILE", a.html),
           {"against", "PLAN", "keep this running plan unless another is worth the change", &a.against},
           {"detailed-exitcode", "", "exit 2 if the plan of --against changes", &a.detailed_exitcode}}};
}

struct PlanInputs : PlanningInputs {
  std::string old_text;  // of the plan that is planned against; empty: none
  plan::LaunchPlan old;
  std::optional<OwnRuns> own_runs;
};

/// The plan and its text, which is written again where it is kept.
void load_old(const std::string& path, PlanInputs& inputs, Diagnostics& mistakes) {
  take(io::read_file(path), inputs.old_text, mistakes);
  if (inputs.old_text.empty()) return;
  const std::size_t before = mistakes.size();
  take(plan::read_plan(inputs.old_text, path), inputs.old, mistakes);
  if (mistakes.size() > before) return;
  const Diagnostics found = planner::mistakes_in(inputs.old, path);
  mistakes.insert(mistakes.end(), found.begin(), found.end());
}

/// All files, with the mistakes of all.
Expected<PlanInputs> load_inputs(const PlanArguments& arguments, const Context& context) {
  PlanInputs inputs;
  Diagnostics mistakes;
  take(load_planning_inputs(arguments.cluster, arguments.model, context.settings, context.edits),
       static_cast<PlanningInputs&>(inputs), mistakes);
  if (!arguments.against.empty()) load_old(arguments.against, inputs, mistakes);
  if (const auto own = context.settings.files("own-runs"); !own.empty() && mistakes.empty()) {
    take(load_own_runs(own, devices_of(inputs.fleet), inputs.profiles), inputs.own_runs, mistakes);
  }
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

std::optional<Diagnostics> complaint(const PlanArguments& arguments, const Context& context) {
  const Settings& settings = context.settings;
  if (arguments.cluster == "-" && arguments.model == "-") {
    return usage_mistake("two-standard-inputs", "only one of CLUSTER and MODEL can be standard input");
  }
  if (arguments.detailed_exitcode && arguments.against.empty()) {
    return usage_mistake("nothing-to-compare", "--detailed-exitcode needs --against PLAN",
                         "it tells whether that plan changes");
  }
  if (settings.enabled("ahead") && settings.count("pareto")) {
    return usage_mistake("two-questions", "--ahead prepares the next plan, --pareto lists plans",
                         "leave one of them out");
  }
  if (settings.count("pareto") &&
      settings.text("objective") != objective::to_string(objective::Objective::kThroughput)) {
    return usage_mistake("two-questions", "--pareto lists choices for every objective, --objective asks for one plan",
                         "leave one of them out; --budget and --min-throughput limit the list");
  }
  if (!arguments.against.empty() && settings.count("pareto")) {
    return usage_mistake("two-questions", "--pareto lists plans, --against decides about one", "leave one of them out");
  }
  if (!arguments.html.empty() && settings.count("pareto")) {
    return usage_mistake("two-questions", "--html draws one plan, --pareto lists several",
                         "write the list with -o, and draw one of its plans with tangram show");
  }
  if (!settings.files("own-runs").empty() && settings.count("pareto")) {
    return usage_mistake("two-questions", "--own-runs corrects the time of one plan, --pareto lists several",
                         "leave one of them out");
  }
  if (settings.enabled("measured-only") && settings.files("profile").empty()) {
    return usage_mistake("nothing-measured", "--measured-only needs --profile FILES", "they say what was measured");
  }
  std::vector<std::string> inputs = settings.files("profile");
  std::ranges::copy(settings.files("own-runs"), std::back_inserter(inputs));
  inputs.insert(inputs.end(), {arguments.cluster, arguments.model, arguments.against});
  if (auto wrong = page_complaint(context, arguments.html, arguments.output, inputs)) return wrong;
  return overwritten_input(arguments.output, inputs, "give the plan a name of its own");
}

std::string progress_line(const compose::Progress& progress) {
  std::string line = progress.phase.empty() ? "planning" : progress.phase;
  if (progress.total > 0) line += fmt::format(" {}/{}", progress.done, progress.total);
  if (progress.best < Nanoseconds::max())
    line += fmt::format(", best so far {}", people_time(to_seconds(progress.best)));
  return line;
}

/// The user's own limit was what ended the search, or what was asked for is not proven.
bool stopped_early(const Settings& settings, const planner::PlanOptions& options, bool finished) {
  if (options.search.deadline.is_missed()) return true;
  const bool limited = settings.value("time-budget").origin != Origin::kDefault;
  return !finished && (limited || options.request.objective != objective::Objective::kThroughput);
}

/// A plan or a list of plans, as it is written and printed.
struct PlanOutput {
  std::string written;  // the file's text
  std::string json;     // what --json prints
  std::string for_people;
  ExitCode code = ExitCode::kOk;
  std::string page;  // where --html asks for it
};

struct OutputFiles {
  std::optional<io::OutputFile> plan;
  std::optional<io::OutputFile> page;
};

Expected<OutputFiles> open_files(const Context& context, const PlanArguments& arguments) {
  OutputFiles files;
  auto plan = open_output(context, context.settings.count("pareto") ? "" : arguments.output);
  if (!plan) return fail(std::move(plan.error()));
  auto page = open_output(context, arguments.html);
  if (!page) return fail(std::move(page.error()));
  files.plan = std::move(*plan);
  files.page = std::move(*page);
  return files;
}

/// The files first, then what is to be read.
ExitCode deliver(const Context& context, const PlanArguments& arguments, OutputFiles& files, const PlanOutput& made) {
  auto written = write_output(context, files.plan, made.written);
  if (written) written = write_output(context, files.page, made.page);
  if (!written) return report(context.terminal, context.json, written.error());
  if (arguments.html == "-") return print_text(context, made.page, made.code);
  const bool to_stdout = arguments.output == "-" && !context.json;
  return print_text(context, context.json ? made.json : to_stdout ? made.written : made.for_people, made.code);
}

/// The cache and the parallelizers of a search.
struct SearchResources {
  const Cache& cache;
  const Planners& planners;

  void report_use(const Context& context) const {
    const bool plugins = std::ranges::any_of(planners.all(), [](const auto* p) { return !p->info().built_in; });
    report_cache(context, cache, plugins);
  }
};

/// What the parallelizers failed at, for people and as exit code.
ExitCode report_failures(const Context& context, const std::vector<parallelizer::Tally>& tallies) {
  if (const Diagnostics failures = parallelizer::failures_of(tallies); !failures.empty())
    context.terminal.error(failures);
  return exit_code_of(tallies);
}

void report_effort(const Context& context, const compose::SearchStatistics& s) {
  context.terminal.detail(fmt::format("{} queries, {} partial plans, {} on frontiers, {} programs ({} cut), {} labels",
                                      thousands(s.queries), thousands(s.partial_plans), thousands(s.frontier_plans),
                                      thousands(s.programs), thousands(s.programs_cut), thousands(s.labels)));
}

Expected<PlanOutput> plan_best(const PlanningInputs& inputs, const planner::PlanOptions& options,
                               const SearchResources& resources, const compose::ProgressCallback& progress,
                               const PlanArguments& arguments, const Context& context) {
  auto planned = planner::make_plan(inputs.fleet, inputs.model, options, progress);
  context.terminal.clear_progress();
  resources.report_use(context);
  if (!planned) return fail(std::move(planned.error()));
  report_effort(context, planned->statistics);
  ExitCode code = report_failures(context, planned->parallelizers);
  const bool is_early = planned->plan.provenance.time_limit > 0;
  if (code == ExitCode::kOk && (is_early || stopped_early(context.settings, options, planned->search_finished)))
    code = ExitCode::kStoppedEarly;
  const auto text = planner::checked_text(planned->plan, inputs.fleet, inputs.model);
  if (!text) return fail(text.error());
  return PlanOutput{*text, *text, plan_for_people(planned->plan, context.terminal), code,
                    arguments.html.empty() ? "" : plan_page(planned->plan)};
}

/// Where the old plan is kept, its text is written as it was: nothing changed. Where its figures are no longer those
/// that check works out, it is written with those of today.
Expected<std::string> text_of(planner::Replanned& replanned, const PlanInputs& inputs) {
  if (replanned.change) return planner::checked_text(replanned.next, inputs.fleet, inputs.model);
  if (!replanned.now || planner::full_check(inputs.old).ok()) return inputs.old_text;
  return planner::checked_text(*replanned.now, inputs.fleet, inputs.model);
}

/// The plan of that text.
const plan::LaunchPlan& plan_of(const planner::Replanned& replanned, const PlanInputs& inputs) {
  if (replanned.change) return replanned.next;
  return !replanned.now || planner::full_check(inputs.old).ok() ? inputs.old : *replanned.now;
}

Expected<PlanOutput> plan_against(const PlanInputs& inputs, const planner::PlanOptions& options,
                                  const SearchResources& resources, const compose::ProgressCallback& progress,
                                  const PlanArguments& arguments, const Context& context) {
  auto replanned =
      planner::replan(inputs.old, inputs.fleet, inputs.model, options, context.settings.share("min-gain"), progress);
  context.terminal.clear_progress();
  resources.report_use(context);
  if (!replanned) return fail(std::move(replanned.error()));
  ExitCode code = report_failures(context, replanned->parallelizers);
  if (code == ExitCode::kOk && replanned->change && arguments.detailed_exitcode) code = ExitCode::kDifferent;
  if (code == ExitCode::kOk && replanned->time_limit > 0) code = ExitCode::kStoppedEarly;
  auto text = text_of(*replanned, inputs);
  if (!text) return fail(std::move(text.error()));
  return PlanOutput{std::move(*text), io::write_canonical(replanned_json(*replanned)),
                    replanned_for_people(*replanned, context.terminal), code,
                    arguments.html.empty() ? "" : plan_page(plan_of(*replanned, inputs))};
}

Expected<PlanOutput> plan_choices(const PlanningInputs& inputs, const planner::PlanOptions& options, std::int64_t most,
                                  const SearchResources& resources, const compose::ProgressCallback& progress,
                                  const PlanArguments& arguments, const Context& context) {
  const bool writes = !arguments.output.empty() && arguments.output != "-";
  std::optional<io::OutputFolder> folder;
  if (writes) {
    auto opened = context.signals.open_folder(arguments.output);
    if (!opened) return fail(std::move(opened.error()));
    folder.emplace(std::move(*opened));
  }
  auto choices = planner::make_choices(inputs.fleet, inputs.model, options, static_cast<std::size_t>(most), progress);
  context.terminal.clear_progress();
  resources.report_use(context);
  if (!choices) return fail(std::move(choices.error()));
  ExitCode code = report_failures(context, choices->parallelizers);
  if (code == ExitCode::kOk && stopped_early(context.settings, options, choices->finished)) {
    code = ExitCode::kStoppedEarly;
  }
  const std::string text = choices_json(*choices, writes);
  if (folder) {
    if (auto done = write_choices(*choices, text, *folder); !done) return fail(std::move(done.error()));
    context.signals.release();
    context.terminal.note(
        fmt::format("wrote {} plans and choices.json to {}", choices->plans.size(), arguments.output));
  }
  return PlanOutput{text, text, choices_for_people(*choices, writes, context.terminal), code, ""};
}

/// Searches have to be kept, by parallelizers whose searches can be.
std::optional<Diagnostics> ahead_complaint(const Cache& cache, const planner::PlanOptions& options) {
  if (cache.searches == nullptr) {
    return no_cache(cache, "ahead-without-cache", "--ahead caches searches, and the cache is off");
  }
  const parallelizer::ParallelizerInfo* unknown = planner::first_uncacheable(options.parallelizers);
  if (unknown == nullptr) return std::nullopt;
  return Diagnostics{problem(
      ErrorKind::kPlugin, "ahead-unknown-parallelizer",
      fmt::format("--ahead caches searches, and those with parallelizer {} cannot be cached: it {}", unknown->name,
                  unknown->deterministic ? "did not start" : "says that its answers differ from time to time"),
      "leave --ahead out")};
}

std::string ahead_text(const planner::Ahead& ahead) {
  return fmt::format("searched ahead: {} without any one of {}, {} with one more ({} made, {} kept before)",
                     counted(static_cast<std::int64_t>(ahead.fewer), "fleet"),
                     counted(static_cast<std::int64_t>(ahead.nodes), "node"), ahead.more, counted(ahead.made, "search"),
                     ahead.found);
}

void look_ahead(const PlanningInputs& inputs, const planner::PlanOptions& options,
                const compose::ProgressCallback& progress, const Context& context) {
  const Deadline& deadline = options.search.deadline;
  if (deadline.has_passed()) {
    context.terminal.note(fmt::format("did not search ahead: the time limit of {:g} s is over", deadline.seconds()));
    return;
  }
  if (options.cache->misses() > options.cache->stored()) {
    context.terminal.note("did not search ahead: searches in which a parallelizer failed are not cached");
    return;
  }
  const planner::Ahead ahead = planner::search_ahead(inputs.fleet, inputs.model, options, progress);
  context.terminal.clear_progress();
  if (deadline.is_missed()) {
    context.terminal.note(
        fmt::format("the time limit of {:g} s stopped searching ahead, with {} made and {} kept before",
                    deadline.seconds(), counted(ahead.made, "search"), ahead.found));
    return;
  }
  context.terminal.note(ahead_text(ahead));
}

/// The first diagnostic of a job that does not fit says what was tried and found to help.
void add_remedies(Diagnostics& why, const PlanningInputs& inputs, const planner::PlanOptions& options,
                  const Context& context) {
  Diagnostic& first = why.front();
  const std::initializer_list<std::string_view> curable = {"out-of-memory", "no-strategy", "module-constraints"};
  if (first.kind != ErrorKind::kInfeasible || std::ranges::find(curable, first.code) == curable.end()) return;
  const auto islands = cluster::find_islands(inputs.fleet, options.island_tolerance);
  const auto helping = objective::find_remedies(
      options.target, inputs.model, islands, options.search,
      [&](const std::string& what) { context.terminal.progress(fmt::format("no plan; trying {}", what)); });
  context.terminal.clear_progress();
  if (helping.empty()) return;
  const std::string general = first.code != "no-strategy" ? fmt::format("; or {}", first.hint) : "";
  first.hint = fmt::format("{} a plan possible: {}{}", helping.size() > 1 ? "each of these makes" : "this makes",
                           fmt::join(helping, "; "), general);
}

ExitCode run_plan(const PlanArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = complaint(arguments, context)) return refuse(*wrong);
  if (const auto wrong = request_conflict(context.settings)) return refuse(*wrong);
  const auto inputs = load_inputs(arguments, context);
  if (!inputs) return refuse(inputs.error());
  report_assumptions(context, inputs->fleet, &inputs->model);
  const auto most = context.settings.count("pareto");
  auto files = open_files(context, arguments);
  if (!files) return refuse(files.error());

  std::optional<tbb::global_control> threads;
  if (const auto jobs = context.settings.count("jobs")) {
    threads.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(*jobs));
  }
  context.terminal.progress("finding islands");
  auto usual = plan_options(context.settings, inputs->fleet, inputs->model);
  if (!usual) return refuse(usual.error());
  planner::PlanOptions options = *std::move(usual);
  if (!inputs->profiles.empty()) options.search.profiles = &inputs->profiles;
  std::optional<discrepancy::Discrepancy> own_runs;
  if (inputs->own_runs) {
    report_left_out(context, *inputs->own_runs);
    options.own_runs = &own_runs.emplace(inputs->own_runs->runs);
    options.search.top = std::max(options.search.top, planner::kCandidatesBesideRuns);
  }
  const Cache cache = open_cache(context.settings);
  options.cache = cache.searches.get();
  const auto planners =
      make_planners(context.settings, inputs->model, options.search.profiles, cache, options.search.deadline,
                    [&](const std::string& line) { context.terminal.progress(line); });
  if (!planners) return refuse(planners.error());
  options.parallelizers = planners->all();
  auto request = request_of_settings(context.settings, inputs->fleet, inputs->model);
  if (!request) return refuse(request.error());
  options.request = *request;
  const bool ahead = context.settings.enabled("ahead");
  if (const auto wrong = ahead ? ahead_complaint(cache, options) : std::nullopt) return refuse(*wrong);

  const auto progress = [&](const compose::Progress& p) { context.terminal.progress(progress_line(p)); };
  const SearchResources resources{cache, *planners};
  const auto made = most ? plan_choices(*inputs, options, *most, resources, progress, arguments, context)
                    : arguments.against.empty()
                        ? plan_best(*inputs, options, resources, progress, arguments, context)
                        : plan_against(*inputs, options, resources, progress, arguments, context);
  if (!made) {
    Diagnostics why = made.error();
    add_remedies(why, *inputs, options, context);
    return refuse(why);
  }
  const ExitCode code = deliver(context, arguments, *files, *made);
  if (ahead && code != ExitCode::kInternal) {
    look_ahead(*inputs, arguments.against.empty() ? options : planner::replan_options(options), progress, context);
  }
  return code;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .usage = "CLUSTER MODEL",
          .summary = "plan a training job on a mixed fleet",
          .examples = R"(  tangram plan fleet.json model.yaml
  tangram plan fleet.json hf/config.json --global-batch 512 -o plan.json
  tangram plan fleet.json model.yaml --forbid ep,zero3 --json | jq .predicted
  tangram plan fleet.json model.yaml --add gpu=H100,nodes=2 --drop rack=r3
  tangram plan fleet.json model.yaml --against plan.json -o next.json
  tangram plan fleet.json model.yaml --html plan.html
)",
          .details = R"(Decides which GPUs form which pipeline stage, how many layers each stage holds
and how each stage is parallelized. Every plan is checked and simulated before
it is shown. CLUSTER is a cluster.json or the name of a shipped cluster, MODEL
a model.yaml, a Hugging Face config.json or the name of a shipped model
(tangram init --list). One of the two files may be - (standard input). --json
prints the launch plan itself, the same bytes that -o writes.

--drop, --add and --set change the fleet for this run, in this order. They name
nodes by host name, label or GPU type, and links by the values of a label that
they join. --set changes the network, compute, memory and price of nodes and of
GPU types.

--against PLAN prices a running plan on the fleet as it is now; GPUs are
matched by host name and number. The plan is kept, and -o writes it unchanged,
while it fits and no other plan gains --min-gain. Otherwise, among the plans
within --min-gain of the best, the one that reassigns the fewest GPUs is taken.
The output gives the reason; --json prints the decision. A PLAN that check
refuses is an error (exit 4).

--own-runs FILES are iteration times of your own runs: {"plan": "plan.json",
"iter_time_s": 11.2}. They correct what is predicted of plans like them, and
decide among the plans that are simulated; bounds, gaps and limits are of
predictions alone. tangram calibrate --from runs shows what they are worth.

Searches are cached (tangram cache), so planning for a fleet that differs only
in names is a lookup. --ahead goes on, once the plan is written, to fleets with
any one node fewer and with one node more like any, so that the next such
change is a lookup, too. With --against it prepares the next run with
--against. Searches for unequal pipelines are not cached.

Manual: tangram help plans, tangram help replanning
)",
          .bind = bound<PlanArguments>(parameters_of, run_plan),
          .settings = {SettingGroup::kPlan, SettingGroup::kTarget, SettingGroup::kJob, SettingGroup::kProfiles,
                       SettingGroup::kOwnRuns, SettingGroup::kPlugins, SettingGroup::kWorkerCores, SettingGroup::kCache,
                       SettingGroup::kSearch, SettingGroup::kIslands},
          .edits_fleet = true};
}

}  // namespace tangram::app
