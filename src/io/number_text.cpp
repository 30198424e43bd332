#include "number_text.hpp"

#include <charconv>
#include <system_error>

namespace tangram::io {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view text, std::size_t i) {
  while (i < text.size() && is_digit(text[i])) ++i;
  return i;
}

// Position behind an exponent at i, or i when there is none.
std::size_t skip_exponent(std::string_view text, std::size_t i) {
  if (i >= text.size() || (text[i] != 'e' && text[i] != 'E')) return i;
  std::size_t digits = i + 1;
  if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
  const std::size_t end = skip_digits(text, digits);
  return end > digits ? end : i;
}

}  // namespace

std::size_t json_number_length(std::string_view text) {
  std::size_t i = text.starts_with('-') ? 1 : 0;
  if (i >= text.size() || !is_digit(text[i])) return 0;
  i = text[i] == '0' ? i + 1 : skip_digits(text, i);
  if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1])) i = skip_digits(text, i + 1);
  return skip_exponent(text, i);
}

bool is_yaml_number(std::string_view text) {
  std::size_t i = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  const std::size_t whole = skip_digits(text, i);
  if (whole - i > 1 && text[i] == '0') return false;
  bool digits = whole > i;
  i = whole;
  if (i < text.size() && text[i] == '.') {
    const std::size_t fraction = skip_digits(text, i + 1);
    digits = digits || fraction > i + 1;
    i = fraction;
  }
  return digits && skip_exponent(text, i) == text.size();
}

std::optional<Node> number_node(std::string_view text) {
  Node node;
  node.text = text;
  if (text.starts_with('+')) text.remove_prefix(1);  // std::from_chars knows no plus sign
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data(), end, node.number).ec != std::errc()) return std::nullopt;
  const auto integer = std::from_chars(text.data(), end, node.integer);
  const bool whole = integer.ec == std::errc() && integer.ptr == end;
  node.kind = whole ? NodeKind::kInteger : NodeKind::kNumber;
  if (!whole) node.integer = 0;
  return node;
}

}  // namespace tangram::io
