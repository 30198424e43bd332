// Links between shapes of classes.
#include "tangram/compose/links.hpp"

#include <algorithm>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

double gigabytes(const cluster::Link& link) { return link.bandwidth.value() / 1e9; }

}  // namespace

TEST_CASE("stages in the only member of a class talk over its inner link") {
  // 100 GB/s per GPU, times the GPUs of the smaller side.
  const cluster::IslandLevel level = level_of({class_of(8, 1, 1)});
  CHECK(gigabytes(link_between(level, {0, 4}, {0, 4})) == Approx(400));
  CHECK(gigabytes(link_between(level, {0, 4}, {0, 1})) == Approx(100));
  CHECK(gigabytes(link_between(level, {0, 2}, {0, 4})) == Approx(200));
  CHECK(link_between(level, {0, 4}, {0, 1}).latency == 1_us);
}

TEST_CASE("stages of a class with several members may sit in different ones") {
  SECTION("of one island") {
    const cluster::IslandLevel level = level_of({class_of(8, 4, 1)});
    CHECK(gigabytes(link_between(level, {0, 8}, {0, 16})) == Approx(20));
    CHECK(link_between(level, {0, 8}, {0, 16}).latency == 5_us);
    // 2 of 8 GPUs have a quarter of the network cards.
    CHECK(gigabytes(link_between(level, {0, 8}, {0, 2})) == Approx(5));
    CHECK(gigabytes(link_between(level, {0, 4}, {0, 2})) == Approx(5));
  }
  SECTION("of several islands: the slowest counts") {
    const cluster::IslandLevel level = level_of({class_of(8, 2, 2)});
    CHECK(gigabytes(link_between(level, {0, 8}, {0, 8})) == Approx(10));
    CHECK(link_between(level, {0, 8}, {0, 8}).latency == 7_us);
  }
}

TEST_CASE("parts of a member may come to sit in the same one, and its inner link may be the slower one") {
  // 20 GB/s between members; each of 8 GPUs reaches another at 4 GB/s.
  cluster::IslandLevel level = level_of({class_of(8, 4, 1)});
  level.classes[0].inside_member = {4_GBps, 9_us};
  CHECK(gigabytes(link_between(level, {0, 2}, {0, 2})) == Approx(5));  // a quarter of the cards; inside 2 x 4
  CHECK(gigabytes(link_between(level, {0, 1}, {0, 4})) == Approx(2.5));
  CHECK(gigabytes(link_between(level, {0, 4}, {0, 4})) == Approx(10));
  level.classes[0].inside_member = {1_GBps, 9_us};
  CHECK(gigabytes(link_between(level, {0, 2}, {0, 2})) == Approx(2));
  CHECK(link_between(level, {0, 2}, {0, 2}).latency == 9_us);
  CHECK(gigabytes(link_between(level, {0, 8}, {0, 2})) == Approx(5));  // never in one member
}

TEST_CASE("stages of two classes share their members' network cards") {
  // 5 GB/s between whole members; 1 of 4 and 4 of 8 GPUs: the smaller share, a quarter.
  const cluster::IslandLevel level = level_of({class_of(4, 1, 1), class_of(8, 1, 1)});
  CHECK(gigabytes(link_between(level, {0, 4}, {1, 8})) == Approx(5));
  CHECK(gigabytes(link_between(level, {0, 1}, {1, 4})) == Approx(1.25));
  CHECK(gigabytes(link_between(level, {0, 4}, {1, 4})) == Approx(2.5));
  CHECK(link_between(level, {0, 1}, {1, 4}).latency == 9_us);
}

TEST_CASE("where a member's own network limits a link, a part of the other has its share of its own") {
  // Members of 8 GPUs with 20 GB/s and of 4 with 6 GB/s: 6 between them, as the slower has no more.
  cluster::IslandLevel level = level_of({class_of(8, 1, 1), class_of(4, 1, 1)});
  level.classes[1].between_members = {6_GBps, 5_us};
  for (cluster::Link& link : level.links) link.bandwidth = 6_GBps;
  CHECK(gigabytes(link_between(level, {0, 8}, {1, 4})) == Approx(6));
  CHECK(gigabytes(link_between(level, {0, 4}, {1, 4})) == Approx(6));    // half of 20 is 10
  CHECK(gigabytes(link_between(level, {0, 2}, {1, 4})) == Approx(5));    // a quarter of 20
  CHECK(gigabytes(link_between(level, {0, 4}, {1, 2})) == Approx(3));    // half of 6
  CHECK(gigabytes(link_between(level, {0, 1}, {1, 1})) == Approx(1.5));  // an eighth of 20 is 2.5, a quarter of 6 less
}

TEST_CASE("replicas in one member reduce their gradients over its inner link") {
  const cluster::IslandLevel level = level_of({class_of(8, 2, 1)});
  const std::vector<int> one{0};
  const std::vector<Placement> stage{{.island_class = 0, .gpus = 2}};
  CHECK(gigabytes(sync_group_of(level, 4, stage).link) == Approx(5));  // a quarter of a member's network
  CHECK(gigabytes(sync_group_of(level, 4, stage, one).link) == Approx(200));
  CHECK(sync_group_of(level, 4, stage, one).holders == 4);
}

TEST_CASE("a shape spans whole members, or part of one") {
  const cluster::IslandLevel level = level_of({class_of(4, 3, 1)});
  CHECK(members_of(level, {0, 1}) == 1);
  CHECK(members_of(level, {0, 4}) == 1);
  CHECK(members_of(level, {0, 12}) == 3);
}

TEST_CASE("stages that are known to share a member talk over its inner link") {
  const cluster::IslandLevel level = level_of({class_of(8, 2, 1)});
  CHECK(gigabytes(link_between(level, {0, 2, 3}, {0, 4, 3})) == Approx(200));
  // In two of them: a quarter of a member's network, however slow the inner link.
  CHECK(gigabytes(link_between(level, {0, 2, 3}, {0, 4, 4})) == Approx(5));
}

TEST_CASE("a price before the other end is known takes the slowest link") {
  // Class 0 reaches itself at 10 GB/s and 7 us, class 1 at 5 GB/s, class 2 at 50 GB/s but 30 us.
  cluster::IslandLevel level = level_of({class_of(4, 1, 2), class_of(4, 1, 1), class_of(4, 1, 1)});
  level.links[2] = level.links[6] = {50_GBps, 30_us};
  const Reach all{{0, 1, 2}, false};
  const cluster::Link slowest = slowest_link(level, {0, 4}, all);
  CHECK(gigabytes(slowest) == Approx(5));
  CHECK(slowest.latency == 30_us);
  // Half a member has half of each: 5 and 2.5.
  CHECK(gigabytes(slowest_link(level, {0, 2}, all)) == Approx(2.5));
  // Within classes 0 and 2 nothing is slower than class 0 itself; in one member two GPUs have their own links.
  CHECK(gigabytes(slowest_link(level, {0, 4}, {{0, 2}, false})) == Approx(10));
  CHECK(gigabytes(slowest_link(level, {0, 2}, {{0}, true})) == Approx(200));
}

TEST_CASE("pipelines within reach of faster links are a space of their own") {
  // Classes 0 and 1 are 50 GB/s apart, any others 5 GB/s; class 0 has two members.
  cluster::IslandLevel level =
      level_of({class_of(4, 1, 2), class_of(4, 1, 1), class_of(4, 1, 1), class_of(4, 1, 1), class_of(4, 1, 1)});
  level.links[1] = level.links[5] = {50_GBps, 1_us};
  const std::vector<Reach> reaches = reaches_of(level);
  CHECK(reaches.front() == Reach{{0, 1, 2, 3, 4}, false});
  const auto has = [&](const Reach& reach) { return std::ranges::find(reaches, reach) != reaches.end(); };
  CHECK(has({{0, 1}, false}));
  CHECK(has({{2}, false}));
  CHECK(has({{0}, true}));
  CHECK_FALSE(has({{0, 2}, false}));
  CHECK_FALSE(has({{1}, true}));
}

TEST_CASE("a pipeline of few classes counts on the links between its own") {
  // Two classes 50 GB/s apart, a third one 5 GB/s from both; class 0 has two members.
  cluster::IslandLevel level = level_of({class_of(4, 1, 2), class_of(4, 1, 1), class_of(4, 1, 1)});
  level.links[1] = level.links[3] = {50_GBps, 1_us};
  const std::vector<Reach> reaches = reaches_of(level);
  CHECK(reaches.size() == 7 + 1);  // all sets, and one member of class 0
  const std::vector<Placement> near{{0, 4}, {1, 4}};
  const std::vector<Placement> far{{0, 4}, {2, 4}};
  const std::vector<Placement> inside{{0, 2}, {0, 2}};
  CHECK(narrowest_reach(level, near, false) == Reach{{0, 1}, false});
  CHECK(narrowest_reach(level, far, false) == Reach{{0, 1, 2}, false});
  // As fast by bandwidth, but class 1 is far away.
  level.links[1] = level.links[3] = {50_GBps, 30_us};
  CHECK(narrowest_reach(level, far, false) == Reach{{0, 2}, false});
  CHECK(narrowest_reach(level, inside, true) == Reach{{0}, true});
  CHECK(narrowest_reach(level, inside, false).in_one_member == false);
}
