// Words in what people write, whatever their case.
#pragma once

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tangram::accuracy {

[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// Whether a text has one of these in it. `names`: in small letters.
[[nodiscard]] inline bool names_any(std::string_view text, std::initializer_list<std::string_view> names) {
  const std::string small = lower(text);
  return std::ranges::any_of(names, [&](std::string_view name) { return small.find(name) != std::string::npos; });
}

}  // namespace tangram::accuracy
