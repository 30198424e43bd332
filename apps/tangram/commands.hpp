// One function per command. Goes in: its arguments and the context. Comes out: the exit code; output goes through the
// terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "exit_codes.hpp"
#include "options.hpp"
#include "signals.hpp"
#include "tangram/cluster/edits.hpp"
#include "tangram/model/model.hpp"
#include "terminal.hpp"

namespace tangram::app {

struct Context {
  const Settings& settings;
  Terminal& terminal;
  SignalGuard& signals;
  bool json = false;
  cluster::Edits edits = {};  ///< what if the fleet were another
};

[[nodiscard]] ExitCode run_init(const InitArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_plan(const PlanArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_islands(const IslandsArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_cluster(const ClusterArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_gpus(const GpusArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_check(const CheckArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_simulate(const SimulateArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_compare(const CompareArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_explain(const ExplainArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_diff(const DiffArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_verify(const VerifyArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_export(const ExportArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_import(const ImportArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_profile(const ProfileArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_accuracy(const AccuracyArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_parallelizers(const ParallelizersArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_cache(const CacheArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_worker(const WorkerArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_schema(const SchemaArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_help(const HelpArguments& arguments, const Context& context);
[[nodiscard]] ExitCode run_version(const VersionArguments& arguments, const Context& context);

/// What edits of the fleet and the model file leave open, and what is taken.
void tell_assumed(const Context& context, const cluster::Fleet& fleet, const model::Model* model = nullptr);

/// Prints what a command has to say. `code`, unless stdout cannot take it: kInput with the reason on stderr, or kPipe
/// without a word where nobody reads any more.
[[nodiscard]] ExitCode print(Terminal& terminal, std::string_view text, ExitCode code = ExitCode::kOk);
/// What a command prints: the document with --json, the text otherwise.
[[nodiscard]] ExitCode print_result(const Context& context, const std::string& text,
                                    const nlohmann::ordered_json& document, ExitCode code = ExitCode::kOk);
[[nodiscard]] ExitCode print_text(const Context& context, const std::string& text, ExitCode code = ExitCode::kOk);

/// The file that an option names, opened before the work starts so that a bad path is told at once; none for "" and
/// "-", which is standard output.
[[nodiscard]] Expected<std::optional<io::OutputFile>> open_output(const Context& context, const std::string& path);

/// Writes the file, if there is one, and tells people; `advice` follows its name.
[[nodiscard]] Expected<void> write_output(const Context& context, std::optional<io::OutputFile>& output,
                                          std::string_view text, std::string_view advice = {});

/// Errors: text on stderr; with --json a tangram.error/1 document on stdout too. Returns the exit code of their kind.
[[nodiscard]] ExitCode report(Terminal& terminal, bool json, const Diagnostics& diagnostics);

[[nodiscard]] Diagnostics usage_mistake(std::string code, std::string message, std::string hint = {});

}  // namespace tangram::app
