#include "table.hpp"

#include "support/catch.hpp"

using namespace tangram::app;

TEST_CASE("table: columns align, by characters and not bytes") {
  const Terminal plain({});
  Table table({{"n", true}, {"words", false, 9}, {"end"}});
  table.add({{"7"}, {"one two three"}, {"x"}});
  table.add({{"12"}, {"µs"}, {""}});
  CHECK(table.render(plain) ==
        " n  words          end\n"
        " 7  one two three  x\n"
        "12  µs\n");
}

TEST_CASE("table: a line that is too long wraps the widest column that may be wrapped") {
  // 90 + 2 + 4 + 2 + 11 = 109 columns: the third, which may shrink to 3, gives way to 3; 101 remain, for "two" stays
  // whole, and the first column may not shrink. One column too wide is accepted.
  const Terminal plain({});
  Table table({{"fixed"}, {"n", true}, {"words", false, 3}});
  table.add({{std::string(90, 'x')}, {"1234"}, {"one two six"}});
  const std::string x(90, 'x');
  const std::string blank(90, ' ');
  CHECK(table.render(plain) == "fixed" + std::string(85, ' ') + "     n  words\n" + x + "  1234  one\n" + blank +
                                   "        two\n" + blank + "        six\n");
}

TEST_CASE("table: a terminal gives a line its columns") {
  // 13 + 2 + 90 = 105 columns fit 105, and wrap in 104, where the words have 12 left: "one two" is 7, "three" 5.
  for (const std::size_t columns : {std::size_t{105}, std::size_t{104}}) {
    Terminal::Traits traits;
    traits.page_width = columns;
    const Terminal terminal(traits);
    Table table({{"words", false, 3}, {"fixed"}});
    const std::string x(90, 'x');
    table.add({{"one two three"}, {x}});
    CHECK(table.render(terminal) == (columns == 105 ? "words          fixed\none two three  " + x + "\n"
                                                    : "words         fixed\none two       " + x + "\nthree\n"));
    CHECK(terminal.text_width() == 100);
  }
  Terminal::Traits narrow;
  narrow.page_width = 72;
  CHECK(Terminal(narrow).text_width() == 72);
}

TEST_CASE("table: styles color the text, not the padding") {
  Terminal::Traits traits;
  traits.color_out = true;
  const Terminal colored(traits);
  Table table({{"a"}, {"b", true}});
  table.add({{"x", Style::kRed}, {"1", Style::kBold}});
  CHECK(table.render(colored) == "\x1b[2ma\x1b[0m  \x1b[2mb\x1b[0m\n\x1b[31mx\x1b[0m  \x1b[1m1\x1b[0m\n");
}

TEST_CASE("table: bars, times, thousands, counts") {
  CHECK(bar(0, 4) == "....");
  CHECK(bar(0.5, 4) == "##..");
  CHECK(bar(1.7, 4) == "####");
  CHECK(people_time(0) == "0.00 ns");
  CHECK(people_time(12.34e-6) == "12.3 us");
  CHECK(people_time(0.0999) == "99.9 ms");
  CHECK(people_time(1.5) == "1.50 s");
  CHECK(people_time(4321) == "4321 s");
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(1000) == "1,000");
  CHECK(thousands(-1234567) == "-1,234,567");
  CHECK(counted(1, "stage") == "1 stage");
  CHECK(counted(2048, "microbatch") == "2,048 microbatches");
}

TEST_CASE("table: numbered names and numbers are compacted") {
  CHECK(compact_ranges({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(compact_ranges({}).empty());
  CHECK(compact_names({"a-1", "a-2", "a-3", "b", "c-1", "c-2"}) == "a-1 to a-3, b, c-1, c-2");
  CHECK(compact_names({"gpu08", "gpu09", "gpu10"}) == "gpu08 to gpu10");
  CHECK(compact_names({"n9", "n10", "n12"}) == "n9, n10, n12");
  CHECK(compact_names({"n1.x", "n2.x", "n3.y"}) == "n1.x, n2.x, n3.y");
}
