#include "tangram/io/reader.hpp"

#include <functional>
#include <string>
#include <utility>

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::io;

namespace {

// Everything the reader reports about a text.
std::string report(const std::string& text, const std::function<void(ObjectReader&)>& read) {
  const auto document = parse(text, "c.json");
  if (!document) FAIL(render(document.error()));
  Diagnostics sink;
  ObjectReader reader(*document, document->root, "", sink);
  read(reader);
  reader.finish();
  return render(sink);
}

enum class Color { kRed, kGreen };
const Choices<Color> kColors = {{"red", Color::kRed}, {"green", Color::kGreen}};

}  // namespace

TEST_CASE("reader: typed values") {
  CHECK(report(R"({"i": 3, "n": 2, "b": true, "s": "x", "c": "green", "l": ["p", "q"], "one": "r",
                   "o": {"k": 1}, "os": [{}, {}], "m": {"a": {"v": 1}}, "t": {"rack": "r1"}})",
               [](ObjectReader& r) {
                 CHECK(r.integer("i") == 3);
                 CHECK(r.number("n") == 2.0);
                 CHECK(r.boolean("b"));
                 CHECK(r.string("s") == "x");
                 CHECK(r.choice("c", kColors) == Color::kGreen);
                 CHECK(r.strings_if("l") == std::vector<std::string>{"p", "q"});
                 CHECK(r.strings_if("one") == std::vector<std::string>{"r"});
                 auto child = r.object("o");
                 REQUIRE(child);
                 CHECK(child->pointer() == "/o");
                 CHECK(child->integer("k") == 1);
                 const auto several = r.objects("os");
                 REQUIRE(several.size() == 2);
                 CHECK(several[1].pointer() == "/os/1");
                 auto members = r.object_members("m");
                 REQUIRE(members.size() == 1);
                 CHECK(members[0].first == "a");
                 CHECK(members[0].second.integer("v") == 1);
                 CHECK(r.string_members("t") == std::vector<std::pair<std::string, std::string>>{{"rack", "r1"}});
               }) == "");
}

TEST_CASE("reader: absent optional keys give the fallback without a report") {
  CHECK(report("{}", [](ObjectReader& r) {
          CHECK(r.integer_or("i", 7) == 7);
          CHECK(r.number_or("n", 0.5) == 0.5);
          CHECK(r.boolean_or("b", true));
          CHECK(r.string_or("s", "x") == "x");
          CHECK(r.choice_or("c", Color::kGreen, kColors) == Color::kGreen);
          CHECK_FALSE(r.integer_if("i"));
          CHECK_FALSE(r.number_if("n"));
          CHECK_FALSE(r.object_if("o"));
          CHECK(r.objects_if("os").empty());
          CHECK(r.strings_if("l").empty());
          CHECK_FALSE(r.has("i"));
        }) == "");
}

TEST_CASE("reader: an unknown key names the likely one, and that one is then not missing") {
  CHECK(report(R"({"cuont": 4})", [](ObjectReader& r) { CHECK(r.integer("count", kCount) == 1); }) ==
        "c.json:1:2: error: unknown key \"cuont\"\n"
        "  {\"cuont\": 4}\n"
        "   ^~~~~~~\n"
        "  hint: did you mean \"count\"?\n");
}

TEST_CASE("reader: an unknown key that resembles none lists the known ones") {
  CHECK(report(R"({"zzz": 4, "count": 1})",
               [](ObjectReader& r) {
                 r.integer("count");
                 r.ignore("name");
               }) ==
        "c.json:1:2: error: unknown key \"zzz\"\n"
        "  {\"zzz\": 4, \"count\": 1}\n"
        "   ^~~~~\n"
        "  hint: known keys: count, name\n");
}

TEST_CASE("reader: a key that is given is not suggested again") {
  CHECK(report(R"({"count": 1, "coumt": 2})", [](ObjectReader& r) { r.integer("count"); }) ==
        "c.json:1:14: error: unknown key \"coumt\"\n"
        "  {\"count\": 1, \"coumt\": 2}\n"
        "               ^~~~~~~\n"
        "  hint: known keys: count\n");
}

TEST_CASE("reader: a wrong or missing unit") {
  const auto read = [](ObjectReader& r) {
    r.number("memory_gib");
    r.number("bandwidth_gb_s");
    r.number("latency_us");
  };
  CHECK(report("{\"memory_gb\": 80,\n\"bandwidth_gbit_s\": 100,\n\"latency\": 5}", read) ==
        "c.json:1:2: error: \"memory_gb\" has the wrong unit\n"
        "  {\"memory_gb\": 80,\n"
        "   ^~~~~~~~~~~\n"
        "  hint: give it in GiB, as \"memory_gib\"\n"
        "c.json:2:1: error: \"bandwidth_gbit_s\" has the wrong unit\n"
        "  \"bandwidth_gbit_s\": 100,\n"
        "  ^~~~~~~~~~~~~~~~~~\n"
        "  hint: give it in GB/s, as \"bandwidth_gb_s\"\n"
        "c.json:3:1: error: \"latency\" has no unit\n"
        "  \"latency\": 5}\n"
        "  ^~~~~~~~~\n"
        "  hint: give it in microseconds, as \"latency_us\"\n");
}

TEST_CASE("reader: missing keys are reported at the object") {
  const auto document = parse_json("{\"a\":\n  {}}", "c.json");
  REQUIRE(document);
  Diagnostics sink;
  ObjectReader reader(*document, document->root, "", sink);
  auto child = reader.object("a");
  REQUIRE(child);
  CHECK(child->integer("count", {4, 8}) == 4);
  CHECK(child->string("name").empty());
  CHECK(child->choice("color", kColors) == Color::kRed);
  CHECK_FALSE(child->object("o"));
  CHECK(child->objects("os").empty());
  REQUIRE(sink.size() == 5);
  CHECK(render(sink[0]) == "c.json:2:3: error: missing key \"count\"\n    {}}\n    ^\n");
  CHECK(sink[0].code == "missing-key");
  CHECK(sink[0].pointer == "/a");
}

TEST_CASE("reader: wrong types, one error each, with what to write") {
  const auto read = [](ObjectReader& r) {
    CHECK(r.integer("i") == 1);
    CHECK(r.integer("w") == 1);
    CHECK(r.number("memory_gib", kPositive) == 1.0);
    CHECK_FALSE(r.boolean("b"));
    CHECK(r.string("s").empty());
    CHECK_FALSE(r.object("o"));
    CHECK(r.objects("os").empty());
    CHECK(r.strings_if("l") == std::vector<std::string>{"x"});
    CHECK(r.choice("c", kColors) == Color::kRed);
    CHECK(r.string_members("t").empty());
  };
  CHECK(report("{\"i\": \"4\",\n\"w\": 2.0,\n\"memory_gib\": \"80 GB\",\n\"b\": \"yes\",\n\"s\": 5,\n\"o\": [],\n"
               "\"os\": {},\n\"l\": [\"x\", 1],\n\"c\": true,\n\"t\": {\"rack\": 1}}",
               read) ==
        "c.json:1:7: error: expected an integer, got a string\n"
        "  {\"i\": \"4\",\n"
        "        ^~~\n"
        "  hint: write 4 without quotes\n"
        "c.json:2:6: error: expected an integer, got a number\n"
        "  \"w\": 2.0,\n"
        "       ^~~\n"
        "  hint: write 2\n"
        "c.json:3:15: error: expected a number, got a string\n"
        "  \"memory_gib\": \"80 GB\",\n"
        "                ^~~~~~~\n"
        "  hint: write the number alone, in GiB\n"
        "c.json:4:6: error: expected a boolean, got a string\n"
        "  \"b\": \"yes\",\n"
        "       ^~~~~\n"
        "  hint: write true\n"
        "c.json:5:6: error: expected a string, got an integer\n"
        "  \"s\": 5,\n"
        "       ^\n"
        "  hint: write \"5\"\n"
        "c.json:6:6: error: expected an object, got an array\n"
        "  \"o\": [],\n"
        "       ^\n"
        "c.json:7:7: error: expected an array of objects, got an object\n"
        "  \"os\": {},\n"
        "        ^\n"
        "  hint: write [ { ... } ]\n"
        "c.json:8:12: error: expected a string, got an integer\n"
        "  \"l\": [\"x\", 1],\n"
        "             ^\n"
        "c.json:9:6: error: expected a string, got a boolean\n"
        "  \"c\": true,\n"
        "       ^~~~\n"
        "  hint: one of \"red\", \"green\"\n"
        "c.json:10:15: error: expected a string, got an integer\n"
        "  \"t\": {\"rack\": 1}}\n"
        "                ^\n"
        "  hint: write \"1\"\n");
}

TEST_CASE("reader: values out of range") {
  const auto read = [](ObjectReader& r) {
    CHECK(r.integer("count", kCount) == 1);
    CHECK(r.integer("degree", {1, 8}) == 1);
    CHECK(r.number("price", kNotNegative) == 1.0);
    CHECK(r.number("speed", kPositive) == 1.0);
    CHECK(r.number("share", {0.0, 0.5, false}) == 0.5);
    CHECK(r.string("name").empty());
    CHECK(r.objects("nodes").empty());
  };
  CHECK(report("{\"count\": 0,\n\"degree\": 9,\n\"price\": -0.5,\n\"speed\": 0,\n\"share\": 1.5,\n\"name\": \"\",\n"
               "\"nodes\": []}",
               read) ==
        "c.json:1:11: error: \"count\" must be at least 1, got 0\n"
        "  {\"count\": 0,\n"
        "            ^\n"
        "c.json:2:11: error: \"degree\" must be at most 8, got 9\n"
        "  \"degree\": 9,\n"
        "            ^\n"
        "c.json:3:10: error: \"price\" must be at least 0, got -0.5\n"
        "  \"price\": -0.5,\n"
        "           ^~~~\n"
        "c.json:4:10: error: \"speed\" must be greater than 0, got 0\n"
        "  \"speed\": 0,\n"
        "           ^\n"
        "c.json:5:10: error: \"share\" must be at most 0.5, got 1.5\n"
        "  \"share\": 1.5,\n"
        "           ^~~\n"
        "c.json:6:9: error: \"name\" must not be empty\n"
        "  \"name\": \"\",\n"
        "          ^~\n"
        "c.json:7:10: error: \"nodes\" must hold at least one object\n"
        "  \"nodes\": []}\n"
        "           ^\n");
}

TEST_CASE("reader: an unknown value names the likely one, or all") {
  CHECK(report("{\"a\": \"gren\",\n\"b\": \"purple\"}",
               [](ObjectReader& r) {
                 CHECK(r.choice("a", kColors) == Color::kRed);
                 CHECK(r.choice_or("b", Color::kGreen, kColors) == Color::kGreen);
               }) ==
        "c.json:1:7: error: unknown value \"gren\" for \"a\"\n"
        "  {\"a\": \"gren\",\n"
        "        ^~~~~~\n"
        "  hint: did you mean \"green\"?\n"
        "c.json:2:6: error: unknown value \"purple\" for \"b\"\n"
        "  \"b\": \"purple\"}\n"
        "       ^~~~~~~~\n"
        "  hint: one of \"red\", \"green\"\n");
}

TEST_CASE("reader: something else than an object is reported once") {
  CHECK(report("[1]",
               [](ObjectReader& r) {
                 CHECK_FALSE(r.valid());
                 CHECK(r.integer("count", {2, 3}) == 2);
                 CHECK(r.objects("os").empty());
                 CHECK_FALSE(r.has("x"));
               }) ==
        "c.json:1:1: error: expected an object, got an array\n"
        "  [1]\n"
        "  ^\n");
}

TEST_CASE("reader: pointers are escaped and follow the nesting") {
  const auto document = parse_json(R"({"a/b": [{"c~d": 1}]})", "c.json");
  REQUIRE(document);
  Diagnostics sink;
  ObjectReader reader(*document, document->root, "", sink);
  auto items = reader.objects("a/b");
  REQUIRE(items.size() == 1);
  items[0].error_at("c~d", "own", "something of the caller's");
  REQUIRE(sink.size() == 1);
  CHECK(sink[0].pointer == "/a~1b/0/c~0d");
  CHECK(sink[0].where == SourceLocation{"c.json", 1, 18});
}
