// A parsed JSON or YAML text in which every value remembers its place. Goes in: text. Comes out: one tree for both
// formats, so that readers are written once and errors point at the character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"

namespace tangram::io {

enum class NodeKind : std::uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

[[nodiscard]] std::string_view to_string(NodeKind kind);  // "an object", "a string", ... as error texts need it

struct Member;

struct Node {
  NodeKind kind = NodeKind::kNull;
  bool boolean = false;
  std::int64_t integer = 0;     ///< kInteger
  double number = 0;            ///< kInteger and kNumber
  std::string text;             ///< kString; for numbers the text as written
  std::vector<Node> items;      ///< kArray
  std::vector<Member> members;  ///< kObject, in the order of the file
  int line = 0;                 ///< of the first character, from 1
  int column = 0;               ///< in bytes, from 1
  int length = 1;               ///< bytes to underline

  [[nodiscard]] const Node* find(std::string_view key) const;  ///< member by key, or nullptr
};

struct Member {
  std::string key;
  int line = 0;
  int column = 0;
  int length = 1;
  Node value;
};

struct Document {
  std::string file;  ///< name shown in errors ("-" becomes "<stdin>")
  std::string text;  ///< the whole input, for carets
  Node root;

  [[nodiscard]] std::string line_text(int line) const;
};

/// Strict JSON plus `//` and `/* */` comments. Duplicate keys, NaN, trailing text, more than 64 levels of nesting,
/// invalid UTF-8 are errors. Whole numbers that fit are kInteger, every other number kNumber.
[[nodiscard]] Expected<Document> parse_json(std::string text, std::string file);

/// One YAML document of plain maps, sequences and scalars. Anchors, aliases, tags, several documents, duplicate keys
/// and keys that are not scalars are errors. Plain scalars follow YAML 1.2 core rules, stricter than the library:
/// `yes`, `on` and `010` are strings; `true`, `false`, `null`, decimal integers and decimal floats are what they seem.
[[nodiscard]] Expected<Document> parse_yaml(std::string text, std::string file);

/// By the end of the name (.json; .yaml, .yml); any other name: JSON when the first character that is neither space nor
/// comment is `{`, YAML otherwise.
[[nodiscard]] Expected<Document> parse(std::string text, std::string file);

}  // namespace tangram::io
