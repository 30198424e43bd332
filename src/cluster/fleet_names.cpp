#include "fleet_names.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <iterator>
#include <optional>

namespace tangram::cluster {

namespace {

using Names = tl::expected<std::vector<std::string>, std::string>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_host_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || !is_digit(text.front()) || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// One "8-10" or "12" of a bracket.
Names expand_range(std::string_view range) {
  const std::size_t dash = range.find('-');
  const std::string_view first_text = range.substr(0, dash);
  const std::string_view last_text = dash == std::string_view::npos ? first_text : range.substr(dash + 1);
  const auto first = parse_number(first_text);
  const auto last = parse_number(last_text);
  if (!first || !last) return tl::unexpected(fmt::format("\"{}\" is not a range of numbers such as 1-16", range));
  if (*last < *first) return tl::unexpected(fmt::format("the range {} runs backwards", range));
  if (*last - *first >= kMaxGpus) return tl::unexpected(fmt::format("the range {} is longer than {}", range, kMaxGpus));
  std::vector<std::string> numbers;
  for (std::int64_t n = *first; n <= *last; ++n) numbers.push_back(fmt::format("{:0{}}", n, first_text.size()));
  return numbers;
}

Names expand_bracket(std::string_view list) {
  std::vector<std::string> result;
  while (true) {
    const std::size_t comma = list.find(',');
    auto range = expand_range(list.substr(0, comma));
    if (!range) return range;
    result.insert(result.end(), range->begin(), range->end());
    if (comma == std::string_view::npos) return result;
    list.remove_prefix(comma + 1);
  }
}

// Each of `names` followed by each of `tails`.
Names multiply(const std::vector<std::string>& names, const std::vector<std::string>& tails) {
  if (std::ssize(names) * std::ssize(tails) > kMaxGpus) {
    return tl::unexpected(fmt::format("the pattern stands for more than {} names", kMaxGpus));
  }
  std::vector<std::string> result;
  for (const std::string& name : names) {
    for (const std::string& tail : tails) result.push_back(name + tail);
  }
  return result;
}

int compare_numbers(std::string_view a, std::string_view b) {
  while (a.size() > 1 && a.front() == '0') a.remove_prefix(1);
  while (b.size() > 1 && b.front() == '0') b.remove_prefix(1);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

std::string_view take_digits(std::string_view text, std::size_t from) {
  std::size_t end = from;
  while (end < text.size() && is_digit(text[end])) ++end;
  return text.substr(from, end - from);
}

}  // namespace

tl::expected<std::vector<std::string>, std::string> expand_names(std::string_view pattern) {
  std::vector<std::string> names{""};
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] == '[') {
      const std::size_t close = pattern.find(']', i);
      if (close == std::string_view::npos) return tl::unexpected(std::string("\"[\" without \"]\""));
      auto tails = expand_bracket(pattern.substr(i + 1, close - i - 1));
      if (!tails) return tails;
      auto product = multiply(names, *tails);
      if (!product) return product;
      names = std::move(*product);
      i = close + 1;
    } else {
      if (!is_host_character(pattern[i])) {
        return tl::unexpected(std::string("a node name has letters, digits, \"-\", \"_\" and \".\" only"));
      }
      for (std::string& name : names) name += pattern[i];
      ++i;
    }
  }
  return names;
}

std::vector<std::string> number_names(std::string_view pattern, int count) {
  const std::size_t place = pattern.find("{}");
  const std::size_t width = fmt::formatted_size("{}", count);
  std::vector<std::string> names;
  for (int n = 1; n <= count; ++n) {
    names.push_back(fmt::format("{}{:0{}}{}", pattern.substr(0, place), n, width, pattern.substr(place + 2)));
  }
  return names;
}

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string_view x = take_digits(a, i);
      const std::string_view y = take_digits(b, j);
      const int order = compare_numbers(x, y);
      if (order != 0) return order < 0;
      i += x.size();
      j += y.size();
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (i < a.size() || j < b.size()) return i == a.size();
  return a < b;  // "a01" and "a1"
}

}  // namespace tangram::cluster
