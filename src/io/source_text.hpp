// Places in a text: from a byte offset to line and column, and the checks every text passes before it is parsed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/io/document.hpp"

namespace tangram::io {

/// Half-open range of bytes.
struct Span {
  std::size_t first = 0;
  std::size_t length = 1;
};

struct Place {
  int line = 0;
  int column = 0;
  int length = 1;
};

class LineIndex {
 public:
  explicit LineIndex(std::string_view text);
  [[nodiscard]] Place place(Span span) const;  ///< O(log lines)

 private:
  std::vector<std::size_t> starts_;
};

/// The text of a line (from 1) without its line break; O(text).
[[nodiscard]] std::string_view line_of(std::string_view text, int line);

/// A Diagnostic of kind kInput at a span of the document's text, with the source line filled in.
[[nodiscard]] Diagnostic diagnostic_at(const Document& document, Span span, std::string code, std::string message,
                                       std::string hint = {});

/// Drops a byte order mark and names stdin.
[[nodiscard]] Document make_document(std::string text, std::string file);

/// Neither parser may see NUL (both libraries take it for the end of the text) or invalid UTF-8.
[[nodiscard]] std::optional<Diagnostic> check_encoding(const Document& document);

/// Just behind the last character that is not blank: where "something is missing at the end" is best shown.
[[nodiscard]] std::size_t end_of_content(std::string_view text);

}  // namespace tangram::io
