// What is wrong with an input, where, and what to do about it. Goes in: findings of the readers and planners.
// Comes out: values that travel in Expected<T>, and the text a person reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tangram {

/// What went wrong, in the terms of the exit codes of the program.
enum class ErrorKind : std::uint8_t { kInput, kInfeasible, kIncomplete, kPlugin, kUsage, kInternal };

/// A place in an input file. Lines and columns start at 1; 0 means unknown. Columns count bytes.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;

  bool operator==(const SourceLocation&) const = default;
};

struct Diagnostic {
  ErrorKind kind = ErrorKind::kInput;
  std::string code;         ///< stable, for machines: "unknown-key", "wrong-type", ...
  SourceLocation where;     ///< empty file: not tied to a place
  std::string pointer;      ///< JSON pointer of the offending value ("/nodes/0/count"), may be empty
  std::string message;      ///< one line, no trailing period
  std::string hint;         ///< what to do; may be empty
  std::string source_line;  ///< text of the line at `where`, for the caret; may be empty
  int length = 1;           ///< how many bytes the underline covers

  bool operator==(const Diagnostic&) const = default;
};

using Diagnostics = std::vector<Diagnostic>;

/// At most this many are shown at once; the rest are counted.
inline constexpr std::size_t kMaxDiagnostics = 20;

/// `file:line:col: error: message`, then the source line, a caret under the column, and `hint: ...`. Ends in '\n'.
[[nodiscard]] std::string render(const Diagnostic& diagnostic);

/// All of them (up to kMaxDiagnostics, then "... and N more errors"), in order.
[[nodiscard]] std::string render(const Diagnostics& diagnostics);

[[nodiscard]] std::string_view to_string(ErrorKind kind);

}  // namespace tangram
