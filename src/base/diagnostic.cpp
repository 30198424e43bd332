#include "tangram/base/diagnostic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tangram {

namespace {

// Source lines may be arbitrarily long (minified JSON): show a window around the column.
constexpr int kContextWidth = 100;

void append_source(std::string& out, const Diagnostic& d) {
  if (d.source_line.empty() || d.where.column < 1) return;
  const int size = static_cast<int>(d.source_line.size());
  const int column = std::min(d.where.column - 1, size);
  const int first = column > kContextWidth ? column - kContextWidth / 2 : 0;
  const int last = std::min(size, first + kContextWidth + 20);
  std::string text = d.source_line.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
  std::replace_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 32; }, ' ');
  const int underline = std::clamp(d.length, 1, std::max(1, last - column));
  fmt::format_to(std::back_inserter(out), "  {}\n  {:>{}}", text, '^', column - first + 1);
  if (underline > 1) out.append(static_cast<std::size_t>(underline - 1), '~');
  out += '\n';
}

}  // namespace

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput: return "input";
    case ErrorKind::kInfeasible: return "infeasible";
    case ErrorKind::kIncomplete: return "incomplete";
    case ErrorKind::kPlugin: return "plugin";
    case ErrorKind::kUsage: return "usage";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

std::string render(const Diagnostic& d) {
  std::string out;
  if (!d.where.file.empty()) {
    out += d.where.file;
    if (d.where.line > 0) fmt::format_to(std::back_inserter(out), ":{}:{}", d.where.line, std::max(1, d.where.column));
    out += ": ";
  }
  fmt::format_to(std::back_inserter(out), "error: {}\n", d.message);
  append_source(out, d);
  if (!d.hint.empty()) fmt::format_to(std::back_inserter(out), "  hint: {}\n", d.hint);
  return out;
}

std::string render(const Diagnostics& diagnostics) {
  std::string out;
  const std::size_t shown = std::min(diagnostics.size(), kMaxDiagnostics);
  for (std::size_t i = 0; i < shown; ++i) out += render(diagnostics[i]);
  if (shown < diagnostics.size()) {
    fmt::format_to(std::back_inserter(out), "... and {} more errors\n", diagnostics.size() - shown);
  }
  return out;
}

}  // namespace tangram
