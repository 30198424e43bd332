#include "number_scanner.hpp"

#include <algorithm>
#include <charconv>

namespace tangram::accuracy {
namespace {

constexpr std::size_t kMostDigits = 12;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_at(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

/// Characters of the number that `text` begins with: digits, and decimals where a digit follows the point.
std::size_t length_of(std::string_view text, bool& whole) {
  const std::size_t integer = digits_at(text);
  whole = true;
  if (integer == text.size() || text[integer] != '.') return integer;
  const std::size_t decimals = digits_at(text.substr(integer + 1));
  if (decimals == 0) return integer;
  whole = false;
  return integer + 1 + decimals;
}

}  // namespace

bool TextNumber::in(std::string_view unit) const {
  return after.starts_with(unit) || (after.starts_with(' ') && after.substr(1).starts_with(unit));
}

std::vector<TextNumber> numbers_in(std::string_view text) {
  std::vector<TextNumber> numbers;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    TextNumber number;
    const std::size_t length = length_of(text.substr(at), number.whole);
    number.before = text.substr(0, at);
    number.after = text.substr(at + length);
    if (digits_at(text.substr(at)) <= kMostDigits) {
      std::from_chars(text.data() + at, text.data() + at + length, number.value, std::chars_format::fixed);
      numbers.push_back(number);
    }
    at += length;
  }
  return numbers;
}

}  // namespace tangram::accuracy
