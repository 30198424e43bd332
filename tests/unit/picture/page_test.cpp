#include "tangram/picture/page.hpp"

#include <limits>

#include "support/catch.hpp"
#include "tangram/picture/bar_chart.hpp"
#include "tangram/picture/chain.hpp"
#include "tangram/picture/paint.hpp"

using namespace tangram;
using namespace tangram::picture;

namespace {

std::size_t count_of(const std::string& text, const std::string& wanted) {
  std::size_t count = 0;
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("page: styles inside, a script only for timelines, nothing from elsewhere") {
  Page page{"a <title>", paragraph("said"), false};
  const std::string plain = written(page);
  CHECK(plain.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  CHECK(plain.find("<title>a &lt;title&gt;</title>") != std::string::npos);
  CHECK(plain.find("<script>") == std::string::npos);
  CHECK(plain.find("://") == std::string::npos);
  CHECK(plain.find("url(") == std::string::npos);
  page.has_timelines = true;
  CHECK(count_of(written(page), "<script>") == 1);
}

TEST_CASE("page: a table has a cell for each column, numbers set right") {
  const std::string html = table({{"name"}, {"GPUs", true}}, {{text("a"), text("8")}, {text("b"), text("16")}}).html();
  CHECK(count_of(html, "<tr>") == 3);
  CHECK(count_of(html, "<td class=\"n\">") == 2);
  CHECK_THROWS(table({{"name"}}, {{text("a"), text("b")}}));
}

TEST_CASE("page: a meter is full at most") {
  CHECK(meter(0.25, "a").html().find("width:25%") != std::string::npos);
  CHECK(meter(1.5, "a").html().find("width:100%") != std::string::npos);
  CHECK(meter(-1, "a").html().find("width:0%") != std::string::npos);
}

TEST_CASE("page: bars are as long as their values, and dashed where there is none") {
  const std::string html =
      bar_chart({{"one", 2, "2 s", Paint::kOurs},
                 {"two", 1, "1 s", Paint::kTheirs},
                 {"none", std::numeric_limits<double>::infinity(), "does not run", Paint::kTheirs}},
                "times")
          .html();
  // The longest has 560 units, half of it 280.
  CHECK(html.find("class=\"ours\" x=\"190\" y=\"0\" width=\"560\"") != std::string::npos);
  CHECK(html.find("class=\"theirs\" x=\"190\" y=\"30\" width=\"280\"") != std::string::npos);
  CHECK(html.find("class=\"none\" x=\"190\" y=\"60\" width=\"560\"") != std::string::npos);
}

TEST_CASE("page: a chain has a flow between each two boxes") {
  const Box box{"stage", "", {"head"}, {{"8 x A", series(0), {{"hosts", "a"}}, 0.5, "1 of 2 GiB"}}, true};
  const std::string html = chain({box, box, box}, {{"1 MiB", "5 GB/s", ""}, {"1 MiB", "5 GB/s", ""}}).html();
  CHECK(count_of(html, "class=\"box marked\"") == 3);
  CHECK(count_of(html, "class=\"flow\"") == 2);
  CHECK_THROWS(chain({box, box}, {}));
}

TEST_CASE("page: colours of a series come again after eight") {
  CHECK(series(0) == Paint::kSeries0);
  CHECK(series(7) == Paint::kSeries7);
  CHECK(series(8) == Paint::kSeries0);
  CHECK(css_class(series(7)) == "s7");
  CHECK(css_class(Paint::kForward) == "f");
}
