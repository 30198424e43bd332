#include <nlohmann/json.hpp>
#include <optional>

#include "commands.hpp"
#include "diff_view.hpp"
#include "inputs.hpp"

namespace tangram::app {

namespace {

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

}  // namespace

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

}  // namespace tangram::app
