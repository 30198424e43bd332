#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "choices.hpp"
#include "commands.hpp"
#include "inputs.hpp"
#include "parallelizers.hpp"
#include "plan_view.hpp"
#include "planning.hpp"
#include "planning_inputs.hpp"
#include "replan.hpp"
#include "table.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "wishes.hpp"

namespace tangram::app {

namespace {

struct Inputs : PlanningInputs {
  std::string old_text;  // of the plan that is planned against; empty: none
  plan::LaunchPlan old;
};

/// The plan and its text, which is written again where it is kept.
void load_old(const std::string& path, Inputs& inputs, Diagnostics& mistakes) {
  take(io::read_file(path), inputs.old_text, mistakes);
  if (!inputs.old_text.empty()) take(plan::read_plan(inputs.old_text, path), inputs.old, mistakes);
}

/// All files, with the mistakes of all.
Expected<Inputs> load_inputs(const PlanArguments& arguments, const Context& context) {
  Inputs inputs;
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
    return usage_mistake("nothing-to-compare", "--detailed-exitcode tells whether a plan changes",
                         "say which plan with --against PLAN");
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

/// The user's own limit was what ended the search.
bool stopped_early(const Settings& settings, const PlannedResult& planned) {
  return settings.value("time-budget").origin != Origin::kDefault && !planned.search_finished;
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

void tell_trouble(const Context& context, const Planners& planners) {
  if (const auto trouble = planners.trouble_with_cache()) {
    context.terminal.note(fmt::format("plans without the answer cache: {}: {} ({})", trouble->where.file,
                                      trouble->message, trouble->hint));
  }
}

/// What the parallelizers failed at, for people and as exit code.
ExitCode tell_failures(const Context& context, const std::vector<parallelizer::Tally>& tallies) {
  if (const Diagnostics failures = failures_of(tallies); !failures.empty()) context.terminal.error(failures);
  return exit_code_of(tallies);
}

void tell_effort(const Context& context, const compose::SearchStatistics& s) {
  context.terminal.detail(fmt::format("{} queries, {} partial plans, {} on frontiers, {} programs ({} cut), {} labels",
                                      thousands(s.queries), thousands(s.partial_plans), thousands(s.frontier_plans),
                                      thousands(s.programs), thousands(s.programs_cut), thousands(s.labels)));
}

Expected<Told> plan_best(const PlanningInputs& inputs, const PlanningOptions& options, const Planners& planners,
                         const compose::ProgressCallback& progress, const Context& context) {
  auto planned = make_plan(inputs.fleet, inputs.model, options, progress);
  context.terminal.clear_progress();
  tell_trouble(context, planners);
  if (!planned) return fail(std::move(planned.error()));
  tell_effort(context, planned->statistics);
  ExitCode code = tell_failures(context, planned->parallelizers);
  if (code == ExitCode::kOk && stopped_early(context.settings, *planned)) code = ExitCode::kStoppedEarly;
  const std::string text = plan::write_plan(planned->plan);
  return Told{text, text, plan_for_people(planned->plan, context.terminal), code};
}

/// Where the old plan is kept, its text is written as it was: nothing changed.
Expected<Told> plan_against(const Inputs& inputs, const PlanningOptions& options, const Planners& planners,
                            const compose::ProgressCallback& progress, const PlanArguments& arguments,
                            const Context& context) {
  auto replanned =
      replan(inputs.old, inputs.fleet, inputs.model, options, context.settings.share("min-gain"), progress);
  context.terminal.clear_progress();
  tell_trouble(context, planners);
  if (!replanned) return fail(std::move(replanned.error()));
  ExitCode code = tell_failures(context, replanned->parallelizers);
  if (code == ExitCode::kOk && replanned->change && arguments.detailed_exitcode) code = ExitCode::kDifferent;
  return Told{replanned->change ? plan::write_plan(replanned->next) : inputs.old_text,
              io::write_canonical(replanned_json(*replanned)), replanned_for_people(*replanned, context.terminal),
              code};
}

Expected<Told> plan_choices(const PlanningInputs& inputs, const PlanningOptions& options, std::int64_t most,
                            const Planners& planners, const compose::ProgressCallback& progress,
                            const Context& context) {
  auto choices = make_choices(inputs.fleet, inputs.model, options, static_cast<std::size_t>(most), progress);
  context.terminal.clear_progress();
  tell_trouble(context, planners);
  if (!choices) return fail(std::move(choices.error()));
  const ExitCode code = tell_failures(context, choices->parallelizers);
  const std::string text = choices_json(choices->plans);
  return Told{text, text, choices_for_people(choices->plans, context.terminal), code};
}

}  // namespace

ExitCode run_plan(const PlanArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  if (const auto wrong = complaint(arguments, context.settings)) return refuse(*wrong);
  if (const auto wrong = wish_complaint(context.settings)) return refuse(*wrong);
  const auto inputs = load_inputs(arguments, context);
  if (!inputs) return refuse(inputs.error());
  auto output = open_output(context, arguments.output);
  if (!output) return refuse(output.error());

  std::optional<tbb::global_control> threads;
  if (const auto jobs = context.settings.count("jobs")) {
    threads.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(*jobs));
  }
  context.terminal.progress("finding islands");
  PlanningOptions options = planning_options(context.settings, inputs->fleet);
  options.target = target_of(context.settings);
  if (!inputs->profiles.empty()) options.search.profiles = &inputs->profiles;
  const auto planners = make_planners(context.settings, inputs->model, options.search.profiles,
                                      [&](const std::string& line) { context.terminal.progress(line); });
  if (!planners) return refuse(planners.error());
  options.parallelizers = planners->all();
  auto wish = wish_of(context.settings, inputs->fleet, inputs->model);
  if (!wish) return refuse(wish.error());
  options.wish = *wish;

  const auto progress = [&](const compose::Progress& p) { context.terminal.progress(progress_line(p)); };
  const auto most = context.settings.count("pareto");
  const auto told = most ? plan_choices(*inputs, options, *most, *planners, progress, context)
                    : arguments.against.empty()
                        ? plan_best(*inputs, options, *planners, progress, context)
                        : plan_against(*inputs, options, *planners, progress, arguments, context);
  if (!told) return refuse(told.error());
  return deliver(context, arguments, *output, *told);
}

}  // namespace tangram::app
