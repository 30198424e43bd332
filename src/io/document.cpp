#include "tangram/io/document.hpp"

#include <algorithm>
#include <utility>

#include "json_syntax.hpp"
#include "source_text.hpp"

namespace tangram::io {

std::string_view to_string(NodeKind kind) {
  switch (kind) {
    case NodeKind::kNull: return "null";
    case NodeKind::kBoolean: return "a boolean";
    case NodeKind::kInteger: return "an integer";
    case NodeKind::kNumber: return "a number";
    case NodeKind::kString: return "a string";
    case NodeKind::kArray: return "an array";
    case NodeKind::kObject: return "an object";
  }
  return "a value";
}

const Node* Node::find(std::string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

std::string Document::line_text(int line) const { return std::string(line_of(text, line)); }

Expected<Document> parse(std::string text, std::string file) {
  const std::size_t first = skip_json_blanks(text, text.starts_with("\xEF\xBB\xBF") ? 3 : 0);
  const bool named_yaml = file.ends_with(".yaml") || file.ends_with(".yml");
  const bool json = file.ends_with(".json") || (!named_yaml && first < text.size() && text[first] == '{');
  return json ? parse_json(std::move(text), std::move(file)) : parse_yaml(std::move(text), std::move(file));
}

}  // namespace tangram::io
