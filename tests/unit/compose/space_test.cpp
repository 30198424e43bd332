// Which shapes, replicas and microbatch sizes are searched, and that counting them is enough to place them.
#include "space.hpp"

#include <algorithm>
#include <functional>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

using Shapes = std::vector<int>;
using Sizes = std::vector<std::int64_t>;

// Places shapes, largest first: whole islands, then whole members of one island, then parts of a member. Small fleets
// only: an island or member is taken where the shape fits and the least is left.
bool can_place(const cluster::IslandClass& c, std::vector<int> shapes) {
  const int islands = static_cast<int>(c.islands.size());
  const int island_gpus = c.members_per_island * c.gpus_per_member;
  std::sort(shapes.begin(), shapes.end(), std::greater<>());
  std::vector<int> members(static_cast<std::size_t>(islands), c.members_per_island);  // untouched ones
  std::vector<int> pieces;                                                            // GPUs left of broken members
  const auto take_members = [&](int count) {
    std::vector<int>::iterator best = members.end();
    for (auto i = members.begin(); i != members.end(); ++i) {
      if (*i >= count && (best == members.end() || *i < *best)) best = i;
    }
    if (best == members.end()) return false;
    *best -= count;
    return true;
  };
  for (const int gpus : shapes) {
    if (gpus > island_gpus) {
      int left = gpus / island_gpus;
      for (int& free : members) {
        if (left > 0 && free == c.members_per_island) {
          free = 0;
          --left;
        }
      }
      if (left > 0) return false;
    } else if (gpus >= c.gpus_per_member) {
      if (!take_members(gpus / c.gpus_per_member)) return false;
    } else {
      auto piece = std::find_if(pieces.begin(), pieces.end(), [&](int free) { return free >= gpus; });
      if (piece == pieces.end()) {
        if (!take_members(1)) return false;
        pieces.push_back(c.gpus_per_member);
        piece = pieces.end() - 1;
      }
      *piece -= gpus;
    }
  }
  return true;
}

// Every multiset of `shapes` that R replicas may use, R times over.
int count_unplaceable(const cluster::IslandClass& c, const ClassShare& share, int replicas) {
  int failures = 0;
  std::vector<int> chosen;
  const std::function<void(std::size_t, int)> choose = [&](std::size_t from, int units) {
    if (from == share.shapes.size()) {
      std::vector<int> all;
      for (int r = 0; r < replicas; ++r) all.insert(all.end(), chosen.begin(), chosen.end());
      if (!can_place(c, all)) ++failures;
      return;
    }
    const int size = share.shapes[from] / share.unit;
    choose(from + 1, units);
    if (size > units) return;
    chosen.push_back(share.shapes[from]);
    choose(from, units - size);
    chosen.pop_back();
  };
  choose(0, share.units);
  return failures;
}

}  // namespace

TEST_CASE("shapes are powers of two of GPUs, members and islands, and the whole class") {
  SECTION("one node of 8") { CHECK(shapes_of(class_of(8, 1, 1)) == Shapes{1, 2, 4, 8}); }
  SECTION("one GPU") { CHECK(shapes_of(class_of(1, 1, 1)) == Shapes{1}); }
  // 4 does not divide 6; 3 is no power of two.
  SECTION("a node of 6") { CHECK(shapes_of(class_of(6, 1, 1)) == Shapes{1, 2, 6}); }
  SECTION("a node of 3") { CHECK(shapes_of(class_of(3, 1, 1)) == Shapes{1, 3}); }
  // One island: 1, 2, 4 members and all 5.
  SECTION("an island of 5 nodes of 2") { CHECK(shapes_of(class_of(2, 5, 1)) == Shapes{1, 2, 4, 8, 10}); }
  // Several islands of 6 members: 4 members would leave 2 of every island; 2 islands are 12, all 3 are 18.
  SECTION("3 islands of 6 members") { CHECK(shapes_of(class_of(1, 6, 3)) == Shapes{1, 2, 6, 12, 18}); }
  SECTION("2 islands of 2 nodes of 4") { CHECK(shapes_of(class_of(4, 2, 2)) == Shapes{1, 2, 4, 8, 16}); }
}

TEST_CASE("a replica gets its share of every class") {
  // 8 + 6 GPUs. R = 2: 4 and 3; the shape of 6 and that of 8 are too large. R = 8: 1 and 0.
  const cluster::IslandLevel level = level_of({class_of(8, 1, 1), class_of(3, 1, 2)});
  const std::vector<ClassShare> one = share_classes(level, 1);
  CHECK(one[0].shapes == Shapes{1, 2, 4, 8});
  CHECK(one[0].unit == 1);
  CHECK(one[0].units == 8);
  CHECK(one[1].shapes == Shapes{1, 3, 6});
  CHECK(one[1].units == 6);
  const std::vector<ClassShare> two = share_classes(level, 2);
  CHECK(two[0].shapes == Shapes{1, 2, 4});
  CHECK(two[0].units == 4);
  CHECK(two[1].shapes == Shapes{1, 3});
  CHECK(two[1].units == 3);
  const std::vector<ClassShare> eight = share_classes(level, 8);
  CHECK(eight[0].units == 1);
  CHECK(eight[1].shapes.empty());
  CHECK(eight[1].units == 0);
}

TEST_CASE("large fleets are counted in larger units") {
  // 4,096 GPUs in 512 nodes of 8, more than 2,048: at most 32 units, so that the smallest shape is 4,096 / 32 = 128.
  const std::vector<ClassShare> shares = share_classes(level_of({class_of(8, 512, 1)}), 1);
  CHECK(shares[0].unit == 128);
  CHECK(shares[0].units == 32);
  CHECK(shares[0].shapes == Shapes{128, 256, 512, 1024, 2048, 4096});
  // 2,048 GPUs are counted one by one.
  CHECK(share_classes(level_of({class_of(8, 256, 1)}), 1)[0].units == 2048);
  // 3 islands of 700 nodes with 2 GPUs, 4,200 in all. 4,200 / 32 = 131.25: 140 members would do, but 128, 256 and 512
  // members do not divide 700, so that islands come next: 1,400, 2,800 and 4,200.
  const std::vector<ClassShare> odd = share_classes(level_of({class_of(2, 700, 3)}), 1);
  CHECK(odd[0].shapes == Shapes{1400, 2800, 4200});
  CHECK(odd[0].units == 3);
}

TEST_CASE("counting units is enough to place shapes") {
  const std::vector<cluster::IslandClass> classes{class_of(8, 1, 1), class_of(6, 1, 2), class_of(4, 3, 1),
                                                  class_of(2, 2, 3), class_of(3, 1, 3), class_of(2, 5, 1),
                                                  class_of(1, 6, 2), class_of(4, 2, 2)};
  for (const cluster::IslandClass& c : classes) {
    for (const int replicas : {1, 2, 4}) {
      const ClassShare share = share_classes(level_of({c}), replicas)[0];
      INFO(c.gpus_per_member << " x " << c.members_per_island << " x " << c.islands.size() << ", R " << replicas);
      CHECK(count_unplaceable(c, share, replicas) == 0);
    }
  }
}

TEST_CASE("replicas are powers of two that divide the batch and get GPUs") {
  const cluster::IslandLevel level = level_of({class_of(4, 1, 1), class_of(8, 1, 1)});
  model::Job job;
  job.global_batch = 48;  // 16 * 3; no class has 16 GPUs
  CHECK(replica_counts(job, level, 1 << 20) == Shapes{1, 2, 4, 8});
  CHECK(replica_counts(job, level, 4) == Shapes{1, 2, 4});
  CHECK(replica_counts(job, level, 1) == Shapes{1});
  job.global_batch = 12;  // 4 * 3
  CHECK(replica_counts(job, level, 1 << 20) == Shapes{1, 2, 4});
  job.global_batch = 7;
  CHECK(replica_counts(job, level, 1 << 20) == Shapes{1});
  job.global_batch = 48;
  job.allow.replicas = false;
  CHECK(replica_counts(job, level, 1 << 20) == Shapes{1});
}

TEST_CASE("microbatches are powers of two, three times those, and the whole batch") {
  model::Job job;
  job.global_batch = 24;
  CHECK(microbatch_sizes(job, 1) == Sizes{1, 2, 3, 4, 6, 8, 12, 24});
  CHECK(microbatch_sizes(job, 4) == Sizes{1, 2, 3, 6});
  job.global_batch = 20;  // of 20 only 5 and 10 are neither, but 20 is all of it
  CHECK(microbatch_sizes(job, 1) == Sizes{1, 2, 4, 20});
  CHECK(microbatch_sizes(job, 4) == Sizes{1, 5});
  job.global_batch = 7;
  CHECK(microbatch_sizes(job, 1) == Sizes{1, 7});
  SECTION("or what the user says, where it divides") {
    job.global_batch = 20;
    job.microbatch = 5;
    CHECK(microbatch_sizes(job, 1) == Sizes{5});
    CHECK(microbatch_sizes(job, 4) == Sizes{5});
    job.microbatch = 4;
    CHECK(microbatch_sizes(job, 2).empty());
  }
}

TEST_CASE("settings are of every level and replica count, sizes of about 64 microbatches first") {
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(2, 1, 1), class_of(1, 1, 1)}), level_of({class_of(3, 1, 1)})};
  model::Job job;
  job.global_batch = 256;
  const std::vector<SizeSettings> sizes = settings_by_size(job, hierarchy, 2);
  Sizes order;
  for (const SizeSettings& size : sizes) order.push_back(size.microbatch);
  CHECK(order == Sizes{4, 2, 8, 1, 16, 32, 64, 128, 256});  // 64 microbatches, 128 and 32, 256 and 16 ...
  const auto settings_of = [&](std::size_t at) {
    std::vector<std::vector<std::int64_t>> listed;
    for (const Setting& s : sizes[at].settings) listed.push_back({s.level, s.replicas, s.microbatch, s.microbatches});
    return listed;
  };
  CHECK(settings_of(0) ==
        std::vector<std::vector<std::int64_t>>{{0, 1, 4, 64}, {0, 2, 4, 32}, {1, 1, 4, 64}, {1, 2, 4, 32}});
  CHECK(settings_of(8) == std::vector<std::vector<std::int64_t>>{{0, 1, 256, 1}, {1, 1, 256, 1}});  // R = 2: 128 each
}

TEST_CASE("the space says what it is made of") {
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(2, 1, 1)}), level_of({class_of(2, 1, 1)})};
  hierarchy.levels[0].name = "fine";
  hierarchy.levels[1].name = "coarse";
  model::Job job;
  job.global_batch = 4;
  const Space space = name_space(job, hierarchy, {});
  CHECK(space.levels == std::vector<std::string>{"fine", "coarse"});
  CHECK(space.replicas == Shapes{1, 2});
  CHECK(space.microbatches == Sizes{1, 2, 4});
  REQUIRE(space.shapes.size() == 2);
  CHECK(space.shapes[0].second == Shapes{1, 2});
  CHECK(space.rules ==
        std::vector<std::string>{"mixed stages: two classes, the 24 largest pairs of shapes, samples in eighths"});
  SearchOptions options;
  options.max_parts = 1;
  CHECK(name_space(job, hierarchy, options).rules.empty());
  options = {};
  options.max_replicas = 1;
  CHECK(name_space(job, hierarchy, options).replicas == Shapes{1});
}

TEST_CASE("larger fleets mix fewer pairs of shapes") {
  model::Job job;
  const auto pairs = [&](int gpus) {
    cluster::IslandHierarchy hierarchy;
    hierarchy.levels = {level_of({class_of(gpus, 1, 1)})};
    return mixed_pairs(job, hierarchy, {});
  };
  CHECK(pairs(32) == 24);
  CHECK(pairs(33) == 12);
  CHECK(pairs(128) == 12);
  CHECK(pairs(129) == 4);
  job.allow.mixed_stages = false;
  CHECK(pairs(32) == 0);
}
