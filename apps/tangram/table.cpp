#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "tangram/base/assert.hpp"

namespace tangram::app {

namespace {

constexpr std::size_t kGap = 2;

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// A name's last number: "gpu007.local" is "gpu", 7 (three digits), ".local".
struct NumberedName {
  std::string before;
  std::string after;
  std::size_t digits = 0;
  long number = 0;
};

std::optional<NumberedName> split_number(const std::string& name) {
  const std::size_t last = name.find_last_of("0123456789");
  if (last == std::string::npos) return std::nullopt;
  std::size_t first = last;
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  NumberedName result{name.substr(0, first), name.substr(last + 1), last + 1 - first, 0};
  const auto parsed = std::from_chars(name.data() + first, name.data() + last + 1, result.number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return result;
}

bool follows(const NumberedName& a, const NumberedName& b) {
  const bool padded = a.digits != b.digits && b.digits != std::to_string(b.number).size();
  return a.before == b.before && a.after == b.after && b.number == a.number + 1 && !padded;
}

}  // namespace

void Table::add(std::vector<Cell> row) {
  TANGRAM_ASSERT(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths(std::size_t most) const {
  std::vector<std::size_t> natural;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = display_width(columns_[c].header);
    for (const auto& row : rows_) width = std::max(width, display_width(row[c].text));
    natural.push_back(width);
  }
  std::size_t total = kGap * (columns_.size() - 1);
  for (const std::size_t width : natural) total += width;
  // The widest of those that may shrink gives way first.
  for (; total > most; --total) {
    std::size_t widest = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const bool shrinks = columns_[c].least > 0 && natural[c] > columns_[c].least;
      if (shrinks && (widest == columns_.size() || natural[c] > natural[widest])) widest = c;
    }
    if (widest == columns_.size()) break;
    --natural[widest];
  }
  return natural;
}

std::string Table::render(const Terminal& terminal) const {
  const std::vector<std::size_t> width = widths(terminal.page_width());
  const auto line_of = [&](const std::vector<Cell>& cells) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::size_t used = display_width(cells[c].text);
      const std::string padding(width[c] > used ? width[c] - used : 0, ' ');
      const std::string text = terminal.styled(cells[c].text, cells[c].style);
      const bool last = c + 1 == cells.size();
      line += columns_[c].right ? padding + text : text + (last ? "" : padding);
      if (!last) line += std::string(kGap, ' ');
    }
    return without_trailing_spaces(std::move(line)) + "\n";
  };

  std::vector<Cell> header;
  header.reserve(columns_.size());
  for (const Column& column : columns_) header.push_back({column.header, Style::kDim});
  std::string out = line_of(header);
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> lines;
    lines.reserve(row.size());
    std::size_t height = 1;
    for (std::size_t c = 0; c < row.size(); ++c) {
      lines.push_back(wrapped(row[c].text, columns_[c].least > 0 ? width[c] : 0));
      height = std::max(height, lines.back().size());
    }
    for (std::size_t h = 0; h < height; ++h) {
      std::vector<Cell> cells;
      cells.reserve(row.size());
      for (std::size_t c = 0; c < row.size(); ++c) {
        cells.push_back({h < lines[c].size() ? lines[c][h] : "", row[c].style});
      }
      out += line_of(cells);
    }
  }
  return out;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  if (width == 0 || display_width(text) <= width) return {text};
  std::vector<std::string> lines(1);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (display_width(line) + 1 + display_width(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
    begin = end + 1;
  }
  return lines;
}

std::string labelled(const Terminal& terminal, std::string_view label, const std::string& text) {
  constexpr std::size_t kLabelWidth = 10;
  std::string out;
  for (const std::string& line : wrapped(text, terminal.text_width() - kLabelWidth)) {
    const std::string margin(kLabelWidth - (out.empty() ? label.size() : 0), ' ');
    out += fmt::format("{}{}{}\n", out.empty() ? terminal.styled(label, Style::kDim) : "", margin, line);
  }
  return out;
}

std::string counted(std::int64_t count, std::string_view noun) {
  const char* plural = noun.ends_with("ch") || noun.ends_with("s") ? "es" : "s";
  return fmt::format("{} {}{}", thousands(count), noun, count == 1 ? "" : plural);
}

std::size_t display_width(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::count_if(utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string bar(double share, int width) {
  const int full = static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * width));
  return std::string(static_cast<std::size_t>(full), '#') + std::string(static_cast<std::size_t>(width - full), '.');
}

std::string people_time(double seconds) {
  double value = seconds;
  const char* unit = "s";
  if (seconds < 1e-6) {
    value = seconds * 1e9, unit = "ns";
  } else if (seconds < 1e-3) {
    value = seconds * 1e6, unit = "us";
  } else if (seconds < 1) {
    value = seconds * 1e3, unit = "ms";
  }
  const int decimals = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, unit);
}

std::string people_percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string table_percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string signed_percent(double error) { return fmt::format("{:+.1f}%", 100 * error); }

std::string people_bytes(Bytes bytes) {
  const double gib = bytes.as_double() / (1024.0 * 1024.0 * 1024.0);
  return gib >= 100 ? fmt::format("{:.0f} GiB", gib)
         : gib >= 1 ? fmt::format("{:.1f} GiB", gib)
                    : fmt::format("{:.0f} MiB", gib * 1024);
}

std::string thousands(std::int64_t value) {
  const std::string digits = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string compact_ranges(const std::vector<int>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!out.empty()) out += ",";
    out += last == i ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return out;
}

std::string compact_names(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size();) {
    std::size_t last = i;
    auto current = split_number(names[i]);
    while (current && last + 1 < names.size()) {
      auto next = split_number(names[last + 1]);
      if (!next || !follows(*current, *next)) break;
      current = std::move(next);
      ++last;
    }
    if (!out.empty()) out += ", ";
    out += names[i];
    if (last > i) out.append(last == i + 1 ? ", " : " to ").append(names[last]);
    i = last + 1;
  }
  return out;
}

}  // namespace tangram::app
