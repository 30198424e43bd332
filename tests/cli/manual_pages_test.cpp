#include "manual_pages.hpp"

#include "support/catch.hpp"

using namespace tangram::app;

namespace {

std::string shown(std::string_view markdown, std::size_t width) {
  Terminal::Traits traits;
  traits.page_width = width;
  const Terminal terminal(traits);
  return page_text(markdown, terminal);
}

}  // namespace

TEST_CASE("manual: prose is wrapped, items hang, links name where they lead") {
  CHECK(shown("# Title\nOne `two` three\nfour [plans](plans.md).\n\n* a b c d e f g h i j k\n* b\n", 20) ==
        "Title\n"
        "=====\n"
        "\n"
        "One two three four\n"
        "tangram help plans.\n"
        "\n"
        "* a b c d e f g h i\n"
        "  j k\n"
        "* b\n");
  CHECK(shown("See [the sums](../../../src/a.md#b), [x](https://x.org), [here](#there), [job files](job.md).", 99) ==
        "See the sums (src/a.md), x (https://x.org), here, job files (tangram help job).\n");
}

TEST_CASE("manual: prose has at most 100 columns, on whatever terminal") {
  const std::string words(300, 'x');
  const std::string text = words.substr(0, 60) + " " + words.substr(0, 60);
  CHECK(shown(text, 200) == words.substr(0, 60) + "\n" + words.substr(0, 60) + "\n");
}

TEST_CASE("manual: code is indented where that fits") {
  CHECK(shown("```\n$ run\n\nout\n```\n", 7) == "  $ run\n\n  out\n");
  CHECK(shown("```\n$ run\n\nout\n```\n", 6) == "$ run\n\nout\n");
}

TEST_CASE("manual: a table wraps the widest column down to its longest word") {
  // Natural widths 1 and 13, the gap 2: 16. At 12 the second column has 9 left and breaks after "two".
  const char* table = "| n | words |\n|---:|---|\n| 1 | one two three |\n";
  CHECK(shown(table, 16) ==
        "n  words\n"
        "----------------\n"
        "1  one two three\n");
  CHECK(shown(table, 12) ==
        "n  words\n"
        "------------\n"
        "1  one two\n"
        "   three\n");
}

TEST_CASE("manual: a table that is too wide is divided, each part with the first column") {
  // Each column is 4 wide: two take 10 columns, three 16.
  CHECK(shown("| case | aaaa | bbbb | cccc |\n|---|---|---:|---|\n| x | 1 | 2 | 3 |\n", 16) ==
        "case  aaaa  bbbb\n"
        "----------------\n"
        "x     1        2\n"
        "\n"
        "case  cccc\n"
        "----------\n"
        "x     3\n");
}

TEST_CASE("manual: a page for man has its section, and nothing that troff would take for a request") {
  const ManualPage page{"a-b",
                        "# The title\n.first `x-y` [plans](plans.md)\n\n## A \"part\"\n\n* i\n\n```\n.code 'q'\n```\n"};
  const std::string troff = page_troff(page);
  CHECK(troff.starts_with(".TH TANGRAM\\-A\\-B 7 \"\" "));
  CHECK(troff.find("tangram\\-a\\-b \\- The title\n") != std::string::npos);
  CHECK(troff.find("\n\\&.first \\fBx\\-y\\fR tangram\\-plans(7)\n") != std::string::npos);
  CHECK(troff.find(".SH \"A \\(dqpart\\(dq\"\n") != std::string::npos);
  CHECK(troff.find(".IP \"\\(bu\" 2\ni\n") != std::string::npos);
  CHECK(troff.find(".nf\n\\&.code \\(aqq\\(aq\n.fi\n") != std::string::npos);
}

TEST_CASE("manual: pages are found by topic") {
  CHECK(manual_topics().front() == "first-steps");
  REQUIRE(find_page("fleet"));
  CHECK(find_page("fleet")->title().starts_with("Describe a fleet"));
  CHECK_FALSE(find_page("fleets"));
}
