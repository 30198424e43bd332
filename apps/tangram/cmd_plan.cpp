#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "cache_settings.hpp"
#include "choices_view.hpp"
#include "commands.hpp"
#include "inputs.hpp"
#include "objective_settings.hpp"
#include "parallelizers.hpp"
#include "plan_view.hpp"
#include "planning_inputs.hpp"
#include "replan_view.hpp"
#include "table.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/compose/remedies.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "tangram/planner/ahead.hpp"
#include "tangram/planner/checked_plan.hpp"

namespace tangram::app {

namespace {

struct PlanInputs : PlanningInputs {
  std::string old_text;  // of the plan that is planned against; empty: none
  plan::LaunchPlan old;
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
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

std::optional<Diagnostics> complaint(const PlanArguments& arguments, const Settings& settings) {
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
  if (settings.count("pareto") && settings.text("objective") != compose::to_string(compose::Objective::kThroughput)) {
    return usage_mistake("two-questions", "--pareto lists choices for every objective, --objective asks for one plan",
                         "leave one of them out; --budget and --min-throughput limit the list");
  }
  if (!arguments.against.empty() && settings.count("pareto")) {
    return usage_mistake("two-questions", "--pareto lists plans, --against decides about one", "leave one of them out");
  }
  std::vector<std::string> inputs = settings.files("profile");
  inputs.insert(inputs.end(), {arguments.cluster, arguments.model, arguments.against});
  for (const std::string& input : inputs) {
    if (arguments.output.empty() || !io::same_file(arguments.output, input)) continue;
    return usage_mistake("overwrites-input", fmt::format("--output {} would overwrite an input", arguments.output),
                         "give the plan a name of its own");
  }
  return std::nullopt;
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
  const bool limited = settings.value("time-budget").origin != Origin::kDefault;
  return !finished && (limited || options.request.objective != compose::Objective::kThroughput);
}

/// What a plan or a list of plans is told as, and to whom.
struct Told {
  std::string written;  // the file's text
  std::string json;     // what --json prints
  std::string for_people;
  ExitCode code = ExitCode::kOk;
};

/// The file first, then what is to be read.
ExitCode deliver(const Context& context, const PlanArguments& arguments, std::optional<io::OutputFile>& output,
                 const Told& told) {
  if (const auto written = write_output(context, output, told.written); !written) {
    return report(context.terminal, context.json, written.error());
  }
  const bool to_stdout = arguments.output == "-" && !context.json;
  return print_text(context, context.json ? told.json : to_stdout ? told.written : told.for_people, told.code);
}

/// What a plan is made with beside inputs and options.
struct Means {
  const Cache& cache;
  const Planners& planners;

  void tell(const Context& context) const {
    const bool plugins = std::ranges::any_of(planners.all(), [](const auto* p) { return !p->info().built_in; });
    tell_cache(context, cache, plugins);
  }
};

/// What the parallelizers failed at, for people and as exit code.
ExitCode tell_failures(const Context& context, const std::vector<parallelizer::Tally>& tallies) {
  if (const Diagnostics failures = parallelizer::failures_of(tallies); !failures.empty())
    context.terminal.error(failures);
  return exit_code_of(tallies);
}

void tell_effort(const Context& context, const compose::SearchStatistics& s) {
  context.terminal.detail(fmt::format("{} queries, {} partial plans, {} on frontiers, {} programs ({} cut), {} labels",
                                      thousands(s.queries), thousands(s.partial_plans), thousands(s.frontier_plans),
                                      thousands(s.programs), thousands(s.programs_cut), thousands(s.labels)));
}

Expected<Told> plan_best(const PlanningInputs& inputs, const planner::PlanOptions& options, const Means& means,
                         const compose::ProgressCallback& progress, const Context& context) {
  auto planned = planner::make_plan(inputs.fleet, inputs.model, options, progress);
  context.terminal.clear_progress();
  means.tell(context);
  if (!planned) return fail(std::move(planned.error()));
  tell_effort(context, planned->statistics);
  ExitCode code = tell_failures(context, planned->parallelizers);
  if (code == ExitCode::kOk && stopped_early(context.settings, options, planned->search_finished))
    code = ExitCode::kStoppedEarly;
  const auto text = planner::checked_text(planned->plan, inputs.fleet, inputs.model);
  if (!text) return fail(text.error());
  return Told{*text, *text, plan_for_people(planned->plan, context.terminal), code};
}

/// Where the old plan is kept, its text is written as it was: nothing changed. Where its figures are no longer those
/// that check works out, it is written with those of today.
Expected<std::string> text_of(planner::Replanned& replanned, const PlanInputs& inputs) {
  if (replanned.change) return planner::checked_text(replanned.next, inputs.fleet, inputs.model);
  if (!replanned.now || planner::full_check(inputs.old).ok()) return inputs.old_text;
  return planner::checked_text(*replanned.now, inputs.fleet, inputs.model);
}

Expected<Told> plan_against(const PlanInputs& inputs, const planner::PlanOptions& options, const Means& means,
                            const compose::ProgressCallback& progress, const PlanArguments& arguments,
                            const Context& context) {
  auto replanned =
      planner::replan(inputs.old, inputs.fleet, inputs.model, options, context.settings.share("min-gain"), progress);
  context.terminal.clear_progress();
  means.tell(context);
  if (!replanned) return fail(std::move(replanned.error()));
  ExitCode code = tell_failures(context, replanned->parallelizers);
  if (code == ExitCode::kOk && replanned->change && arguments.detailed_exitcode) code = ExitCode::kDifferent;
  auto text = text_of(*replanned, inputs);
  if (!text) return fail(std::move(text.error()));
  return Told{std::move(*text), io::write_canonical(replanned_json(*replanned)),
              replanned_for_people(*replanned, context.terminal), code};
}

Expected<Told> plan_choices(const PlanningInputs& inputs, const planner::PlanOptions& options, std::int64_t most,
                            const Means& means, const compose::ProgressCallback& progress,
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
  means.tell(context);
  if (!choices) return fail(std::move(choices.error()));
  ExitCode code = tell_failures(context, choices->parallelizers);
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
  return Told{text, text, choices_for_people(*choices, writes, context.terminal), code};
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
  if (options.cache->misses() > options.cache->stored()) {
    context.terminal.note("did not search ahead: searches in which a parallelizer failed are not cached");
    return;
  }
  const planner::Ahead ahead = planner::search_ahead(inputs.fleet, inputs.model, options, progress);
  context.terminal.clear_progress();
  context.terminal.note(ahead_text(ahead));
}

/// The first diagnostic of a job that does not fit says what was tried and found to help.
void add_remedies(Diagnostics& why, const PlanningInputs& inputs, const planner::PlanOptions& options,
                  const Context& context) {
  Diagnostic& first = why.front();
  if (first.kind != ErrorKind::kInfeasible || (first.code != "out-of-memory" && first.code != "no-strategy")) return;
  const auto islands = cluster::find_islands(inputs.fleet, options.island_tolerance);
  const auto helping = compose::find_remedies(
      options.target, inputs.model, islands, options.search,
      [&](const std::string& what) { context.terminal.progress(fmt::format("no plan; trying {}", what)); });
  context.terminal.clear_progress();
  if (helping.empty()) return;
  const std::string general = first.code == "out-of-memory" ? fmt::format("; or {}", first.hint) : "";
  first.hint = fmt::format("{} a plan possible: {}{}", helping.size() > 1 ? "each of these makes" : "this makes",
                           fmt::join(helping, "; "), general);
}

}  // namespace

ExitCode run_plan(const PlanArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = complaint(arguments, context.settings)) return refuse(*wrong);
  if (const auto wrong = request_conflict(context.settings)) return refuse(*wrong);
  const auto inputs = load_inputs(arguments, context);
  if (!inputs) return refuse(inputs.error());
  tell_assumed(context, inputs->fleet, &inputs->model);
  const auto most = context.settings.count("pareto");
  auto output = open_output(context, most ? "" : arguments.output);
  if (!output) return refuse(output.error());

  std::optional<tbb::global_control> threads;
  if (const auto jobs = context.settings.count("jobs")) {
    threads.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(*jobs));
  }
  context.terminal.progress("finding islands");
  auto usual = plan_options(context.settings, inputs->fleet, inputs->model);
  if (!usual) return refuse(usual.error());
  planner::PlanOptions options = *std::move(usual);
  options.target = target_of(context.settings);
  if (!inputs->profiles.empty()) options.search.profiles = &inputs->profiles;
  const Cache cache = open_cache(context.settings);
  options.cache = cache.searches.get();
  const auto planners = make_planners(context.settings, inputs->model, options.search.profiles, cache,
                                      [&](const std::string& line) { context.terminal.progress(line); });
  if (!planners) return refuse(planners.error());
  options.parallelizers = planners->all();
  auto request = request_of_settings(context.settings, inputs->fleet, inputs->model);
  if (!request) return refuse(request.error());
  options.request = *request;
  const bool ahead = context.settings.enabled("ahead");
  if (const auto wrong = ahead ? ahead_complaint(cache, options) : std::nullopt) return refuse(*wrong);

  const auto progress = [&](const compose::Progress& p) { context.terminal.progress(progress_line(p)); };
  const Means means{cache, *planners};
  const auto told = most ? plan_choices(*inputs, options, *most, means, progress, arguments, context)
                    : arguments.against.empty() ? plan_best(*inputs, options, means, progress, context)
                                                : plan_against(*inputs, options, means, progress, arguments, context);
  if (!told) {
    Diagnostics why = told.error();
    add_remedies(why, *inputs, options, context);
    return refuse(why);
  }
  const ExitCode code = deliver(context, arguments, *output, *told);
  if (ahead && code != ExitCode::kInternal) {
    look_ahead(*inputs, arguments.against.empty() ? options : planner::replan_options(options), progress, context);
  }
  return code;
}

}  // namespace tangram::app
