#include "tangram/io/json_lines.hpp"

namespace tangram::io {

std::vector<NumberedLine> filled_lines(std::string_view text) {
  std::vector<NumberedLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({number, line});
  }
  return lines;
}

}  // namespace tangram::io
