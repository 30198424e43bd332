#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "tangram/io/document.hpp"

using namespace tangram;
using namespace tangram::io;

namespace {

Document accept(std::string text) {
  auto document = parse_json(std::move(text), "a.json");
  if (!document) FAIL(render(document.error()));
  return *std::move(document);
}

std::string reject(std::string text) {
  auto document = parse_json(std::move(text), "a.json");
  return document ? "accepted" : render(document.error());
}

using Place = std::vector<int>;
Place place(const Node& node) { return {node.line, node.column, node.length}; }

}  // namespace

TEST_CASE("json: every value and key knows its place") {
  const Document document = accept(
      "// fleet\n"
      "{\"name\": \"a\\\"b\", /* n */ \"n\" : [ -12.5e3,true,\n"
      "  null, {} ] , \"k\\n\":0}\r\n");
  const Node& root = document.root;
  CHECK(place(root) == Place{2, 1, 1});
  REQUIRE(root.members.size() == 3);
  // {"name": "a\"b", /* n */ "n" : [ -12.5e3,true,
  // 1234567890123456789012345678901234567890123456
  CHECK(root.members[0].column == 2);
  CHECK(root.members[0].length == 6);
  CHECK(place(root.members[0].value) == Place{2, 10, 6});
  CHECK(root.members[0].value.text == "a\"b");
  CHECK(root.members[1].column == 26);
  const Node& list = root.members[1].value;
  CHECK(place(list) == Place{2, 32, 1});
  REQUIRE(list.items.size() == 4);
  CHECK(place(list.items[0]) == Place{2, 34, 7});
  CHECK(list.items[0].text == "-12.5e3");
  CHECK(place(list.items[1]) == Place{2, 42, 4});
  CHECK(place(list.items[2]) == Place{3, 3, 4});
  CHECK(place(list.items[3]) == Place{3, 9, 1});
  CHECK(root.members[2].key == "k\n");
  CHECK(root.members[2].line == 3);
  CHECK(root.members[2].column == 16);
  CHECK(root.members[2].length == 5);
  CHECK(place(root.members[2].value) == Place{3, 22, 1});
  CHECK(document.line_text(3) == "  null, {} ] , \"k\\n\":0}");
  CHECK(root.find("n") == &list);
  CHECK(root.find("x") == nullptr);
}

TEST_CASE("json: whole numbers that fit are integers") {
  const Document document = accept("[9223372036854775807, 9223372036854775808, -9223372036854775808, 1.0, 1e2, -0]");
  const auto& items = document.root.items;
  CHECK(items[0].kind == NodeKind::kInteger);
  CHECK(items[0].integer == 9223372036854775807);
  CHECK(items[1].kind == NodeKind::kNumber);
  CHECK(items[1].number == 9223372036854775808.0);
  CHECK(items[2].integer == std::numeric_limits<std::int64_t>::min());
  CHECK(items[3].kind == NodeKind::kNumber);
  CHECK(items[4].kind == NodeKind::kNumber);
  CHECK(items[4].number == 100.0);
  CHECK(items[5].kind == NodeKind::kInteger);
}

TEST_CASE("json: a byte order mark is dropped, stdin has a name") {
  const auto document = parse_json("\xEF\xBB\xBF[1]", "-");
  REQUIRE(document);
  CHECK(document->file == "<stdin>");
  CHECK(place(document->root.items[0]) == Place{1, 2, 1});
}

TEST_CASE("json: 64 levels of nesting, no more") {
  CHECK(accept(std::string(64, '[') + std::string(64, ']')).root.kind == NodeKind::kArray);
  CHECK(reject(std::string(65, '[') + std::string(65, ']'))
            .starts_with("a.json:1:65: error: nested more than 64 levels deep\n"));
}

TEST_CASE("json: duplicate keys are all reported, with their pointer") {
  const auto document = parse_json("{\"a/b\": [{\"c\": 1,\n\"c\": 2}], \"a/b\": 3}", "a.json");
  REQUIRE_FALSE(document);
  CHECK(render(document.error()) ==
        "a.json:2:1: error: duplicate key \"c\"\n"
        "  \"c\": 2}], \"a/b\": 3}\n"
        "  ^~~\n"
        "  hint: it is first given at line 1\n"
        "a.json:2:11: error: duplicate key \"a/b\"\n"
        "  \"c\": 2}], \"a/b\": 3}\n"
        "            ^~~~~\n"
        "  hint: it is first given at line 1\n");
  CHECK(document.error()[0].code == "duplicate-key");
  CHECK(document.error()[0].pointer == "/a~1b/0/c");
  CHECK(document.error()[1].pointer == "/a~1b");
}

TEST_CASE("json: duplicates are found in large objects too") {
  std::string text = "{";
  for (int i = 0; i < 40; ++i) text += "\"k" + std::to_string(i) + "\": 1,\n";
  CHECK(reject(text + "\"k0\": 1}").starts_with("a.json:41:1: error: duplicate key \"k0\"\n"));
  CHECK(reject(text + "\"k39\": 1}").starts_with("a.json:41:1: error: duplicate key \"k39\"\n"));
}

TEST_CASE("json: what is wrong, where, and what to do") {
  // Text, then the whole message.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "1:1: error: the file holds no value\n"},
      {" // only\n", "1:1: error: the file holds no value\n   // only\n  ^\n"},
      {"{\"a\": 1,}", "1:8: error: trailing comma before \"}\"\n  {\"a\": 1,}\n         ^\n  hint: remove the comma\n"},
      {"[1, /* c */ ]", "1:3: error: trailing comma before \"]\"\n  [1, /* c */ ]\n    ^\n  hint: remove the comma\n"},
      {"{\"a\": 1 \"b\": 2}",
       "1:9: error: expected \",\" or \"}\", got a string\n  {\"a\": 1 \"b\": 2}\n          ^\n"
       "  hint: a comma may be missing before it\n"},
      {"[1 2]",
       "1:4: error: expected \",\" or \"]\", got a number\n  [1 2]\n     ^\n  hint: a comma may be missing before "
       "it\n"},
      {"{\"a\" 1}", "1:6: error: expected \":\" after the key, got a number\n  {\"a\" 1}\n       ^\n"},
      {"{\"a\":}", "1:6: error: expected a value, got \"}\"\n  {\"a\":}\n       ^\n"},
      {"{count: 1}", "1:2: error: a key needs double quotes\n  {count: 1}\n   ^~~~~\n  hint: write \"count\"\n"},
      {"{1: 2}", "1:2: error: a key needs double quotes\n  {1: 2}\n   ^\n  hint: write \"1\"\n"},
      {"{,}", "1:2: error: expected a key or \"}\", got \",\"\n  {,}\n   ^\n"},
      {"{'a': 1}", "1:2: error: strings need double quotes\n  {'a': 1}\n   ^\n  hint: write \" instead of '\n"},
      {"[True]", "1:2: error: unknown word \"True\"\n  [True]\n   ^~~~\n  hint: write true\n"},
      {"[None]", "1:2: error: unknown word \"None\"\n  [None]\n   ^~~~\n  hint: write null\n"},
      {"a: 1",
       "1:1: error: unknown word \"a\"\n  a: 1\n  ^\n  hint: JSON is wanted here; this looks like YAML or a message\n"},
      {"[bf16]", "1:2: error: unknown word \"bf16\"\n  [bf16]\n   ^~~~\n  hint: a string needs double quotes\n"},
      {"[NaN]", "1:2: error: unknown word \"NaN\"\n  [NaN]\n   ^~~\n  hint: a string needs double quotes\n"},
      {"[truer]", "1:2: error: unknown word \"truer\"\n  [truer]\n   ^~~~~\n  hint: a string needs double quotes\n"},
      {"[010]", "1:2: error: malformed number \"010\"\n  [010]\n   ^~~\n  hint: leave out the leading zero\n"},
      {"[+1]", "1:2: error: malformed number \"+1\"\n  [+1]\n   ^~\n  hint: leave out the plus sign\n"},
      {"[.5]", "1:2: error: malformed number \".5\"\n  [.5]\n   ^~\n  hint: write a digit before the point\n"},
      {"[5.]", "1:2: error: malformed number \"5.\"\n  [5.]\n   ^~\n  hint: write a digit behind the point\n"},
      {"[0x10]",
       "1:2: error: malformed number \"0x10\"\n  [0x10]\n   ^~~~\n  hint: write it in decimal, like 12, -0.5 or 1e9\n"},
      {"[80GiB]",
       "1:2: error: malformed number \"80GiB\"\n  [80GiB]\n   ^~~~~\n  hint: write it in decimal, like 12, -0.5 or "
       "1e9\n"},
      {"[1e999]", "1:2: error: 1e999 is beyond the range of a number\n  [1e999]\n   ^~~~~\n"},
      {"[1e-999]", "1:2: error: 1e-999 is beyond the range of a number\n  [1e-999]\n   ^~~~~~\n"},
      {"[\"a\nb\"]", "1:2: error: the string is not closed on its line\n  [\"a\n   ^~\n  hint: end it with \"\n"},
      {"[\"ab", "1:2: error: the string is not closed\n  [\"ab\n   ^~~\n  hint: end it with \"\n"},
      {"[\"a\tb\"]", "1:4: error: control character in a string\n  [\"a b\"]\n     ^\n  hint: write \\u0009\n"},
      {"[\"C:\\dir\"]",
       "1:5: error: unknown escape \"\\d\"\n  [\"C:\\dir\"]\n      ^~\n  hint: write \\\\ for a backslash\n"},
      {"[\"\\u12g4\"]", "1:3: error: \\u needs four hexadecimal digits\n  [\"\\u12g4\"]\n    ^~\n"},
      {"[\"\\ud800x\"]",
       "1:3: error: half of a surrogate pair\n  [\"\\ud800x\"]\n    ^~~~~~\n  hint: write the character itself\n"},
      {"[\"\\udc00\"]",
       "1:3: error: half of a surrogate pair\n  [\"\\udc00\"]\n    ^~~~~~\n  hint: write the character itself\n"},
      {"{\"a\": [1,\n2\n",
       "2:2: error: unexpected end of the text, expected \",\" or \"]\"\n  2\n   ^\n"
       "  hint: what is opened at line 1 is not closed\n"},
      {"{} {}", "1:4: error: unexpected text after the end of the document\n  {} {}\n     ^\n"},
      {"[1] /* x", "1:5: error: the comment is not closed\n  [1] /* x\n      ^~\n  hint: end it with */\n"},
      {"# yaml\n[1]", "1:1: error: expected a value, got \"#\"\n  # yaml\n  ^\n  hint: comments start with //\n"},
      {"[\"\xFF\"]", "1:3: error: invalid UTF-8\n  [\"\xFF\"]\n    ^\n  hint: the file must be UTF-8 text\n"},
      {"[\"\xED\xA0\x80\"]",
       "1:3: error: invalid UTF-8\n  [\"\xED\xA0\x80\"]\n    ^\n  hint: the file must be UTF-8 text\n"},
      {std::string("{}\0x", 4),
       "1:3: error: zero byte in the text\n  {} x\n    ^\n  hint: the file must be UTF-8 text\n"},
  };
  for (const auto& [text, message] : cases) CHECK(reject(text) == "a.json:" + message);
}

TEST_CASE("json: valid UTF-8 and escapes are kept") {
  const Document document = accept("[\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\", \"\\u00e9\\ud83d\\ude00\\/\"]");
  CHECK(document.root.items[0].text == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(document.root.items[1].text == "\xC3\xA9\xF0\x9F\x98\x80/");
}
