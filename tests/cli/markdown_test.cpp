#include "markdown.hpp"

#include "support/catch.hpp"

using namespace tangram::app;

using Kind = Block::Kind;

TEST_CASE("markdown: strong words, emphasis, code, links and pictures inside a line") {
  CHECK(read_spans("a **b c** and `d*e`, see [f `g`](h.md).") == Spans{{Span::Kind::kText, "a ", {}},
                                                                       {Span::Kind::kStrong, "b c", {}},
                                                                       {Span::Kind::kText, " and ", {}},
                                                                       {Span::Kind::kCode, "d*e", {}},
                                                                       {Span::Kind::kText, ", see ", {}},
                                                                       {Span::Kind::kLink, "f g", "h.md"},
                                                                       {Span::Kind::kText, ".", {}}});
  CHECK(read_spans("*moe*: 2") == Spans{{Span::Kind::kEmphasis, "moe", {}}, {Span::Kind::kText, ": 2", {}}});
  CHECK(read_spans("![a plot](p.svg)") == Spans{{Span::Kind::kPicture, "a plot", "p.svg"}});
}

TEST_CASE("markdown: marks that do not close are text") {
  CHECK(read_spans("2 * 3, `x, [y] and a* b") == Spans{{Span::Kind::kText, "2 * 3, `x, [y] and a* b", {}}});
}

TEST_CASE("markdown: headings, paragraphs and items end where the next block begins") {
  const auto blocks = read_markdown(
      "# Title\n"
      "one\n"
      "two\n"
      "* first\n"
      "  goes on\n"
      "2. second\n"
      "\n"
      "three\n"
      "## Part\n");
  REQUIRE(blocks.size() == 6);
  CHECK((blocks[0].kind == Kind::kHeading && blocks[0].level == 1));
  CHECK(blocks[1].text == read_spans("one two"));
  CHECK((blocks[2].kind == Kind::kItem && blocks[2].marker == "*"));
  CHECK(blocks[2].text == read_spans("first goes on"));
  CHECK((blocks[3].kind == Kind::kItem && blocks[3].marker == "2."));
  CHECK(blocks[4].kind == Kind::kParagraph);
  CHECK((blocks[5].kind == Kind::kHeading && blocks[5].level == 2));
}

TEST_CASE("markdown: code stays as it is, to its end or the file's") {
  const auto blocks = read_markdown("```sh\n# no heading\n\n  a | b\n```\nafter\n```\nopen");
  REQUIRE(blocks.size() == 3);
  CHECK(blocks[0].lines == std::vector<std::string>{"# no heading", "", "  a | b"});
  CHECK(blocks[1].text == read_spans("after"));
  CHECK(blocks[2].lines == std::vector<std::string>{"open"});
}

TEST_CASE("markdown: tables have a header, alignments and rows of as many cells") {
  const auto blocks = read_markdown("| a | b |\n|---|---:|\n| `x` | 1 |\n| y |\n");
  REQUIRE(blocks.size() == 1);
  const Block& table = blocks[0];
  CHECK(table.right == std::vector<bool>{false, true});
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[1][0] == Spans{{Span::Kind::kCode, "x", {}}});
  CHECK(table.rows[2] == std::vector<Spans>{read_spans("y"), {}});
}
