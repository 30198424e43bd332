#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "diff_view.hpp"
#include "inputs.hpp"

namespace tangram::app {

namespace {

struct DiffArguments {
  std::string before;
  std::string after;
  std::string cluster;  ///< empty: not given
  bool exit_code = false;
};

Parameters parameters_of(DiffArguments& a) {
  return {{{"OLD", "a launch plan", &a.before}, {"NEW", "a launch plan", &a.after}},
          {{"cluster", "CLUSTER", "the fleet as it is now", &a.cluster},
           {"exit-code", "", "exit 2 if the plans differ", &a.exit_code}}};
}

struct DiffInputs {
  plan::LaunchPlan before;
  plan::LaunchPlan after;
  std::optional<cluster::Fleet> fleet;
};

/// All files, with the mistakes of all.
Expected<DiffInputs> load_inputs(const DiffArguments& arguments) {
  DiffInputs inputs;
  Diagnostics mistakes;
  take(load_plan(arguments.before), inputs.before, mistakes);
  take(load_plan(arguments.after), inputs.after, mistakes);
  if (!arguments.cluster.empty()) take(load_fleet(arguments.cluster), inputs.fleet, mistakes);
  if (!mistakes.empty()) return fail(std::move(mistakes));
  return inputs;
}

ExitCode run_diff(const DiffArguments& arguments, const Context& context) {
  const auto inputs = load_inputs(arguments);
  if (!inputs) return report(context.terminal, context.json, inputs.error());
  const auto& [before, after, fleet] = *inputs;
  const evolve::Switch change = evolve::switch_between(before, after, fleet ? &*fleet : nullptr);
  const bool differ = arguments.exit_code && !change.difference.same_body;
  nlohmann::ordered_json document{{"schema", "tangram.diff/1"},
                                  {"status", change.difference.same_body ? "same" : "different"}};
  document.update(switch_json(before, after, change));
  return print_result(context, switch_for_people(before, after, change, context.terminal), document,
                      differ ? ExitCode::kDifferent : ExitCode::kOk);
}

}  // namespace

Command diff_command() {
  return {.name = "diff",
          .usage = "OLD NEW",
          .summary = "show what changes between two plans",
          .examples = R"(  tangram diff old.json new.json
  tangram diff old.json new.json --cluster fleet.json   (with transfer time)
  tangram diff old.json new.json --exit-code > /dev/null || echo they differ
)",
          .details = R"(Compares what two launch plans do, not how they were found: stages, layers,
degrees, GPUs, predictions. It also lists what a switch moves: the parameters
and optimizer state that GPUs lack, and between which hosts. With --cluster,
hosts that are gone send nothing, and the transfer time is shown.

Manual: tangram help replanning
)",
          .bind = bound<DiffArguments>(parameters_of, run_diff)};
}

}  // namespace tangram::app
