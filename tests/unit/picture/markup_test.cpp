#include "tangram/picture/markup.hpp"

#include "support/catch.hpp"

using namespace tangram;
using picture::element;
using picture::escaped;
using picture::Markup;
using picture::text;

TEST_CASE("markup: plain text never becomes a tag, an attribute or a reference") {
  CHECK(escaped("<script>a && b</script>") == "&lt;script&gt;a &amp;&amp; b&lt;/script&gt;");
  CHECK(escaped("\" onload='x'") == "&quot; onload=&#39;x&#39;");
  CHECK(element("p", {{"title", "\"><b>"}}, text("&amp;")).html() == "<p title=\"&quot;&gt;&lt;b&gt;\">&amp;amp;</p>");
}

TEST_CASE("markup: what XML has no place for is replaced") {
  const std::string bad = "\xEF\xBF\xBD";  // U+FFFD
  CHECK(escaped(std::string("a\0b", 3)) == "a" + bad + "b");
  CHECK(escaped("a\x1b[31m") == "a" + bad + "[31m");
  CHECK(escaped("line\nand\ttab") == "line\nand\ttab");
  CHECK(escaped("é 日本 \xF0\x9F\x98\x80") == "é 日本 \xF0\x9F\x98\x80");
  CHECK(escaped("\xC3") == bad);                   // ends too early
  CHECK(escaped("\xC0\xAF") == bad + bad);         // not the shortest form of /
  CHECK(escaped("\xED\xA0\x80") == bad);           // a surrogate
  CHECK(escaped("\xF4\x90\x80\x80") == bad);       // beyond U+10FFFF
  CHECK(escaped("\x80x\xFF") == bad + "x" + bad);  // bytes that begin nothing
  CHECK(escaped("\xEF\xBF\xBF") == bad);           // U+FFFF
  CHECK(escaped("\xC2\x85") == bad);               // U+0085, a control character
}

TEST_CASE("markup: numbers have at most two decimals, and no zeros behind") {
  CHECK(picture::number(3) == "3");
  CHECK(picture::number(0.5) == "0.5");
  CHECK(picture::number(1234.5678) == "1234.57");
  CHECK(picture::number(-0.001) == "0");
  CHECK(picture::number(100) == "100");
  CHECK_THROWS(picture::number(1.0 / 0.0));
}

TEST_CASE("markup: elements end as HTML has it") {
  CHECK(element("div", {}).html() == "<div></div>");
  CHECK(element("rect", {{"x", 1.25}, {"width", 3}}).html() == "<rect x=\"1.25\" width=\"3\"/>");
  CHECK(element("rect", {}, element("title", {}, "t")).html() == "<rect><title>t</title></rect>");
  CHECK(element("i", {{"class", ""}}).html() == "<i></i>");  // an attribute without a value is left out
}
