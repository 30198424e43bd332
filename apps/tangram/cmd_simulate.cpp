#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "inputs.hpp"
#include "plan_view.hpp"
#include "table.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/io/file.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

struct SimulateArguments {
  std::string plan;
  std::string trace;      ///< empty: no trace
  std::string transfers;  ///< empty: as the plan's runtime has them
};

Parameters parameters_of(SimulateArguments& a) {
  return {{{"PLAN", "a launch plan", &a.plan}},
          {{"trace", "FILE", "write a Chrome trace to FILE", &a.trace},
           {"transfers", "KIND", "overlapped, blocking or forward-blocking, instead of what the plan's runtime has",
            &a.transfers}}};
}

const plan::Stage& stage_of(const plan::LaunchPlan& plan, const simulate::StageUse& use) {
  return plan.stage(at(at(plan.pipelines, use.pipeline).stages, use.stage));
}

std::string share(Nanoseconds part, Nanoseconds whole) { return table_percent(part.as_double() / whole.as_double()); }

std::string for_people(const plan::LaunchPlan& plan, const simulate::Result& result, const Terminal& terminal) {
  Table table({{"pipeline", true},
               {"stage", true},
               {"GPUs", false, 16},
               {"layers"},
               {"computes", true},
               {"idle", true},
               {"sync", true},
               {"in flight", true}});
  for (const simulate::StageUse& use : result.stages) {
    const plan::Stage& stage = stage_of(plan, use);
    const Style style = stage.id == plan.predicted.bottleneck_stage ? Style::kBold : Style::kPlain;
    std::vector<std::string> gpus;
    gpus.reserve(stage.parts.size());
    for (const plan::Part& part : stage.parts) gpus.push_back(gpus_text(plan, part));
    table.add({{fmt::format("{}", use.pipeline)},
               {fmt::format("{}", use.stage)},
               {fmt::format("{}", fmt::join(gpus, " + ")), style},
               {layers_text(stage)},
               {share(use.busy, result.iteration), style},
               {share(use.idle, result.iteration)},
               {share(use.exposed_sync, result.iteration)},
               {fmt::format("{}", use.max_in_flight)}});
  }
  return fmt::format("{} an iteration: passes until {}, gradients synchronised at {}, then the optimizer\n\n{}",
                     people_time(to_seconds(result.iteration)), people_time(to_seconds(result.last_backward)),
                     people_time(to_seconds(result.optimizer_start)), table.render(terminal));
}

/// What is simulated is what is written, so that a plan changed by hand shows what the change would do; but nobody
/// should take it for a plan that runs.
std::string warning_of(const plan::CheckReport& judged, const Terminal& terminal) {
  const std::string text = failed_check_text(judged);
  return text.empty() ? "" : "\n" + labelled(terminal, "warning", text);
}

Json document_of(const plan::LaunchPlan& plan, const plan::CheckReport& judged, const simulate::Result& result) {
  Json json;
  json["schema"] = "tangram.simulation/1";
  json["status"] = "ok";
  json["iteration_ns"] = result.iteration.value();
  json["last_backward_ns"] = result.last_backward.value();
  json["optimizer_start_ns"] = result.optimizer_start.value();
  json["tokens_per_s"] = plan.predicted.tokens_per_s;
  json["mfu"] = plan.predicted.mfu;
  json["bottleneck_stage"] = plan.predicted.bottleneck_stage;
  json["bubble_fraction"] = plan.predicted.bubble_fraction;
  json["stages"] = Json::array();
  for (const simulate::StageUse& use : result.stages) {
    json["stages"].push_back({{"pipeline", use.pipeline},
                              {"stage", use.stage},
                              {"busy_ns", use.busy.value()},
                              {"idle_ns", use.idle.value()},
                              {"exposed_sync_ns", use.exposed_sync.value()},
                              {"max_in_flight", use.max_in_flight}});
  }
  json["violations"] = Json::array();
  for (const plan::Violation& v : judged.violations) {
    json["violations"].push_back({{"code", v.code}, {"where", v.where}, {"message", v.message}});
  }
  return json;
}

Diagnostics deadlock(simulate::Transfers transfers) {
  const char* const hint =
      transfers == simulate::Transfers::kBlocking
          ? "where transfers block, stage s of S must warm up with S - 1 - s forward passes: plan with --target"
          : "a stage's warm-up must not be larger than that of the stage before it; see tangram check";
  return {
      problem(ErrorKind::kInfeasible, "deadlock", "the schedule cannot finish: two stages wait for each other", hint)};
}

ExitCode run_simulate(const SimulateArguments& arguments, const Context& context) {
  if (!arguments.trace.empty() && io::same_file(arguments.trace, arguments.plan)) {
    return report(context.terminal, context.json,
                  usage_mistake("overwrites-input", "--trace would overwrite the plan"));
  }
  if (arguments.trace == "-") {
    return report(context.terminal, context.json,
                  usage_mistake("bad-value", "--trace -: standard output is taken by the result", "name a file"));
  }
  const auto wanted = runtime::transfers_named(arguments.transfers);
  if (!arguments.transfers.empty() && !wanted) {
    return report(context.terminal, context.json,
                  usage_mistake("bad-value", fmt::format("--transfers {}: no such kind", arguments.transfers),
                                "overlapped, blocking or forward-blocking"));
  }
  auto plan = load_plan(arguments.plan);
  if (!plan) return report(context.terminal, context.json, plan.error());
  const plan::CheckReport judged = planner::full_check(*plan);
  if (!judged.followable) return report(context.terminal, context.json, planner::mistakes_in(*plan, arguments.plan));
  auto trace = open_output(context, arguments.trace);
  if (!trace) return report(context.terminal, context.json, trace.error());

  const auto transfers = wanted.value_or(plan->semantics().transfers);
  if (plan->schedule() != runtime::Schedule::k1F1B && transfers == simulate::Transfers::kBlocking) {
    return report(
        context.terminal, context.json,
        usage_mistake("bad-value", fmt::format("--transfers blocking: not under {}", to_string(plan->schedule())),
                      "overlapped or forward-blocking"));
  }
  const simulate::Result result = simulate::simulate(simulate::schedule_of(*plan, transfers), trace->has_value());
  if (result.deadlock) return report(context.terminal, context.json, deadlock(transfers));
  simulate::predict(*plan, result, FlopsPerSecond(0));
  if (*trace) {
    const auto written =
        write_output(context, *trace, simulate::write_trace(*plan, result), ": open it in https://ui.perfetto.dev");
    if (!written) return report(context.terminal, context.json, written.error());
  }
  return print_result(context, for_people(*plan, result, context.terminal) + warning_of(judged, context.terminal),
                      document_of(*plan, judged, result));
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .usage = "PLAN",
          .summary = "simulate a plan's schedule, event by event",
          .examples = R"(  tangram simulate plan.json
  tangram simulate plan.json --trace trace.json   (for https://ui.perfetto.dev)
)",
          .details = R"(Simulates a plan's schedule with its transfers and shows where the time of each
stage goes. Transfers are those of the runtime that the plan is for: beside the
passes (overlapped) where that is none in particular; Megatron-LM's stages stop
for them (blocking). A plan that check refuses is simulated as written, with a
warning.

Manual: tangram help plans
)",
          .bind = bound<SimulateArguments>(parameters_of, run_simulate)};
}

}  // namespace tangram::app
