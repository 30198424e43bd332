// Lists of words in help and messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tangram::app {

/// Of a table whose rows have a `name`.
template <class Table>
[[nodiscard]] std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& row : table) names.emplace_back(row.name);
  return names;
}

/// "a, b or c"
[[nodiscard]] std::string any_of(const std::vector<std::string>& words);

/// "formats: generic, megatron"
[[nodiscard]] std::string listing(std::string_view plural, const std::vector<std::string>& words);

/// "did you mean ...?" where a known word is near, `otherwise` where none is.
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& known,
                                     std::string otherwise);

/// What a reader must know of results that a time limit of so many seconds had a part in.
[[nodiscard]] std::string time_limit_text(double seconds);

}  // namespace tangram::app
