#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "tangram/io/document.hpp"

using namespace tangram;
using namespace tangram::io;

namespace {

Document accept_yaml(std::string text) {
  auto document = parse_yaml(std::move(text), "m.yaml");
  if (!document) FAIL(render(document.error()));
  return *std::move(document);
}

std::string reject_yaml(std::string text) {
  auto document = parse_yaml(std::move(text), "m.yaml");
  return document ? "accepted" : render(document.error());
}

std::vector<int> place_in_yaml(const Node& node) { return {node.line, node.column, node.length}; }

}  // namespace

TEST_CASE("yaml: every value and key knows its place") {
  const Document document = accept_yaml(
      "# model\n"
      "name: \"a b\"  # c\n"
      "list:\n"
      "  - 12\n"
      "  - {x: 'it''s', y: [1.5]}\n"
      "text: |\n"
      "  one\n"
      "  two\n");
  const Node& root = document.root;
  CHECK(root.line == 2);
  CHECK(root.column == 1);
  REQUIRE(root.members.size() == 3);
  CHECK(root.members[0].length == 4);
  CHECK(place_in_yaml(root.members[0].value) == std::vector<int>{2, 7, 5});
  CHECK(root.members[0].value.text == "a b");
  CHECK(root.members[1].line == 3);
  const Node& list = root.members[1].value;
  REQUIRE(list.items.size() == 2);
  CHECK(place_in_yaml(list.items[0]) == std::vector<int>{4, 5, 2});
  const Node& map = list.items[1];
  CHECK(place_in_yaml(map) == std::vector<int>{5, 5, 1});
  CHECK(map.members[0].column == 6);
  CHECK(place_in_yaml(map.members[0].value) == std::vector<int>{5, 9, 7});
  CHECK(map.members[0].value.text == "it's");
  CHECK(place_in_yaml(map.members[1].value.items[0]) == std::vector<int>{5, 22, 3});
  CHECK(root.members[2].value.text == "one\ntwo\n");
}

TEST_CASE("yaml: plain scalars follow the strict core rules") {
  using Kind = NodeKind;
  const std::vector<std::pair<std::string, Kind>> cases = {
      {"true", Kind::kBoolean}, {"False", Kind::kBoolean},   {"yes", Kind::kString},     {"on", Kind::kString},
      {"null", Kind::kNull},    {"~", Kind::kNull},          {"", Kind::kNull},          {"12", Kind::kInteger},
      {"-3", Kind::kInteger},   {"+3", Kind::kInteger},      {"0", Kind::kInteger},      {"010", Kind::kString},
      {"0x1F", Kind::kString},  {"0o17", Kind::kString},     {"1_000", Kind::kString},   {"1.5", Kind::kNumber},
      {".5", Kind::kNumber},    {"5.", Kind::kNumber},       {"1e9", Kind::kNumber},     {"1e", Kind::kString},
      {".inf", Kind::kString},  {".nan", Kind::kString},     {".", Kind::kString},       {"1.2.3", Kind::kString},
      {"'12'", Kind::kString},  {"\"true\"", Kind::kString}, {"\"null\"", Kind::kString}};
  for (const auto& [text, kind] : cases) {
    INFO(text);
    CHECK(accept_yaml("key: " + text).root.members[0].value.kind == kind);
  }
  CHECK(accept_yaml("key: +3").root.members[0].value.integer == 3);
  CHECK(accept_yaml("key: 5.").root.members[0].value.number == 5.0);
  CHECK(accept_yaml("12: x").root.members[0].key == "12");
}

TEST_CASE("yaml: 64 levels of nesting, no more") {
  CHECK(accept_yaml(std::string(64, '[') + std::string(64, ']')).root.kind == NodeKind::kArray);
  CHECK(reject_yaml(std::string(65, '[') + std::string(65, ']'))
            .starts_with("m.yaml:1:65: error: nested more than 64 levels deep\n"));
  CHECK(reject_yaml(std::string(100'000, '[')) != "accepted");
  std::string steps;
  for (std::size_t i = 0; i < 100; ++i) steps += std::string(i, ' ') + "a:\n";
  CHECK(reject_yaml(steps).starts_with("m.yaml:65:65: error: nested more than 64 levels deep\n"));
}

TEST_CASE("yaml: what is wrong, where, and what to do") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "1:1: error: the file holds no value\n"},
      {"# only\n", "1:1: error: the file holds no value\n  # only\n  ^\n"},
      {"a: 1\nb: 2\na: 3\n", "3:1: error: duplicate key \"a\"\n  a: 3\n  ^\n  hint: it is first given at line 1\n"},
      {"a: &x 1\nb: *x\n",
       "1:4: error: anchors are not supported\n  a: &x 1\n     ^~\n"
       "  hint: write the value out, or quote a text that starts with &\n"},
      {"a: *x\n",
       "1:4: error: aliases are not supported\n  a: *x\n     ^\n"
       "  hint: write the value out, or quote a text that starts with *\n"},
      {"a: !!str 1\n",
       "1:4: error: tags are not supported\n  a: !!str 1\n     ^~~~~\n"
       "  hint: leave it out, or quote a text that starts with !\n"},
      {"a: 1\n---\nb: 2\n", "2:1: error: a second document\n  ---\n  ^~~\n  hint: give each document its own file\n"},
      {"? - a\n: 1\n", "1:3: error: a key must be a plain text\n  ? - a\n    ^\n"},
      {"[1, 2\n", "1:1: error: this bracket is not closed, or used as a key\n  [1, 2\n  ^\n"},
      {"a: 1\nbatch\n", "2:1: error: a key without a value\n  batch\n  ^~~~~\n  hint: write \"key: value\"\n"},
      {"a: {b}\n", "1:5: error: a key without a value\n  a: {b}\n      ^\n  hint: write \"key: value\"\n"},
      {"a: 1\n...\nb: 2\n", "3:1: error: unexpected text after the end of the document\n  b: 2\n  ^\n"},
      {": 1\n", "1:1: error: a key is missing here\n  : 1\n  ^\n  hint: write \"key: value\"\n"},
      {"a: b: c\n",
       "1:5: error: a mapping value cannot start here\n  a: b: c\n      ^\n"
       "  hint: check the indentation, and quote a text that holds \": \"\n"},
      {"a:\n\tb: 1\n", "2:1: error: tab in the indentation\n   b: 1\n  ^\n  hint: indent with spaces\n"},
      {"a: [1, 2\n", "1:9: error: the sequence is not closed\n  a: [1, 2\n          ^\n  hint: end it with ]\n"},
      {"a: {b: 1\n", "1:9: error: the mapping is not closed\n  a: {b: 1\n          ^\n  hint: end it with }\n"},
      {"a: 'b", "1:6: error: the quoted text is not closed\n  a: 'b\n       ^\n  hint: end it with its quote\n"},
      {"a: \"b\n", "1:4: error: the quoted text is not closed\n  a: \"b\n     ^\n  hint: end it with its quote\n"},
      {"a: \"\\q\"\n", "1:5: error: unknown escape\n  a: \"\\q\"\n      ^~\n  hint: write \\\\ for a backslash\n"},
      {"a: @x\n",
       "1:4: error: this character cannot start a value\n  a: @x\n     ^\n"
       "  hint: quote a text that holds \": \" or starts with a special character\n"},
      {"a: 1\n b: 2\n",
       "2:3: error: a mapping value cannot start here\n   b: 2\n    ^\n"
       "  hint: check the indentation, and quote a text that holds \": \"\n"},
      {"a:\n  - 1\n  b: 2\n",
       "3:3: error: this does not continue the mapping above\n    b: 2\n    ^\n"
       "  hint: check the indentation: keys of one mapping start in the same column\n"},
      {"a: 1e999\n", "1:4: error: 1e999 is beyond the range of a number\n  a: 1e999\n     ^~~~~\n"},
      {"a: \x01\n",
       "1:4: error: control character in the text\n  a:  \n     ^\n  hint: write \"\\x01\" inside double quotes\n"},
      {"a: \xC0\x80\n", "1:4: error: invalid UTF-8\n  a: \xC0\x80\n     ^\n  hint: the file must be UTF-8 text\n"},
  };
  for (const auto& [text, message] : cases) CHECK(reject_yaml(text) == "m.yaml:" + message);
}

TEST_CASE("parse: the name decides, then the first character") {
  CHECK(parse("{\"a\": 1}", "x.json"));
  CHECK_FALSE(parse("a: 1", "x.json"));
  CHECK(parse("{a: 1}", "x.yaml"));
  CHECK(parse("// c\n {\"a\": 1}", "-"));
  CHECK(parse("a: 1", "-"));
  CHECK(parse("# c\n{a: 1}", "model"));
}

TEST_CASE("yaml: a long line costs no more than its length") {
  // 300,000 scalars on one line: quadratic work would be some 10^11 steps and run into the timeout.
  std::string text = "[a";
  for (int i = 1; i < 300'000; ++i) text += ",a";
  CHECK(accept_yaml(text + "]").root.items.size() == 300'000);
}
