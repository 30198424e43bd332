// Lines of words, as the cache keeps them and as planner and agents exchange them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace tangram::parallelizer {

/// The words between single spaces: two spaces in a row have an empty one between them.
[[nodiscard]] inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t space = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, space));
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  return words;
}

}  // namespace tangram::parallelizer
