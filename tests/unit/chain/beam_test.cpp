// What a beam search keeps.
#include "labels/beam.hpp"

#include <vector>

#include "support/catch.hpp"

namespace tangram::chain {

TEST_CASE("the smallest numbers so far exclude those that are no smaller", "[beam]") {
  Smallest smallest;
  REQUIRE_FALSE(smallest.excludes(5, 2));
  REQUIRE_FALSE(smallest.excludes(9, 2));
  REQUIRE(smallest.excludes(9, 2));        // 5, 9: as large as the greater one
  REQUIRE_FALSE(smallest.excludes(7, 2));  // 5, 7
  REQUIRE(smallest.excludes(8, 2));
  REQUIRE_FALSE(smallest.excludes(1, 2));  // 1, 5
  REQUIRE(smallest.excludes(5, 2));
}

TEST_CASE("a beam keeps the labels of the smallest bounds, and of equal ones the earlier", "[beam]") {
  const std::vector<RankedNode> order{{3, 1}, {2, 2}, {3, 4}, {7, 5}, {1, 3}};
  // By bound, then node: 3, 2, 1, 4, 5. The first three are kept, out of nodes 0 to 5.
  REQUIRE(within_beam(order, 3, 6) == std::vector<std::uint8_t>{0, 1, 1, 1, 0, 0});
}

TEST_CASE("a beam that is wide enough excludes nothing", "[beam]") {
  REQUIRE(within_beam({{3, 1}, {2, 2}}, 2, 3).empty());
}

}  // namespace tangram::chain
