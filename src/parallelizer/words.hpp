// Lists in one text, as the cache keeps them and as planner and agents exchange them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace tangram::parallelizer {

/// The parts between separators: two in a row have an empty one between them, the last may end with one.
[[nodiscard]] inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

[[nodiscard]] inline std::vector<std::string_view> words_of(std::string_view line) { return parts_of(line, ' '); }

}  // namespace tangram::parallelizer
