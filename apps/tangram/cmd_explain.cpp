#include <tbb/global_control.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "cache_settings.hpp"
#include "command.hpp"
#include "explanation_view.hpp"
#include "inputs.hpp"
#include "planning_inputs.hpp"
#include "tangram/cost/scaled_rows.hpp"

namespace tangram::app {

namespace {

struct ExplainArguments {
  std::string plan;
  std::string cluster;
};

Parameters parameters_of(ExplainArguments& a) {
  return {{{"PLAN", "a launch plan", &a.plan}, {"CLUSTER", "cluster.json", &a.cluster}}, {}};
}

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
  if (fleet)
    take(load_profiles(context.settings.files("profile"), devices_of(inputs.fleet)), inputs.profiles, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  inputs.profiles = cost::with_scaled_rows(inputs.profiles, inputs.plan.model);
  return inputs;
}

ExitCode run_explain(const ExplainArguments& arguments, const Context& context) {
  const auto refuse = [&](const Diagnostics& why) { return report(context.terminal, context.json, why); };
  const auto inputs = load_inputs(arguments, context);
  if (!inputs) return refuse(inputs.error());
  report_assumptions(context, inputs->fleet);
  std::optional<tbb::global_control> threads;
  if (const auto jobs = context.settings.count("jobs")) {
    threads.emplace(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(*jobs));
  }
  auto usual = plan_options(context.settings, inputs->fleet, inputs->plan.model);
  if (!usual) return refuse(usual.error());
  planner::PlanOptions options = *std::move(usual);
  if (!inputs->profiles.empty()) options.search.profiles = &inputs->profiles;
  const Cache cache = open_cache(context.settings);
  options.cache = cache.searches.get();
  const auto progress = [&](const compose::Progress& p) { context.terminal.progress("explaining: " + p.phase); };
  const auto explanation = planner::explain(inputs->plan, inputs->fleet, options, progress);
  context.terminal.clear_progress();
  report_cache(context, cache, /*needed=*/false);
  if (!explanation) return refuse(explanation.error());
  return print_result(context, explanation_for_people(inputs->plan, *explanation, context.terminal),
                      explanation_json(inputs->plan, *explanation),
                      explanation->time_limit > 0 ? ExitCode::kStoppedEarly : ExitCode::kOk);
}

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .usage = "PLAN CLUSTER",
          .summary = "explain why a plan is as it is",
          .examples = R"(  tangram explain plan.json fleet.json
  tangram explain plan.json fleet.json --json | jq .limits
)",
          .details = R"(Prices what is near the plan: a tenth more compute, memory bandwidth and link
speed (what limits the plan), one layer moved across each cut, other degrees of
each stage, other execution options of the job, encoders elsewhere, the next
best plan. Then plans again with a tenth more memory on each GPU type (which
limit binds), with one more node of each class and without one island of each
class; and, for a runtime, without each of its rules in turn and without all.
CLUSTER is the fleet the plan was made for; --target names its runtime.

Manual: tangram help plans
)",
          .bind = bound<ExplainArguments>(parameters_of, run_explain),
          .settings = {SettingGroup::kTarget, SettingGroup::kProfiles, SettingGroup::kCache, SettingGroup::kSearch,
                       SettingGroup::kIslands},
          .edits_fleet = true};
}

}  // namespace tangram::app
