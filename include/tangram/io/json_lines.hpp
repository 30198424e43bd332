// Files of one JSON document a line. Goes in: a text. Comes out: its lines that are not blank, with their numbers.
#pragma once

#include <string_view>
#include <vector>

namespace tangram::io {

struct NumberedLine {
  int number = 0;  ///< from 1; blank lines count
  std::string_view text;
};

[[nodiscard]] std::vector<NumberedLine> filled_lines(std::string_view text);

}  // namespace tangram::io
