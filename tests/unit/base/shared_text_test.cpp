#include "tangram/base/shared_text.hpp"

#include "support/catch.hpp"

using tangram::SharedText;

TEST_CASE("a shared text is the same text, whether its copies share it or not") {
  const SharedText text = std::string("NVIDIA H100 datasheet, 2023");
  const SharedText copy = text;
  CHECK(copy == text);
  CHECK(copy.view().data() == text.view().data());
  CHECK(SharedText("NVIDIA H100 datasheet, 2023") == text);
  CHECK_FALSE(SharedText("another") == text);
  CHECK(text.str() == "NVIDIA H100 datasheet, 2023");
}

TEST_CASE("a shared text without a text is empty") {
  CHECK(SharedText().empty());
  CHECK(SharedText("") == SharedText());
  CHECK(SharedText().view().empty());
  CHECK_FALSE(SharedText("x") == SharedText());
}
