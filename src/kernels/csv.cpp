#include "csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "place.hpp"

namespace tangram::kernels {
namespace {

/// One record from the front of `text`, which it is taken off; quotes may hold commas and line ends.
CsvRow take_row(std::string_view& text, int& line) {
  CsvRow row;
  row.line = line;
  std::string field;
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',') {
      row.fields.push_back(std::move(field));
      field.clear();
    } else if (c == '\n') {
      break;
    } else if (c != '\r') {
      field += c;
    }
  }
  row.fields.push_back(std::move(field));
  text.remove_prefix(std::min(text.size(), i + 1));
  return row;
}

bool is_empty(const CsvRow& row) { return row.fields.size() == 1 && row.fields.front().empty(); }

}  // namespace

Expected<CsvTable> CsvTable::read(std::string_view text, const std::string& file, std::string_view column) {
  CsvTable table;
  table.file_ = file;
  int line = 1;
  bool found = false;
  while (!text.empty()) {
    CsvRow row = take_row(text, line);
    if (is_empty(row)) continue;
    if (!found) {
      found = std::ranges::find(row.fields, column) != row.fields.end();
      if (found) table.header_ = std::move(row);
      continue;
    }
    if (row.fields.size() != table.header_.fields.size()) {
      return fail(mistake_at(
          file, row.line, 1, "malformed-row",
          fmt::format("a row of {} fields under a header of {}", row.fields.size(), table.header_.fields.size()),
          "write the table again, or take the line out"));
    }
    table.rows_.push_back(std::move(row));
  }
  if (found) return table;
  return fail(mistake_at(file, 1, 1, "missing-header", fmt::format("no line is a header with \"{}\"", column)));
}

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto place = std::ranges::find(header_.fields, name);
  if (place == header_.fields.end()) return std::nullopt;
  return static_cast<std::size_t>(place - header_.fields.begin());
}

std::optional<std::size_t> CsvTable::column_beginning(std::string_view name) const {
  const auto place =
      std::ranges::find_if(header_.fields, [&](const std::string& field) { return field.starts_with(name); });
  if (place == header_.fields.end()) return std::nullopt;
  return static_cast<std::size_t>(place - header_.fields.begin());
}

std::optional<double> csv_number(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ',' && c != ' ') digits += c;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> microseconds_in(std::string_view unit) {
  if (unit == "ns" || unit == "nsecond") return 1e-3;
  if (unit == "us" || unit == "usecond") return 1.0;
  if (unit == "ms" || unit == "msecond") return 1e3;
  if (unit == "s" || unit == "second") return 1e6;
  return std::nullopt;
}

}  // namespace tangram::kernels
