#include <exception>

#include "cli.hpp"
#include "commands.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::app {

namespace {

ExitCode dispatch(const Invocation& invocation, const Context& context) {
  struct Run {
    const Context& context;
    ExitCode operator()(const InitArguments& a) const { return run_init(a, context); }
    ExitCode operator()(const PlanArguments& a) const { return run_plan(a, context); }
    ExitCode operator()(const IslandsArguments& a) const { return run_islands(a, context); }
    ExitCode operator()(const ClusterArguments& a) const { return run_cluster(a, context); }
    ExitCode operator()(const GpusArguments& a) const { return run_gpus(a, context); }
    ExitCode operator()(const CheckArguments& a) const { return run_check(a, context); }
    ExitCode operator()(const SimulateArguments& a) const { return run_simulate(a, context); }
    ExitCode operator()(const CompareArguments& a) const { return run_compare(a, context); }
    ExitCode operator()(const ExplainArguments& a) const { return run_explain(a, context); }
    ExitCode operator()(const DiffArguments& a) const { return run_diff(a, context); }
    ExitCode operator()(const VerifyArguments& a) const { return run_verify(a, context); }
    ExitCode operator()(const ExportArguments& a) const { return run_export(a, context); }
    ExitCode operator()(const ImportArguments& a) const { return run_import(a, context); }
    ExitCode operator()(const ProfileArguments& a) const { return run_profile(a, context); }
    ExitCode operator()(const AccuracyArguments& a) const { return run_accuracy(a, context); }
    ExitCode operator()(const ParallelizersArguments& a) const { return run_parallelizers(a, context); }
    ExitCode operator()(const CacheArguments& a) const { return run_cache(a, context); }
    ExitCode operator()(const WorkerArguments& a) const { return run_worker(a, context); }
    ExitCode operator()(const SchemaArguments& a) const { return run_schema(a, context); }
    ExitCode operator()(const HelpArguments& a) const { return run_help(a, context); }
    ExitCode operator()(const VersionArguments& a) const { return run_version(a, context); }
  };
  return std::visit(Run{context}, invocation.arguments);
}

ExitCode run(const Invocation& invocation, SignalGuard& signals) {
  const SettingSources sources{invocation.flags, environment_variable, ".tangram.yaml",
                               user_config_path(environment_variable)};
  const auto settings = resolve_settings(invocation.command, sources);
  if (!settings) {
    Terminal terminal(detect_traits("auto", false, 0, environment_variable));
    return report(terminal, invocation.json, settings.error());
  }
  Terminal terminal(
      detect_traits(settings->text("color"), invocation.quiet, invocation.verbosity, environment_variable));
  const Context context{*settings, terminal, signals, invocation.json, invocation.edits};
  if (invocation.show_origin) return print_text(context, show_origin(invocation.command, *settings));
  try {
    return dispatch(invocation, context);
  } catch (const std::exception& bug) {
    return report(terminal, invocation.json,
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
