// Which shapes, replicas and microbatch sizes are searched, and that counting them is enough to place them.
#include "space.hpp"

#include <algorithm>
#include <functional>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "support/placing.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

using Shapes = std::vector<int>;
using Sizes = std::vector<std::int64_t>;

bool is_within(const std::vector<PlacementLimit>& limits, const std::vector<int>& shapes) {
  return std::ranges::all_of(limits, [&](const PlacementLimit& limit) {
    std::int64_t sum = 0;
    for (const int gpus : shapes) sum += limit.weight_of(gpus);
    return sum <= limit.most;
  });
}

// Multisets of `shapes` whose units a replica has, and that can be placed R times although limits say no, or the other
// way about.
int count_misjudged(const cluster::IslandClass& c, const ClassShare& share, int replicas) {
  int failures = 0;
  std::vector<int> chosen;
  const std::function<void(std::size_t, int)> choose = [&](std::size_t from, int units) {
    if (from == share.shapes.size()) {
      std::vector<int> all;
      for (int r = 0; r < replicas; ++r) all.insert(all.end(), chosen.begin(), chosen.end());
      if (test::can_place(c, all) != is_within(share.limits, chosen)) ++failures;
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

TEST_CASE("small fleets are offered every size") {
  const auto shapes = [](int member, int members, int islands) {
    return shapes_of(class_of(member, members, islands), member * members * islands);
  };
  CHECK(shapes(1, 1, 1) == Shapes{1});
  CHECK(shapes(8, 1, 1) == Shapes{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(shapes(7, 1, 2) == Shapes{1, 2, 3, 4, 5, 6, 7, 14});
  CHECK(shapes(2, 5, 1) == Shapes{1, 2, 4, 6, 8, 10});
  CHECK(shapes(1, 6, 3) == Shapes{1, 2, 3, 4, 5, 6, 12, 18});
  CHECK(shapes(4, 2, 2) == Shapes{1, 2, 3, 4, 8, 16});
  // Several members of more than 8 GPUs: sizes that divide each other, so that limits on slots suffice.
  CHECK(shapes(12, 2, 1) == Shapes{1, 2, 4, 8, 12, 24});
  CHECK(shapes(12, 1, 1).size() == 12);
}

TEST_CASE("larger fleets are offered powers of two and divisors of a member, three times powers of two of members") {
  CHECK(shapes_of(class_of(8, 13, 1), 104) == Shapes{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 104});
  CHECK(shapes_of(class_of(7, 1, 1), 104) == Shapes{1, 2, 4, 7});
  CHECK(shapes_of(class_of(6, 2, 1), 104) == Shapes{1, 2, 3, 4, 6, 12});
  CHECK(shapes_of(class_of(8, 13, 1), 1000) == Shapes{1, 2, 4, 8, 16, 32, 64, 104});
  CHECK(shapes_of(class_of(8, 1, 13), 5000) == Shapes{1, 2, 4, 8, 16, 32, 64, 104});
}

TEST_CASE("what a part of a fleet is offered, the fleet is offered") {
  for (int gpus = 1; gpus < 8; ++gpus) {
    const Shapes less = shapes_of(class_of(gpus, 1, 1), gpus);
    const Shapes more = shapes_of(class_of(gpus + 1, 1, 1), gpus + 1);
    INFO(gpus << " GPUs and one more");
    CHECK(std::ranges::includes(more, less));
  }
  for (int members = 1; members < 8; ++members) {
    const Shapes less = shapes_of(class_of(6, members, 1), 6 * members);
    const Shapes more = shapes_of(class_of(6, members + 1, 1), 6 * members + 6);
    INFO(members << " members and one more");
    CHECK(std::ranges::includes(more, less));
  }
}

TEST_CASE("a replica gets its share of every class") {
  // 8 + 6 GPUs. R = 2: 4 and 3; larger shapes do not fit. R = 8: 1 and 0.
  const cluster::IslandLevel level = level_of({class_of(8, 1, 1), class_of(3, 1, 2)});
  const std::vector<ClassShare> one = share_classes(level, 1);
  CHECK(one[0].shapes == Shapes{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(one[0].unit == 1);
  CHECK(one[0].units == 8);
  CHECK(one[0].limits.empty());
  CHECK(one[0].in_one_member);
  CHECK(one[1].shapes == Shapes{1, 2, 3, 6});
  CHECK(one[1].units == 6);
  REQUIRE(one[1].limits.size() == 1);  // 2 and 3 GPUs take a member each
  CHECK(one[1].limits[0].weight_of(2) == 1);
  CHECK(one[1].limits[0].weight_of(6) == 2);
  CHECK(one[1].limits[0].most == 2);
  CHECK(one[1].runs == Shapes{1, 2, 3});
  CHECK_FALSE(one[1].in_one_member);
  const std::vector<ClassShare> two = share_classes(level, 2);
  CHECK(two[0].shapes == Shapes{1, 2, 3, 4});
  CHECK(two[0].units == 4);
  CHECK(two[1].shapes == Shapes{1, 2, 3});
  CHECK(two[1].units == 3);
  CHECK(two[1].in_one_member);
  const std::vector<ClassShare> eight = share_classes(level, 8);
  CHECK(eight[0].units == 1);
  CHECK(eight[1].shapes.empty());
  CHECK(eight[1].units == 0);
}

TEST_CASE("a pipeline within reach of some classes has no units of others") {
  const cluster::IslandLevel level = level_of({class_of(8, 1, 2), class_of(4, 1, 1)});
  const std::vector<ClassShare> first = share_classes(level, 1, {{0}, false});
  CHECK(first[0].units == 16);
  CHECK(first[1].units == 0);
  const std::vector<ClassShare> member = share_classes(level, 1, {{0}, true});
  CHECK(member[0].units == 8);
  CHECK(member[0].shapes.back() == 8);
  CHECK(member[0].in_one_member);
  CHECK(member[0].limits.empty());
  // Four replicas on two members: half a member each; a quarter where all of them share one.
  CHECK(share_classes(level, 4, {{0}, true})[0].units == 4);
  CHECK(share_classes(level, 4, {{0}, true, {0}})[0].units == 2);
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

TEST_CASE("units and limits tell whether shapes can be placed") {
  const std::vector<cluster::IslandClass> classes{
      class_of(8, 1, 1), class_of(6, 1, 2), class_of(4, 3, 1), class_of(2, 2, 3), class_of(3, 1, 3), class_of(2, 5, 1),
      class_of(1, 6, 2), class_of(4, 2, 2), class_of(7, 1, 2), class_of(5, 3, 1), class_of(2, 3, 2)};
  for (const cluster::IslandClass& c : classes) {
    for (const int replicas : {1, 2, 3, 4}) {
      const ClassShare share = share_classes(level_of({c}), replicas)[0];
      INFO(c.gpus_per_member << " x " << c.members_per_island << " x " << c.islands.size() << ", R " << replicas);
      CHECK(count_misjudged(c, share, replicas) == 0);
    }
  }
}

TEST_CASE("replicas are powers of two that get GPUs, and odd numbers that leave none over") {
  const cluster::IslandLevel level = level_of({class_of(4, 1, 1), class_of(8, 1, 1)});
  model::Job job;
  job.global_batch = 48;  // no class has 16 GPUs
  CHECK(replica_counts(job, level, 1 << 20, {}) == Shapes{1, 2, 4, 8});
  CHECK(replica_counts(job, level, 4, {}) == Shapes{1, 2, 4});
  CHECK(replica_counts(job, level, 1, {}) == Shapes{1});
  job.global_batch = 7;
  CHECK(replica_counts(job, level, 1 << 20, {}) == Shapes{1, 2, 4});
  CHECK(replica_counts(job, level, 1 << 20, {.equal = true}) == Shapes{1});
  job.global_batch = 12;
  CHECK(replica_counts(job, level, 1 << 20, {.equal = true}) == Shapes{1, 2, 4});
  CHECK(replica_counts(job, level, 1 << 20, {.odd = {1, 3}}) == Shapes{1, 2, 4, 8});
  const cluster::IslandLevel sixes = level_of({class_of(6, 2, 1), class_of(6, 1, 1)});
  CHECK(replica_counts(job, sixes, 1 << 20, {.odd = {1, 3}}) == Shapes{1, 2, 3, 4, 6, 8});
  job.allow.replicas = false;
  CHECK(replica_counts(job, level, 1 << 20, {}) == Shapes{1});
}

TEST_CASE("microbatches are powers of two, three times those that divide, and the whole batch") {
  model::Job job;
  job.global_batch = 24;
  CHECK(microbatch_sizes(job, 1, {}) == Sizes{1, 2, 3, 4, 6, 8, 12, 24});
  CHECK(microbatch_sizes(job, 4, {}) == Sizes{1, 2, 3, 6});
  job.global_batch = 20;  // 8 takes 3 microbatches, for which 7 is enough; 16 is near 20, which divides
  CHECK(microbatch_sizes(job, 1, {}) == Sizes{1, 2, 4, 7, 20});
  CHECK(microbatch_sizes(job, 4, {}) == Sizes{1, 2, 5});
  CHECK(microbatch_sizes(job, 1, {.equal = true}) == Sizes{1, 2, 4, 20});
  CHECK(microbatch_sizes(job, 4, {.equal = true}) == Sizes{1, 5});
  CHECK(microbatch_sizes(job, 3, {.equal = true}).empty());
  job.global_batch = 127;
  CHECK(microbatch_sizes(job, 1, {}) == Sizes{1, 2, 4, 8, 16, 32, 64, 127});
  CHECK(microbatch_sizes(job, 2, {}) == Sizes{1, 2, 4, 8, 16, 32, 64});  // of 64 and 63 samples
  CHECK(microbatch_sizes(job, 1, {.equal = true}) == Sizes{1, 127});
  job.global_batch = 256;  // for 6, 12 or 24 GPUs
  CHECK(microbatch_sizes(job, 1, {.odd = {1, 3}}) == Sizes{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 43, 64, 86, 128, 256});
  SECTION("or what the user says") {
    job.global_batch = 20;
    job.microbatch = 5;
    CHECK(microbatch_sizes(job, 1, {}) == Sizes{5});
    CHECK(microbatch_sizes(job, 4, {}) == Sizes{5});
    job.microbatch = 4;
    CHECK(microbatch_sizes(job, 2, {}) == Sizes{4});
    CHECK(microbatch_sizes(job, 2, {.equal = true}).empty());
    CHECK(microbatch_sizes(job, 10, {}).empty());
  }
}

TEST_CASE("no microbatch can be smaller without there being one more") {
  model::Job job;
  for (job.global_batch = 1; job.global_batch < 300; ++job.global_batch) {
    for (const int replicas : {1, 2, 3, 8}) {
      const std::int64_t most = (job.global_batch + replicas - 1) / replicas;
      for (const std::int64_t b : microbatch_sizes(job, replicas, {.odd = {1, 3, 5}})) {
        const std::int64_t microbatches = (most + b - 1) / b;
        CHECK(((b - 1) * microbatches < most && most <= b * microbatches));
      }
    }
  }
}

TEST_CASE("odd numbers of GPUs of a node or a class are looked at where they are small") {
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(6, 1, 1), class_of(8, 5, 1)}), level_of({class_of(13, 1, 1)}),
                      level_of({class_of(8, 7, 1)})};
  SearchOptions options;
  CHECK(splitting_of(hierarchy, options).odd == Shapes{1, 3, 7});
  CHECK_FALSE(splitting_of(hierarchy, options).equal);
  options.constraints.demands.equal_samples = true;
  CHECK(splitting_of(hierarchy, options).equal);
}

TEST_CASE("a search that leaves out GPU types has the space of a fleet without them") {
  // 16 + 8 GPUs are no small fleet, the 8 alone are: runs inside members, odd numbers of replicas and samples.
  cluster::IslandClass left_out = class_of(4, 4, 1);
  cluster::IslandClass wanted = class_of(4, 1, 2);
  left_out.device.name = "left out";
  wanted.device.name = "wanted";
  const cluster::IslandLevel both = level_of({left_out, wanted});
  const cluster::IslandLevel alone = level_of({wanted});
  const GpuTypes types{"wanted"};
  CHECK(gpu_count(both, types) == 8);
  CHECK(share_classes(both, 1)[1].runs.empty());
  for (const int replicas : {1, 2, 3}) {
    const std::vector<ClassShare> shares = share_classes(both, replicas, types);
    const ClassShare expected = share_classes(alone, replicas).front();
    INFO(replicas << " replicas");
    CHECK(shares[0].units == 0);
    CHECK(shares[0].shapes.empty());
    CHECK(shares[1].shapes == expected.shapes);
    CHECK(shares[1].runs == expected.runs);
    CHECK(shares[1].units == expected.units);
  }
  CHECK(share_classes(both, 1, types)[1].runs == Shapes{1, 2, 3, 4});
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {both};
  SearchOptions options;
  options.constraints.gpu_types = types;
  const Splitting splitting = splitting_of(hierarchy, options);
  CHECK(splitting.any);
  CHECK(splitting.odd == Shapes{1, 3, 5, 7});
  // Up to 8 replicas, although there are 24 GPUs.
  model::Job job;
  job.global_batch = 64;
  CHECK(replica_counts(job, both, 1 << 20, splitting) == Shapes{1, 2, 3, 4, 5, 6, 7, 8});
  // Samples are split as finely for a part of a fleet as beside the other types.
  hierarchy.levels = {level_of({left_out, class_of(2, 1, 1)})};
  hierarchy.levels.front().classes.back().device.name = "wanted";
  CHECK(splitting_of(hierarchy, options).odd == Shapes{1, 3, 5, 7});
  const Space space = name_space(job, hierarchy, options);
  CHECK(space.shapes.size() == 1);
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
  REQUIRE(space.rules.size() == 2);
  CHECK(space.rules[0] ==
        "context parallelism in chunks of fewer than 1024 tokens: where every replica of a stage works "
        "on one sample");
  CHECK(space.rules[1] == "mixed stages: two classes, any pair of shapes, samples in eighths");
  SearchOptions options;
  options.max_parts = 1;
  job.allow.cp = false;
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
