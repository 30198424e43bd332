// What every accepted document and every rejection must satisfy, whatever the bytes.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "tangram/io/document.hpp"

namespace tangram::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// The line exists, and the underlined bytes are on it.
inline void require_place(std::string_view text, int line, int column, int length) {
  require(line >= 1 && column >= 1 && length >= 1);
  std::size_t start = 0;
  for (int i = 1; i < line; ++i) {
    start = text.find('\n', start);
    require(start != std::string_view::npos);
    ++start;
  }
  const std::size_t end = text.find('\n', start);
  const std::size_t size = (end == std::string_view::npos ? text.size() : end) - start;
  require(static_cast<std::size_t>(column) <= size + 1);
}

inline void require_places(const io::Node& node, std::string_view text, int depth = 0) {
  require(depth <= 64);
  require_place(text, node.line, node.column, node.length);
  for (const io::Node& item : node.items) require_places(item, text, depth + 1);
  for (const io::Member& member : node.members) {
    require_place(text, member.line, member.column, member.length);
    require(node.find(member.key) == &member.value);  // no duplicates
    require_places(member.value, text, depth + 1);
  }
}

/// Every error has a place, one line of message, and can be shown.
inline void require_errors(const Diagnostics& errors) {
  require(!errors.empty());
  for (const Diagnostic& error : errors) {
    require(!error.code.empty() && !error.message.empty());
    require(error.where.line >= 1 && error.where.column >= 1 && error.length >= 1);
  }
  require(!render(errors).empty());
}

}  // namespace tangram::fuzz
