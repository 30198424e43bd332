// Allocations of islands to groups of pipelines.
#include "allocations.hpp"

#include <algorithm>
#include <set>

#include "support/catch.hpp"
#include "unit/compose/fixtures.hpp"

using namespace tangram::ensemble;
using namespace tangram::compose::fixtures;

namespace {

const std::vector<double> kAlike(8, 1.0);

bool contains(const std::vector<Allocation>& allocations, const Allocation& allocation) {
  return std::find(allocations.begin(), allocations.end(), allocation) != allocations.end();
}

}  // namespace

TEST_CASE("whole classes go to different groups in every way") {
  // Bell(3) = 5 partitions, one of which is a single group; classes of one island cannot be cut.
  const auto level = level_of({class_of(8, 1, 1), class_of(8, 1, 1), class_of(8, 1, 1)});
  const std::vector<Allocation> allocations = allocations_of(level, kAlike, 8);
  CHECK(contains(allocations, {{1, 0, 0}, {0, 1, 1}}));
  CHECK(contains(allocations, {{1, 1, 0}, {0, 0, 1}}));
  CHECK(contains(allocations, {{1, 0, 1}, {0, 1, 0}}));
  CHECK(contains(allocations, {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}));
  CHECK(std::set<Allocation>(allocations.begin(), allocations.end()).size() == 4);
}

TEST_CASE("as many groups as are allowed, and no more") {
  const auto level = level_of({class_of(8, 1, 6), class_of(8, 1, 1), class_of(8, 1, 1)});
  for (const Allocation& allocation : allocations_of(level, kAlike, 2)) CHECK(allocation.size() == 2);
  CHECK(allocations_of(level, kAlike, 1).empty());
}

TEST_CASE("what remains of a class goes to the weakest groups") {
  // 7 of the first class: 3 and 3, the seventh to the first group; then the only one of the second to the other.
  const auto level = level_of({class_of(8, 1, 7), class_of(8, 1, 1)});
  CHECK(contains(allocations_of(level, {2, 1}, 2), {{4, 0}, {3, 1}}));
  // A class of power 5 outweighs it: nothing has been given out yet when the first class is allocated.
  CHECK(contains(allocations_of(level, {2, 5}, 3), {{3, 0}, {2, 1}, {2, 0}}));
}

TEST_CASE("the only island of a class is allocated member by member") {
  CHECK(pieces_of(class_of(8, 3, 1)) == 3);
  CHECK(pieces_of(class_of(8, 3, 2)) == 2);
  CHECK(contains(allocations_of(level_of({class_of(8, 3, 1)}), kAlike, 2), {{2}, {1}}));
}

TEST_CASE("halves that two aligned pipelines already are, are left out") {
  CHECK_FALSE(contains(allocations_of(level_of({class_of(8, 1, 4)}), kAlike, 2), {{2}, {2}}));
  // With one island each, both are rid of the link between islands.
  CHECK(contains(allocations_of(level_of({class_of(8, 2, 2)}), kAlike, 2), {{1}, {1}}));
  // Three pipelines are not in the space.
  CHECK(contains(allocations_of(level_of({class_of(8, 1, 6)}), kAlike, 3), {{2}, {2}, {2}}));
}

TEST_CASE("many classes: each alone, each against the others, and 2 to 6 groups of about equal power") {
  std::vector<tangram::cluster::IslandClass> classes;
  for (int k = 0; k < 6; ++k) classes.push_back(class_of(8, 1, 1));
  CHECK(allocations_of(level_of(classes), kAlike, 8).size() == 12);
}

TEST_CASE("neighbours move half of the islands of a class, or one, and leave no group empty") {
  const std::vector<Allocation> allocations = neighbours_of({{4, 0}, {0, 1}});
  CHECK(contains(allocations, {{2, 0}, {2, 1}}));
  CHECK(contains(allocations, {{3, 0}, {1, 1}}));
  CHECK(allocations.size() == 2);  // the second group has nothing else than its one island
}
