#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "output.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/io/file.hpp"
#include "tangram/io/json_writer.hpp"
#include "words.hpp"

namespace tangram::app {

namespace {

/// Bytes of a file or a name that are no UTF-8 have no place in JSON: each is shown as U+FFFD.
nlohmann::ordered_json as_text(const std::string& bytes) {
  using nlohmann::ordered_json;
  return ordered_json::parse(ordered_json(bytes).dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

nlohmann::ordered_json json_of(const Diagnostic& diagnostic) {
  nlohmann::ordered_json error;
  error["kind"] = to_string(diagnostic.kind);
  error["code"] = diagnostic.code;
  error["message"] = as_text(diagnostic.message);
  if (!diagnostic.hint.empty()) error["hint"] = as_text(diagnostic.hint);
  if (!diagnostic.where.file.empty()) error["file"] = as_text(diagnostic.where.file);
  if (diagnostic.where.line > 0) error["line"] = diagnostic.where.line;
  if (diagnostic.where.column > 0) error["column"] = diagnostic.where.column;
  if (!diagnostic.pointer.empty()) error["pointer"] = as_text(diagnostic.pointer);
  return error;
}

Diagnostic cannot_print(int failure) {
  Diagnostic diagnostic;
  diagnostic.code = "cannot-write";
  diagnostic.where.file = "<stdout>";
  diagnostic.message =
      failure == EBADF ? "cannot write to standard output: it is closed"
                       : fmt::format("cannot write to standard output: {}", std::generic_category().message(failure));
  return diagnostic;
}

}  // namespace

ExitCode print(Terminal& terminal, std::string_view text, ExitCode code) {
  const int failure = terminal.result(text);
  if (failure == 0) return code;
  if (failure == EPIPE) return ExitCode::kPipe;
  terminal.error({cannot_print(failure)});
  return exit_code_of(ErrorKind::kInput);
}

ExitCode print_text(const Context& context, const std::string& text, ExitCode code) {
  return print(context.terminal, text, code);
}

ExitCode print_result(const Context& context, const std::string& text, const nlohmann::ordered_json& document,
                      ExitCode code) {
  return print_text(context, context.json ? io::write_canonical(document) : text, code);
}

void report_assumptions(const Context& context, const cluster::Fleet& fleet, const model::Model* model) {
  for (const std::string& assumed : fleet.assumed) context.terminal.note(assumed);
  if (model != nullptr && !model->assumed.empty()) context.terminal.note(model->assumed);
}

Expected<std::optional<io::OutputFile>> open_output(const Context& context, const std::string& path) {
  if (path.empty() || path == "-") return std::nullopt;
  auto opened = context.signals.open(path);
  if (!opened) return fail(std::move(opened.error()));
  return std::move(*opened);
}

Expected<void> write_output(const Context& context, std::optional<io::OutputFile>& output, std::string_view text,
                            std::string_view advice) {
  if (!output) return {};
  const std::string temporary = output->temporary();
  if (auto written = output->commit(text); !written) return written;
  context.signals.release(temporary);
  context.terminal.note(fmt::format("wrote {}{}", output->path(), advice));
  return {};
}

ExitCode report(Terminal& terminal, bool json, const Diagnostics& diagnostics) {
  const ExitCode code = diagnostics.empty() ? ExitCode::kInternal : exit_code_of(diagnostics.front().kind);
  terminal.error(diagnostics);
  if (json) {
    nlohmann::ordered_json document;
    document["schema"] = "tangram.error/1";
    document["status"] = status_of(code);
    document["exit"] = static_cast<int>(code);
    document["errors"] = nlohmann::ordered_json::array();
    for (const Diagnostic& diagnostic : diagnostics) document["errors"].push_back(json_of(diagnostic));
    return print(terminal, io::write_canonical(document), code);
  }
  return code;
}

Diagnostics usage_mistake(std::string code, std::string message, std::string hint) {
  return {problem(ErrorKind::kUsage, std::move(code), std::move(message), std::move(hint))};
}

Diagnostics unknown_action(std::string_view command, const std::string& action, const std::vector<std::string>& known) {
  return usage_mistake("unknown-action", fmt::format("{} has no action \"{}\"", command, action),
                       suggestion(action, known, listing("actions", known)));
}

std::optional<Diagnostics> wrong_file_count(const std::string& command, std::size_t count, std::size_t least,
                                            std::size_t most, std::string_view takes) {
  if (count >= least && count <= most) return std::nullopt;
  return usage_mistake(count < least ? "missing-argument" : "extra-argument",
                       fmt::format("{} takes {}", command, takes));
}

std::optional<Diagnostics> overwritten_input(const std::string& output, const std::vector<std::string>& inputs,
                                             std::string hint) {
  const auto is_output = [&](const std::string& input) { return io::same_file(output, input); };
  if (output.empty() || std::ranges::none_of(inputs, is_output)) return std::nullopt;
  return usage_mistake("overwrites-input", fmt::format("--output {} would overwrite an input", output),
                       std::move(hint));
}

}  // namespace tangram::app
