#include <exception>

#include "cli.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::app {

namespace {

/// A broken file does not take the manual away.
Expected<Settings> settings_of(const Invocation& invocation) {
  const Command& command = *invocation.command;
  auto settings = resolve_settings(command.settings, {invocation.common->flags, environment_variable, ".tangram.yaml",
                                                      user_config_path(environment_variable)});
  if (settings || !command.documentation) return settings;
  return resolve_settings(command.settings, {invocation.common->flags, {}, "", ""});
}

ExitCode run(const Invocation& invocation, SignalGuard& signals) {
  const CommonValues& common = *invocation.common;
  const auto settings = settings_of(invocation);
  if (!settings) {
    Terminal terminal(detect_traits("auto", false, 0, environment_variable));
    return report(terminal, common.json, settings.error());
  }
  Terminal terminal(detect_traits(settings->text("color"), common.quiet, common.verbose ? 1 : 0, environment_variable));
  const Context context{*settings, terminal, signals, common.json, common.edits};
  if (common.show_origin) return print_text(context, show_origin(invocation.command->settings, *settings));
  try {
    return invocation.run(context);
  } catch (const std::exception& bug) {
    return report(terminal, common.json,
                  {problem(ErrorKind::kInternal, "bug", std::string("internal error: ") + bug.what(),
                           "this is a bug of tangram; please report it with the command and its input files")});
  }
}

ExitCode run_command_line(int argc, const char* const* argv, SignalGuard& signals) {
  Terminal terminal(detect_traits("auto", false, 0, environment_variable));
  const auto parsed = parse_command_line(argc, argv);
  if (!parsed) return report(terminal, asks_for_json(argc, argv), parsed.error());
  if (const auto* help = std::get_if<HelpText>(&*parsed)) {
    return print(terminal, help->text);
  }
  return run(std::get<Invocation>(*parsed), signals);
}

}  // namespace

}  // namespace tangram::app

int main(int argc, char** argv) {
  tangram::app::SignalGuard signals;
  return static_cast<int>(tangram::app::run_command_line(argc, argv, signals));
}
