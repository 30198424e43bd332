// Numbers of units as digits of a key of two words.
#include "tangram/chain/radices.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace tangram::chain;

TEST_CASE("digits lie next to each other") {
  std::mt19937 random(7);
  for (int i = 0; i < 1'000; ++i) {
    std::vector<int> units(std::uniform_int_distribution<std::size_t>(1, 20)(random));
    for (int& most : units) most = std::uniform_int_distribution<int>(0, 40)(random);
    const auto radices = radices_of(units);
    REQUIRE(radices);
    std::uint64_t words[2] = {0, 0};
    std::vector<int> used;
    for (std::size_t k = 0; k < units.size(); ++k) {
      used.push_back(std::uniform_int_distribution<int>(0, units[k])(random));
      words[(*radices)[k].high ? 1 : 0] += (*radices)[k].scale * static_cast<std::uint64_t>(used.back());
    }
    for (std::size_t k = 0; k < units.size(); ++k) {
      const Radix& r = (*radices)[k];
      REQUIRE(words[r.high ? 1 : 0] / r.scale % r.radix == static_cast<std::uint64_t>(used[k]));
    }
  }
}

TEST_CASE("two words hold so many classes and no more") {
  CHECK(radices_of(std::vector<int>(kMostClasses, 1)));
  CHECK_FALSE(radices_of(std::vector<int>(kMostClasses + 1, 1)));
  CHECK(radices_of(std::vector<int>(1'000, 0)));  // of which there are no units
}
