#include "edit_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "link_values.hpp"
#include "tangram/base/spelling.hpp"

namespace tangram::cluster {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr Unit kRates[] = {{"Tbit", 1e12 / 8}, {"Gbit", 1e9 / 8}, {"Mbit", 1e6 / 8},
                           {"TB", 1e12},       {"GB", 1e9},       {"MB", 1e6}};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

/// A positive number of just this text.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value <= 0) return std::nullopt;
  return value;
}

std::optional<double> with_unit(std::string_view text, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    const auto value = number(text.substr(0, text.size() - unit.name.size()));
    if (value) return *value * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

Expected<std::vector<Word>> EditText::split(const Word& word, char separator) const {
  std::vector<Word> words;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= word.text.size(); ++i) {
    if (i < word.text.size()) {
      if (word.text[i] == '[' || word.text[i] == '(') ++depth;
      if (word.text[i] == ']' || word.text[i] == ')') --depth;
      if (word.text[i] != separator || depth > 0) continue;
    }
    if (i == begin) {
      return error({word.text.substr(i, i < word.text.size() ? 1 : 0), word.at + i}, "something is missing here");
    }
    words.push_back({word.text.substr(begin, i - begin), word.at + begin});
    begin = i + 1;
  }
  return words;
}

Expected<Assignment> EditText::assignment(const Word& word) const {
  const std::size_t equals = word.text.rfind('=');
  if (equals == std::string_view::npos) return error(word, "no \"=\" in it", "NAME=VALUE");
  const Assignment assignment{{word.text.substr(0, equals), word.at},
                              {word.text.substr(equals + 1), word.at + equals + 1}};
  if (assignment.key.text.empty()) return error(assignment.key, "a name is missing before \"=\"");
  if (assignment.value.text.empty()) return error(assignment.value, "a value is missing behind \"=\"");
  return assignment;
}

Expected<std::int64_t> EditText::count(const Word& word, std::int64_t most) const {
  std::int64_t value = 0;
  const char* const last = word.text.data() + word.text.size();
  const auto [end, failed] = std::from_chars(word.text.data(), last, value);
  if (failed == std::errc() && end == last && value >= 1 && value <= most) return value;
  return error(word, fmt::format("a whole number from 1 to {} was expected", most));
}

Expected<BytesPerSecond> EditText::rate(const Word& word) const {
  std::string_view text = word.text;
  if (text.ends_with("/s")) text.remove_suffix(2);
  const auto value = with_unit(text, kRates);
  if (!value) return error(word, "a rate was expected", "as in 10Gbit or 1.25GB (a second)");
  const double gigabits = *value / kGigabit;
  if (gigabits < kBandwidthGbit.min || gigabits > kBandwidthGbit.max) {
    return error(
        word, fmt::format("{:g} Gbit/s is not between {:g} and {:g}", gigabits, kBandwidthGbit.min, kBandwidthGbit.max),
        std::string(kBandwidthGbit.why));
  }
  return BytesPerSecond(*value);
}

Expected<Nanoseconds> EditText::time(const Word& word) const {
  const auto value = with_unit(word.text, kTimes);
  if (!value || *value > 60e9) return error(word, "a time of at most a minute was expected", "as in 5us or 17ms");
  return Nanoseconds(std::llround(*value));
}

Expected<double> EditText::share(const Word& word) const {
  constexpr double kMost = 10;
  constexpr double kLeast = 1e-3;
  const bool percent = word.text.ends_with('%');
  const auto value = percent ? number(word.text.substr(0, word.text.size() - 1)) : std::nullopt;
  if (!value) return error(word, "a share of what is there was expected", "as in 70%");
  if (*value > 100 * kMost || *value < 100 * kLeast) {
    return error(word, fmt::format("a share from {:g}% to {:g}% was expected", 100 * kLeast, 100 * kMost), "as in 70%");
  }
  return *value / 100;
}

Expected<Dollars> EditText::dollars(const Word& word) const {
  const auto value = number(word.text);
  if (!value) return error(word, "dollars an hour were expected", "as in 2.50");
  if (*value < kPrice.min || *value > kPrice.max) {
    return error(word, fmt::format("{:g} dollars are not between {:g} and {:g}", *value, kPrice.min, kPrice.max),
                 std::string(kPrice.why));
  }
  return Dollars(*value);
}

tl::unexpected<Diagnostics> EditText::error(const Word& word, std::string message, std::string hint) const {
  Diagnostic d;
  d.kind = ErrorKind::kUsage;
  d.code = "bad-edit";
  d.where = {option_, 1, static_cast<int>(word.at) + 1};
  d.message = std::move(message);
  d.hint = std::move(hint);
  d.source_line = std::string(argument_);
  d.length = std::max(1, static_cast<int>(word.text.size()));
  return fail(std::move(d));
}

tl::unexpected<Diagnostics> EditText::unknown(const Word& word, std::string_view what,
                                              std::span<const std::string> known) const {
  if (known.empty()) return error(word, fmt::format("there is no {} \"{}\"", what, word.text), "the fleet has none");
  const auto near = closest(word.text, known);
  constexpr std::size_t kShown = 12;
  const auto shown = known.first(std::min(known.size(), kShown));
  return error(word, fmt::format("there is no {} \"{}\"", what, word.text),
               near ? fmt::format("did you mean \"{}\"?", *near)
                    : fmt::format("known: {}{}", fmt::join(shown, ", "), known.size() > kShown ? ", ..." : ""));
}

}  // namespace tangram::cluster
