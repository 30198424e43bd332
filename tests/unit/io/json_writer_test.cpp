#include "tangram/io/json_writer.hpp"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.hpp"
#include "tangram/io/document.hpp"

using namespace tangram::io;
using nlohmann::ordered_json;

TEST_CASE("writer: scalars on one line, containers of containers on several, order kept") {
  const ordered_json value = {{"b", {1, 2}},
                              {"a", {{"x", true}, {"y", nullptr}}},
                              {"n", {{1}, ordered_json::array()}},
                              {"e", ordered_json::object()}};
  CHECK(write_canonical(value) ==
        "{\n"
        "  \"b\": [1, 2],\n"
        "  \"a\": {\"x\": true, \"y\": null},\n"
        "  \"n\": [\n"
        "    [1],\n"
        "    []\n"
        "  ],\n"
        "  \"e\": {}\n"
        "}\n");
  CHECK(write_compact(value) == R"({"b":[1,2],"a":{"x":true,"y":null},"n":[[1],[]],"e":{}})");
}

TEST_CASE("writer: a line holds 110 columns with its comma") {
  // {"k": ["xxx"]} is wrapped at the outer object; inside, `  "k": ["` takes 9 columns, `"]` 2 and the comma 1.
  const auto line_of = [](std::size_t letters) {
    return write_canonical({{"k", ordered_json::array({std::string(letters, 'x')})}});
  };
  CHECK(line_of(98) == "{\n  \"k\": [\"" + std::string(98, 'x') + "\"]\n}\n");
  CHECK(line_of(99) == "{\n  \"k\": [\n    \"" + std::string(99, 'x') + "\"\n  ]\n}\n");
}

TEST_CASE("writer: numbers read back to the same bits") {
  for (const double value : {0.1, 1.0 / 3.0, 5.0, 1e6, 1e21, 5e-324, -2.5e-7, std::numeric_limits<double>::max()}) {
    const auto document = parse_json(write_compact(ordered_json::array({value})), "x");
    REQUIRE(document);
    CHECK(document->root.items[0].number == value);
  }
  CHECK(write_compact(ordered_json::array({0.1, 5.0, 123456.75})) == "[0.1,5,123456.75]");
  CHECK(write_compact(ordered_json::array(
            {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::uint64_t>::max()})) ==
        "[-9223372036854775808,18446744073709551615]");
  CHECK_THROWS_AS(write_compact(std::numeric_limits<double>::infinity()), std::logic_error);
}

TEST_CASE("writer: strings are escaped, UTF-8 is kept") {
  CHECK(write_canonical("a\"\n\\\xC3\xA9") == "\"a\\\"\\n\\\\\xC3\xA9\"\n");
}
