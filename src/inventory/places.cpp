#include "places.hpp"

#include <algorithm>
#include <charconv>

namespace tangram::inventory {
namespace {

constexpr int kLargestNumber = 1'000'000;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

Diagnostic error_of(const io::Document& document, int line, int column, int length, std::string code,
                    std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.where = {document.file, line, column};
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  diagnostic.source_line = line > 0 ? document.line_text(line) : std::string();
  diagnostic.length = std::max(1, length);
  return diagnostic;
}

}  // namespace

Text text_of(const io::Node& node) { return {node.text, node.line, node.column + 1}; }

Diagnostic error_at(const io::Document& document, const Text& at, std::string code, std::string message,
                    std::string hint) {
  return error_of(document, at.line, at.column, static_cast<int>(at.value.size()), std::move(code), std::move(message),
                  std::move(hint));
}

Diagnostic error_at(const io::Document& document, const io::Node& at, std::string code, std::string message,
                    std::string hint) {
  return error_of(document, at.line, at.column, at.length, std::move(code), std::move(message), std::move(hint));
}

std::string printable(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(result, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_host_name(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_name_character); }

int small_number(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && value >= 0 && value <= kLargestNumber ? value : -1;
}

}  // namespace tangram::inventory
