// parse_json on arbitrary bytes, against the library's own verdict, its values and the characters at every place.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tangram/io/json_writer.hpp"
#include "tree_checks.hpp"

namespace {

using tangram::fuzz::require;
using tangram::io::Node;
using tangram::io::NodeKind;

char first_character(const tangram::io::Document& document, int line, int column) {
  return document.line_text(line).at(static_cast<std::size_t>(column - 1));
}

void require_equal(const tangram::io::Document& document, const Node& node, const nlohmann::ordered_json& other) {
  const char first = first_character(document, node.line, node.column);
  switch (node.kind) {
    case NodeKind::kNull: return require(other.is_null() && first == 'n');
    case NodeKind::kBoolean: return require(other == node.boolean && first == (node.boolean ? 't' : 'f'));
    case NodeKind::kInteger: return require(other.is_number_integer() && other == node.integer);
    case NodeKind::kNumber: return require(other.is_number() && other.get<double>() == node.number);
    case NodeKind::kString: return require(other == node.text && first == '"');
    case NodeKind::kArray:
      require(other.is_array() && other.size() == node.items.size() && first == '[');
      for (std::size_t i = 0; i < node.items.size(); ++i) require_equal(document, node.items[i], other[i]);
      return;
    case NodeKind::kObject:
      require(other.is_object() && other.size() == node.members.size() && first == '{');
      for (const auto& member : node.members) {
        require(first_character(document, member.line, member.column) == '"');
        require_equal(document, member.value, other.at(member.key));
      }
      return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto document = tangram::io::parse_json(text, "fuzz.json");
  if (!document) {
    tangram::fuzz::require_errors(document.error());
    return 0;
  }
  tangram::fuzz::require_places(document->root, document->text);
  const auto other = nlohmann::ordered_json::parse(text, nullptr, true, true);
  require_equal(*document, document->root, other);
  const auto again = tangram::io::parse_json(tangram::io::write_canonical(other), "again.json");
  require(again.has_value());
  return 0;
}
