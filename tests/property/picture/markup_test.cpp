// Whatever a text is, it is read back from its markup as it was, but for what XML has no place for.
#include "tangram/picture/markup.hpp"

#include <random>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"

using namespace tangram;
using tangram::testing::cases;
using tangram::testing::pick;

namespace {

/// Bytes of all kinds, and pieces of markup.
std::string random_text(std::mt19937_64& random) {
  const std::string pieces[] = {"<",   ">",    "&",    "\"", "'",  "</script>",
                                "]]>", "&lt;", "<!--", "é",  "日", "\xF0\x9F\x98\x80"};
  std::string text;
  for (int i = pick(random, 0, 20); i > 0; --i) {
    if (pick(random, 0, 1) == 0) {
      text += pieces[pick(random, 0, static_cast<int>(std::size(pieces)) - 1)];
    } else {
      text += static_cast<char>(pick(random, 0, 255));
    }
  }
  return text;
}

/// As a reader of XML takes it.
std::string unescaped(std::string text) {
  const std::pair<std::string, std::string> references[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [reference, plain] : references) {
    for (auto at = text.find(reference); at != std::string::npos; at = text.find(reference, at + plain.size())) {
      text.replace(at, reference.size(), plain);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("markup: random texts have no markup of their own, and are read back") {
  std::mt19937_64 random(72);
  for (int i = 0; i < cases(20'000); ++i) {
    const std::string text = random_text(random);
    const std::string escaped = picture::escaped(text);
    CHECK(escaped.find_first_of("<>\"'") == std::string::npos);
    const std::string read = unescaped(escaped);
    CHECK(picture::escaped(read) == escaped);  // nothing is left to replace
    const bool is_replaced = read.find("\xEF\xBF\xBD") != std::string::npos;
    if (!is_replaced) CHECK(read == text);
    for (const char c : read) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\t' || c == '\n' || c == '\r'));
  }
}
