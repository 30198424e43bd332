#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "parallelizers.hpp"
#include "table.hpp"
#include "tangram/parallelizer/conformance.hpp"
#include "tangram/parallelizer/registry.hpp"

namespace tangram::app {

namespace {

using Json = nlohmann::ordered_json;

/// `parallelizers list` and `parallelizers test NAME`.
struct ParallelizersArguments {
  std::string action;
  std::string name;  ///< empty: not given
};

Parameters parameters_of(ParallelizersArguments& a) {
  return {{{"ACTION", "list or test", &a.action}, {"NAME", "the parallelizer to test", &a.name, /*required=*/false}},
          {}};
}

/// One line of the list.
struct Listed {
  std::string name;
  std::string state;  ///< "built in", "ready", "not available", "bad manifest", "hidden"
  std::string version;
  std::string where;
  std::string says;  ///< what it is, or why it is not available
  std::string todo;  ///< when it is not
};

Listed listed(const parallelizer::FoundPlugin& found, parallelizer::Launcher& launcher) {
  Listed line{found.spec.name, "ready", "", found.where, found.spec.summary, ""};
  if (!found.mistakes.empty()) {
    line.state = "bad manifest";
    line.says = found.mistakes.front().message;
    line.todo = "fix the manifest";
    return line;
  }
  if (found.hidden) {
    line.state = "hidden";
    line.says = "another parallelizer of this name takes precedence";
    return line;
  }
  const auto pool = parallelizer::make_worker_pool(found.spec, {}, launcher);
  if (pool->plugin()) {
    line.version = pool->plugin()->version;
    return line;
  }
  line.state = "not available";
  line.says = pool->plugin().error().front().message;
  line.todo = found.spec.install;
  return line;
}

std::vector<Listed> list_all(const Context& context, parallelizer::Launcher& launcher) {
  std::vector<Listed> lines;
  for (const parallelizer::BuiltIn& built_in : parallelizer::built_ins()) {
    lines.push_back({std::string(built_in.name), "built in", "", "", std::string(built_in.summary), ""});
  }
  for (const auto& found : parallelizer::find_plugins(plugin_places(context.settings))) {
    context.terminal.progress(fmt::format("starting {}", found.spec.name));
    lines.push_back(listed(found, launcher));
  }
  context.terminal.clear_progress();
  return lines;
}

std::string list_for_people(const std::vector<Listed>& lines, const parallelizer::PluginPlaces& places,
                            const Terminal& terminal) {
  Table table({{"name"}, {"state"}, {"what it is, or why not", false, 40}});
  for (const Listed& line : lines) {
    const bool good = line.state == "built in" || line.state == "ready";
    table.add({{line.name, Style::kBold},
               {line.version.empty() ? line.state : fmt::format("{}, {}", line.state, line.version),
                good ? Style::kGreen : Style::kYellow},
               {line.says}});
    if (!line.where.empty()) table.add({{""}, {""}, {line.where, Style::kDim}});
    if (!line.todo.empty()) table.add({{""}, {""}, {line.todo}});
  }
  std::string out = table.render(terminal) + "\nlooked in:\n";
  for (const std::string& folder : places.folders) out += fmt::format("  {}/NAME.yaml\n", folder);
  out += "  tangram-parallelizer-NAME on the PATH\n";
  return out;
}

ExitCode list(const Context& context) {
  const Progress progress = [&](const std::string& line) { context.terminal.progress(line); };
  const auto launcher = make_launcher(context.settings, 1, 1, progress);
  if (!launcher) return report(context.terminal, context.json, launcher.error());
  const std::vector<Listed> lines = list_all(context, **launcher);
  const parallelizer::PluginPlaces places = plugin_places(context.settings);
  Json document;
  document["schema"] = "tangram.parallelizers/1";
  document["status"] = "ok";
  document["parallelizers"] = Json::array();
  for (const Listed& line : lines) {
    Json entry{{"name", line.name}, {"state", line.state}, {"says", line.says}};
    if (!line.version.empty()) entry["version"] = line.version;
    if (!line.where.empty()) entry["where"] = line.where;
    if (!line.todo.empty()) entry["to_do"] = line.todo;
    document["parallelizers"].push_back(entry);
  }
  document["folders"] = places.folders;
  return print_result(context, list_for_people(lines, places, context.terminal), document);
}

std::string report_for_people(const parallelizer::ConformanceReport& report, const Terminal& terminal) {
  Table table({{""}, {"expected"}, {"seen", false, 40}});
  for (const parallelizer::ConformanceCheck& check : report.checks) {
    table.add({{check.ok ? "ok" : "FAIL", check.ok ? Style::kGreen : Style::kRed}, {check.name}, {check.detail}});
  }
  std::string out = table.render(terminal);
  if (const auto& claimed = report.tally.claimed) {
    out += fmt::format("\nits times are {:.2f} to {:.2f} times the recomputed ones\n", claimed->least, claimed->most);
  }
  if (!report.printed.empty()) out += "\nits last output:\n" + report.printed;
  if (!report.printed.empty() && report.printed.back() != '\n') out += "\n";
  return out;
}

ExitCode test(const std::string& name, const Context& context) {
  const auto spec = parallelizer::find_plugin(name, plugin_places(context.settings));
  if (!spec) return report(context.terminal, context.json, spec.error());
  constexpr int kPools = 3;  // the test has so many at once, of one worker each
  const Progress progress = [&](const std::string& line) { context.terminal.progress(line); };
  const auto options = plugin_options(context.settings, 1, progress);
  if (!options) return report(context.terminal, context.json, options.error());
  const auto launcher = make_launcher(context.settings, kPools, spec->threads, progress);
  if (!launcher) return report(context.terminal, context.json, launcher.error());
  const parallelizer::ConformanceReport tested = parallelizer::test_plugin(*spec, *options, **launcher);
  context.terminal.clear_progress();
  const ExitCode code = tested.ok() ? ExitCode::kOk : ExitCode::kPlugin;
  Json document;
  document["schema"] = "tangram.conformance/1";
  document["status"] = status_of(code);
  document["parallelizer"] = spec->name;
  document["checks"] = Json::array();
  for (const parallelizer::ConformanceCheck& check : tested.checks) {
    document["checks"].push_back(Json{{"expected", check.name}, {"ok", check.ok}, {"seen", check.detail}});
  }
  if (!tested.printed.empty()) document["printed"] = tested.printed;
  return print_result(context, report_for_people(tested, context.terminal), document, code);
}

ExitCode run_parallelizers(const ParallelizersArguments& arguments, const Context& context) {
  const auto mistaken = [&](std::string code, std::string message, std::string hint) {
    return report(context.terminal, context.json, usage_mistake(std::move(code), std::move(message), std::move(hint)));
  };
  if (arguments.action == "list") {
    if (arguments.name.empty()) return list(context);
    return mistaken("extra-argument", fmt::format("list takes no further argument \"{}\"", arguments.name),
                    "tangram parallelizers test NAME tests one");
  }
  if (arguments.action != "test") {
    return mistaken("unknown-action", fmt::format("parallelizers has no action \"{}\"", arguments.action),
                    "actions: list, test");
  }
  if (arguments.name.empty()) {
    return mistaken("missing-argument", "parallelizers test needs NAME", "tangram parallelizers list shows names");
  }
  return test(arguments.name, context);
}

}  // namespace

Command parallelizers_command() {
  return {.name = "parallelizers",
          .usage = "list|test [NAME]",
          .summary = "list and test the parallelizers",
          .examples = R"(  tangram parallelizers list
  tangram parallelizers test galvatron
  tangram parallelizers test ./my_planner.py
  tangram plan fleet.json model.yaml --parallelizer enumerator,./my_planner.py
)",
          .details = R"(A parallelizer answers how to run a part of the model on equal GPUs. list shows
the built-in ones and the plugins found (manifests in --parallelizer-path,
beside the program and in the user's folder; programs called
tangram-parallelizer-NAME on the PATH), whether they start, and if not, what to
do. test asks a parallelizer what a plan would ask and reports what is wrong
with its answers. A NAME that contains a / is a manifest or a program.

Manual: tangram help plugins
)",
          .bind = bound<ParallelizersArguments>(parameters_of, run_parallelizers),
          .settings = {SettingGroup::kPlugins}};
}

}  // namespace tangram::app
