#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::app {

/// Generated from configs/schemas.
std::vector<std::pair<std::string_view, std::string_view>> schema_files();

namespace {

struct SchemaArguments {
  std::string name;
};

Parameters parameters_of(SchemaArguments& a) {
  return {{{"NAME",
            "cluster, model, profile, timings, launch_plan, measurements, serving_measurements, kernels, kernel_times, "
            "operator_times, or a document of --json",
            &a.name}},
          {}};
}

/// What a command prints is often meant by the command's name: "explain" for "explanation".
std::optional<std::string> akin(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t kStem = 5;
  if (auto near = closest(word, names)) return near;
  const auto found = std::ranges::find_if(
      names, [&](const std::string& name) { return word.size() >= kStem && name.starts_with(word.substr(0, kStem)); });
  return found == names.end() ? std::nullopt : std::optional(*found);
}

ExitCode run_schema(const SchemaArguments& arguments, const Context& context) {
  std::vector<std::string> names;
  for (const auto& [file, content] : schema_files()) {
    const std::string name(file.substr(0, file.find('.')));
    if (name == arguments.name) return print_text(context, std::string(content));
    names.push_back(name);
  }
  const auto near = akin(arguments.name, names);
  return report(context.terminal, context.json,
                usage_mistake("unknown-schema", fmt::format("no such schema: \"{}\"", arguments.name),
                              near ? fmt::format("did you mean \"{}\"?", *near)
                                   : fmt::format("schemas: {}", fmt::join(names, ", "))));
}

}  // namespace

Command schema_command() {
  return {.name = "schema",
          .usage = "NAME",
          .summary = "print the JSON Schema of a file or of --json output",
          .examples = R"(  tangram schema cluster > cluster.schema.json
  tangram schema replan
)",
          .details = R"(Files: cluster, model, profile, timings (a line of them), measurements,
serving_measurements, launch_plan, kernels (a kernel graph), kernel_times,
operator_times.
Output of --json: accuracy, cache, calibration (calibrate), check, choices
(plan --pareto), comparison (compare), conformance (parallelizers test), diff,
disaggregation (disaggregate plan), disaggregation_adaptation (disaggregate
adapt), disaggregation_comparison (disaggregate compare),
disaggregation_simulation (disaggregate simulate), disaggregation_verification
(disaggregate verify), error, explanation (explain), export, gpu_list (gpus),
init, inventory (cluster), islands, kernel_accuracy, kernel_analysis and
kernel_check (kernels accuracy, analyze and check), kernel_calibration and
own_runs (calibrate --from kernels and runs), parallelizers, planner_files
(compare --write-inputs), replan (plan --against), serving_accuracy
(disaggregate accuracy), simulation (simulate), verification (verify), version.
NAME is the one in a document's own "schema": "tangram.NAME/1".
)",
          .bind = bound<SchemaArguments>(parameters_of, run_schema)};
}

}  // namespace tangram::app
