#include "text.hpp"

#include <algorithm>

namespace tangram::importing {

Diagnostic at(Place place, std::string code, std::string message, std::string hint) {
  place.kind = ErrorKind::kInput;
  place.code = std::move(code);
  place.message = std::move(message);
  place.hint = std::move(hint);
  return place;
}

Place place_in(const SourceFile& file, std::size_t first, std::size_t length) {
  const std::string& text = file.text;
  first = std::min(first, text.size());
  const auto begin = text.begin();
  const std::size_t line_start = first == 0 ? 0 : text.rfind('\n', first - 1) + 1;  // npos + 1 is 0
  const std::size_t line_end = std::min(text.find('\n', first), text.size());
  Place place;
  place.where = {file.path, static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(first), '\n')) + 1,
                 static_cast<int>(first - line_start) + 1};
  place.source_line = text.substr(line_start, line_end - line_start);
  place.length = static_cast<int>(std::clamp<std::size_t>(length, 1, std::max<std::size_t>(1, line_end - first)));
  return place;
}

Place place_of(const io::Document& document, const io::Node& node) {
  Place place;
  place.where = {document.file, node.line, node.column};
  place.source_line = document.line_text(node.line);
  place.length = node.length;
  return place;
}

Place place_of(const SourceFile& file) {
  Place place;
  place.where.file = file.path;
  return place;
}

}  // namespace tangram::importing
