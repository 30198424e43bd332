#include "number_scanner.hpp"

#include <string>

#include "support/catch.hpp"

using namespace tangram::accuracy;

TEST_CASE("numbers are found with what stands around them") {
  const auto numbers = numbers_in("8x200 Gb/s, 12.5 GiB/s");
  REQUIRE(numbers.size() == 3);
  CHECK(numbers[0].value == 8);
  CHECK(numbers[0].before.empty());
  CHECK(numbers[0].after == "x200 Gb/s, 12.5 GiB/s");
  CHECK(numbers[1].value == 200);
  CHECK(numbers[1].before == "8x");
  CHECK(numbers[1].in("Gb/s"));
  CHECK_FALSE(numbers[1].in("GiB/s"));
  CHECK(numbers[1].whole);
  CHECK(numbers[2].value == 12.5);
  CHECK(numbers[2].in("GiB/s"));
  CHECK_FALSE(numbers[2].whole);
}

TEST_CASE("a point belongs to a number only between digits") {
  const auto numbers = numbers_in("p3.8xlarge has 4. .5");
  REQUIRE(numbers.size() == 3);
  CHECK(numbers[0].value == 3.8);
  CHECK(numbers[1].value == 4);
  CHECK(numbers[1].whole);
  CHECK(numbers[1].after == ". .5");
  CHECK(numbers[2].value == 5);
}

TEST_CASE("a unit follows at once or after one space") {
  CHECK(numbers_in("18506MB").front().in("MB"));
  CHECK(numbers_in("18506 MB").front().in("MB"));
  CHECK_FALSE(numbers_in("18506  MB").front().in("MB"));
  CHECK_FALSE(numbers_in("18506").front().in("MB"));
}

TEST_CASE("texts without a quantity have no numbers") {
  CHECK(numbers_in("").empty());
  CHECK(numbers_in("Selene: NVSwitch, InfiniBand").empty());
  CHECK(numbers_in("1234567890123").empty());  // thirteen digits
  CHECK(numbers_in("123456789012").size() == 1);
  CHECK(numbers_in(std::string(300'000, '9')).empty());
  CHECK(numbers_in("1." + std::string(1000, '3')).front().value == Approx(4.0 / 3));
}
