#include "name_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace tangram::inventory {
namespace {

constexpr std::size_t kMostDigits = 6;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The digits that tell names apart: the last of the host's own label, before any domain.
std::pair<std::size_t, std::size_t> counter_of(std::string_view name) {
  std::size_t end = std::min(name.find('.'), name.size());
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t first = end;
  while (first > 0 && is_digit(name[first - 1]) && end - first < kMostDigits) --first;
  return {first, end};
}

struct Number {
  int value = 0;
  std::string digits;
  auto operator<=>(const Number&) const = default;
};

/// Whether a range that begins with `first` writes this number so.
bool follows(const Number& first, const Number& before, const Number& number) {
  return number.value == before.value + 1 && number.digits == fmt::format("{:0{}}", number.value, first.digits.size());
}

std::string ranges(std::vector<Number> numbers) {
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && follows(numbers[i], numbers[last], numbers[last + 1])) ++last;
    parts.push_back(last > i ? fmt::format("{}-{}", numbers[i].digits, numbers[last].digits) : numbers[i].digits);
    i = last + 1;
  }
  return fmt::format("[{}]", fmt::join(parts, ","));
}

}  // namespace

std::vector<std::string> name_ranges(const std::vector<std::string>& names) {
  std::vector<std::string> patterns;
  std::map<std::pair<std::string, std::string>, std::vector<Number>> families;
  for (const std::string& name : names) {
    const auto [first, end] = counter_of(name);
    if (first == end) {
      patterns.push_back(name);
    } else {
      std::string digits = name.substr(first, end - first);
      const int value = std::stoi(digits);
      families[{name.substr(0, first), name.substr(end)}].push_back({value, std::move(digits)});
    }
  }
  for (auto& [around, numbers] : families) {
    const std::string middle = numbers.size() > 1 ? ranges(std::move(numbers)) : numbers.front().digits;
    patterns.push_back(around.first + middle + around.second);
  }
  std::sort(patterns.begin(), patterns.end());
  return patterns;
}

}  // namespace tangram::inventory
