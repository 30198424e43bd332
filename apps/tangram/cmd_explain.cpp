#include <tbb/global_control.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cache_settings.hpp"
#include "commands.hpp"
#include "explanation_view.hpp"
#include "inputs.hpp"
#include "planning_inputs.hpp"

namespace tangram::app {

namespace {

struct ExplainInputs {
  plan::LaunchPlan plan;
  cluster::Fleet fleet;
  cost::ProfileSet profiles;
};

/// All files, with the mistakes of all.
Expected<ExplainInputs> load_inputs(const ExplainArguments& arguments, const Context& context) {
  ExplainInputs inputs;
  Diagnostics mistakes;
  take(load_fleet(arguments.cluster, context.edits), inputs.fleet, mistakes);
  const bool fleet = mistakes.empty();
  take(load_plan(arguments.plan), inputs.plan, mistakes);
  if (fleet) take(load_profiles(context.settings.files("profile"), inputs.fleet), inputs.profiles, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

}  // namespace

ExitCode run_explain(const ExplainArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  const auto inputs = load_inputs(arguments, context);
  if (!inputs) return refuse(inputs.error());
  tell_assumed(context, inputs->fleet);
  std::optional<tbb::global_control> threads;
  if (const auto jobs = context.settings.count("jobs")) {
    threads.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(*jobs));
  }
  auto usual = plan_options(context.settings, inputs->fleet, inputs->plan.model);
  if (!usual) return refuse(usual.error());
  planner::PlanOptions options = *std::move(usual);
  options.target = target_of(context.settings);
  if (!inputs->profiles.empty()) options.search.profiles = &inputs->profiles;
  const Cache cache = open_cache(context.settings);
  options.cache = cache.searches.get();
  const auto progress = [&](const compose::Progress& p) { context.terminal.progress("explaining: " + p.phase); };
  const auto explanation = planner::explain(inputs->plan, inputs->fleet, options, progress);
  context.terminal.clear_progress();
  tell_cache(context, cache, /*needed=*/false);
  if (!explanation) return refuse(explanation.error());
  return print_result(context, explanation_for_people(inputs->plan, *explanation, context.terminal),
                      explanation_json(inputs->plan, *explanation));
}

}  // namespace tangram::app
