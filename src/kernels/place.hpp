// Mistakes at a place of a recording.
#pragma once

#include <string>

#include "tangram/base/diagnostic.hpp"
#include "tangram/io/document.hpp"

namespace tangram::kernels {

[[nodiscard]] inline Diagnostic mistake_at(std::string file, int line, int column, std::string code,
                                           std::string message, std::string hint = {}) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where = {std::move(file), line, column};
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

[[nodiscard]] inline Diagnostic mistake_at(const io::Document& document, const io::Node& node, std::string code,
                                           std::string message, std::string hint = {}) {
  Diagnostic diagnostic =
      mistake_at(document.file, node.line, node.column, std::move(code), std::move(message), std::move(hint));
  diagnostic.source_line = document.line_text(node.line);
  diagnostic.length = node.length;
  // Traces are often one line: nobody wants to see it.
  constexpr std::size_t kMostShown = 200;
  if (diagnostic.source_line.size() > kMostShown) diagnostic.source_line.clear();
  return diagnostic;
}

}  // namespace tangram::kernels
