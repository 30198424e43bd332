// What a command says. Goes in: its context and texts, documents or diagnostics. Comes out: the exit code; the output
// itself goes through the terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exit_codes.hpp"
#include "settings.hpp"
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

/// What edits of the fleet and the model file leave open, and what is taken.
void report_assumptions(const Context& context, const cluster::Fleet& fleet, const model::Model* model = nullptr);

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

/// Of a command whose first argument is an action.
[[nodiscard]] Diagnostics unknown_action(std::string_view command, const std::string& action,
                                         const std::vector<std::string>& known);

/// Nothing, or why a command (or its action) cannot have so many files; `takes` says in words which it takes.
[[nodiscard]] std::optional<Diagnostics> wrong_file_count(const std::string& command, std::size_t count,
                                                          std::size_t least, std::size_t most, std::string_view takes);

/// Whether --output names one of the inputs; `hint` says what else to name.
[[nodiscard]] std::optional<Diagnostics> overwritten_input(const std::string& output,
                                                           const std::vector<std::string>& inputs,
                                                           std::string hint = {});

}  // namespace tangram::app
