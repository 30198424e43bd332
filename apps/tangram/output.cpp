#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::app {

namespace {

nlohmann::ordered_json json_of(const Diagnostic& diagnostic) {
  nlohmann::ordered_json error;
  error["kind"] = to_string(diagnostic.kind);
  error["code"] = diagnostic.code;
  error["message"] = diagnostic.message;
  if (!diagnostic.hint.empty()) error["hint"] = diagnostic.hint;
  if (!diagnostic.where.file.empty()) error["file"] = diagnostic.where.file;
  if (diagnostic.where.line > 0) error["line"] = diagnostic.where.line;
  if (diagnostic.where.column > 0) error["column"] = diagnostic.where.column;
  if (!diagnostic.pointer.empty()) error["pointer"] = diagnostic.pointer;
  return error;
}

}  // namespace

ExitCode print_text(const Context& context, const std::string& text, ExitCode code) {
  if (context.terminal.result(text)) return code;
  context.terminal.error({problem(ErrorKind::kInput, "write-failed", "standard output could not be written")});
  return ExitCode::kInternal;
}

ExitCode print_result(const Context& context, const std::string& text, const nlohmann::ordered_json& document,
                      ExitCode code) {
  return print_text(context, context.json ? io::write_canonical(document) : text, code);
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
  if (auto written = output->commit(text); !written) return written;
  context.signals.release();
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
    if (!terminal.result(io::write_canonical(document))) return ExitCode::kInternal;
  }
  return code;
}

Diagnostics usage_mistake(std::string code, std::string message, std::string hint) {
  return {problem(ErrorKind::kUsage, std::move(code), std::move(message), std::move(hint))};
}

}  // namespace tangram::app
