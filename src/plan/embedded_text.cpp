#include "embedded_text.hpp"

#include <cstddef>

namespace tangram::plan {

namespace {

std::size_t offset_of(const std::string& text, int line, int column) {
  std::size_t at = 0;
  for (int i = 1; i < line; ++i) at = text.find('\n', at) + 1;
  return at + static_cast<std::size_t>(column - 1);
}

std::size_t end_of_string(const std::string& text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

/// `at` stands on a slash that begins a comment; the result on the comment's last character.
std::size_t end_of_comment(const std::string& text, std::size_t at) {
  if (text[at + 1] == '/') return text.find('\n', at);
  return text.find("*/", at + 2) + 1;
}

std::size_t end_of_value(const std::string& text, std::size_t begin) {
  int depth = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    switch (text[at]) {
      case '"': at = end_of_string(text, at); break;
      case '/': at = end_of_comment(text, at); break;
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (--depth == 0) return at + 1;
        break;
      default: break;
    }
  }
  return text.size();
}

}  // namespace

std::string embedded_text(const io::Document& document, const io::Node& node) {
  const std::size_t begin = offset_of(document.text, node.line, node.column);
  std::string text = document.text.substr(0, end_of_value(document.text, begin));
  for (std::size_t i = 0; i < begin; ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
  return text;
}

}  // namespace tangram::plan
