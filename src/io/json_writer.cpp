#include "tangram/io/json_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tangram/base/assert.hpp"

namespace tangram::io {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kWidth = 110;
constexpr std::size_t kIndent = 2;

void append_double(std::string& out, double value) {
  TANGRAM_ASSERT(std::isfinite(value));
  std::array<char, 32> buffer{};  // the shortest form of a double has at most 24 characters
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), result.ptr);
}

void append_scalar(std::string& out, const ordered_json& value) {
  if (value.is_number_float()) {
    append_double(out, value.get<double>());
  } else {
    out += value.dump();
  }
}

void append_key(std::string& out, const std::string& key, std::string_view colon) {
  out += ordered_json(key).dump();
  out += colon;
}

struct Separators {
  std::string_view comma;
  std::string_view colon;
};

void append_line(std::string& out, const ordered_json& value, const Separators& separators) {
  if (!value.is_structured()) return append_scalar(out, value);
  out += value.is_array() ? '[' : '{';
  bool first = true;
  for (const auto& [key, child] : value.items()) {
    if (!first) out += separators.comma;
    first = false;
    if (value.is_object()) append_key(out, key, separators.colon);
    append_line(out, child, separators);
  }
  out += value.is_array() ? ']' : '}';
}

bool holds_scalars(const ordered_json& value) {
  return std::none_of(value.begin(), value.end(), [](const ordered_json& child) { return child.is_structured(); });
}

// `used`: columns taken on this line before the value; one more is kept for the comma behind it.
void append_pretty(std::string& out, const ordered_json& value, std::size_t depth, std::size_t used) {
  if (!value.is_structured() || value.empty()) return append_line(out, value, {", ", ": "});
  if (holds_scalars(value)) {
    std::string line;
    append_line(line, value, {", ", ": "});
    if (used + line.size() + 1 <= kWidth) {
      out += line;
      return;
    }
  }
  const std::string indent((depth + 1) * kIndent, ' ');
  out += value.is_array() ? "[\n" : "{\n";
  bool first = true;
  for (const auto& [key, child] : value.items()) {
    if (!first) out += ",\n";
    first = false;
    const std::size_t start = out.size();
    out += indent;
    if (value.is_object()) append_key(out, key, ": ");
    append_pretty(out, child, depth + 1, out.size() - start);
  }
  out += '\n';
  out.append(depth * kIndent, ' ');
  out += value.is_array() ? ']' : '}';
}

}  // namespace

std::string write_canonical(const ordered_json& value) {
  std::string out;
  append_pretty(out, value, 0, 0);
  out += '\n';
  return out;
}

std::string write_compact(const ordered_json& value) {
  std::string out;
  append_line(out, value, {",", ":"});
  return out;
}

}  // namespace tangram::io
