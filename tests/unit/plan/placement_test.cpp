// Where shapes go: whatever can be packed into members is, each part inside one, no GPU twice.
#include "placement.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "support/cases.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::plan;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

int draw(std::mt19937_64& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

struct Extent {
  int islands = 1;
  int members = 1;  // of an island
  int gpus = 1;     // of a member
};

// One class, its members in nodes of their own.
cluster::IslandLevel level_of(const Extent& extent) {
  cluster::IslandLevel level;
  cluster::IslandClass& island_class = level.classes.emplace_back();
  island_class.gpus_per_member = extent.gpus;
  island_class.members_per_island = extent.members;
  std::size_t node = 0;
  for (int id = 0; id < extent.islands; ++id) {
    island_class.islands.push_back(id);
    cluster::Island& island = level.islands.emplace_back();
    island.id = id;
    for (int m = 0; m < extent.members; ++m) island.members.push_back({node++, 0, 0, extent.gpus});
  }
  return level;
}

// What is cut off from islands: whole members together, others in pieces, some left out. In any order, so much fits.
std::vector<int> shapes_of(std::mt19937_64& random, const Extent& extent) {
  std::vector<int> shapes;
  for (int island = 0; island < extent.islands; ++island) {
    const int together = draw(random, 0, extent.members);
    if (together > 0) shapes.push_back(together * extent.gpus);
    for (int m = together; m < extent.members; ++m) {
      for (int left = extent.gpus; left > 0;) {
        const int piece = draw(random, 1, left);
        if (draw(random, 0, 19) > 0) shapes.push_back(piece);
        left -= piece;
      }
    }
  }
  std::ranges::shuffle(shapes, random);
  return shapes;
}

// Only what placing looks at.
compose::Composition composition_of(const std::vector<int>& shapes) {
  compose::Composition composition;
  for (const int gpus : shapes) composition.stages.emplace_back().parts.emplace_back().gpus = gpus;
  return composition;
}

}  // namespace

TEST_CASE("placement: what fits has a place, each shape in as few members and islands as it needs, no GPU twice") {
  std::mt19937_64 random(7);
  int full = 0;
  for (int i = 0; i < cases(2000); ++i) {
    const Extent extent{draw(random, 1, 3), draw(random, 1, 4), draw(random, 1, 9)};
    const std::vector<int> shapes = shapes_of(random, extent);
    INFO("case " << i);
    const auto placed = place(composition_of(shapes), level_of(extent));
    std::set<std::pair<std::size_t, int>> used;
    int wanted = 0;
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      const std::vector<GpuSlot>& slots = placed.front()[s].front().gpus;
      std::set<std::size_t> nodes;
      for (const GpuSlot& slot : slots) {
        REQUIRE(slot.island == slots.front().island);
        nodes.insert(slot.node);
        used.insert({slot.node, slot.gpu});
      }
      REQUIRE(std::ssize(slots) == shapes[s]);
      REQUIRE(std::ssize(nodes) == std::max(1, shapes[s] / extent.gpus));
      wanted += shapes[s];
    }
    REQUIRE(std::ssize(used) == wanted);
    full += wanted == extent.islands * extent.members * extent.gpus ? 1 : 0;
  }
  CHECK(full >= enough(500));
}
