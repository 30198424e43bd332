#include "tangram/parallelizer/degrees.hpp"

#include <algorithm>
#include <set>

#include "support/catch.hpp"
#include "unit/parallelizer/fixtures.hpp"

using namespace tangram;
using namespace tangram::parallelizer;
using namespace tangram::parallelizer::fixtures;

namespace {

constexpr SliceTraits kDense{.experts = 0, .tokens = 4096};
constexpr SliceTraits kMoe{.experts = 8, .tokens = 4096};

/// (tp, cp, dp) of degrees without regard to the rest.
std::set<std::tuple<int, int, int>> layouts(const std::vector<cost::Degrees>& all) {
  std::set<std::tuple<int, int, int>> out;
  for (const auto& d : all) out.emplace(d.tp, d.cp, d.dp);
  return out;
}

using Layouts = std::set<std::tuple<int, int, int>>;

}  // namespace

TEST_CASE("degrees: one GPU has one way") {
  CHECK(enumerate_degrees(shape(1, 1), 4, kMoe, {}) == std::vector{cost::Degrees{}});
}

TEST_CASE("degrees: tp x cp x dp make up the GPUs, chunks stay long") {
  // Four GPUs, 4096 tokens: cp = 1, or 2 (chunks of 4096/4 = 1024 tokens); cp = 4 has chunks of 512. So
  // tp cp dp = 1 1 4, 1 2 2, 2 1 2, 2 2 1, 4 1 1; with tp > 1 each with and without sp: 2 + 3 x 2 = 8.
  const auto all = enumerate_degrees(shape(1, 4), 4, kDense, {});
  CHECK(layouts(all) == Layouts{{1, 1, 4}, {1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {4, 1, 1}});
  CHECK(all.size() == 8);
  CHECK(std::is_sorted(all.begin(), all.end()));
  for (const auto& d : all) {
    CHECK(d.ep == 1);
    CHECK(d.etp == 1);
  }
}

TEST_CASE("degrees: dp is no more than the samples") {
  // Two samples: dp = 4 is out of the list above.
  CHECK(layouts(enumerate_degrees(shape(1, 4), 2, kDense, {})) == Layouts{{1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {4, 1, 1}});
  // Three samples are 2 + 1 for dp = 2.
  CHECK(layouts(enumerate_degrees(shape(1, 4), 3, kDense, {})) == Layouts{{1, 2, 2}, {2, 1, 2}, {2, 2, 1}, {4, 1, 1}});
}

TEST_CASE("degrees: tensor parallelism stays inside a member") {
  // [2 GPUs]--[2 GPUs]: tp is 1 or 2; single GPUs on a network: tp is 1. Six GPUs in a node allow 3 and 6.
  CHECK(layouts(enumerate_degrees(shape(2, 2), 4, kDense, {})) == Layouts{{1, 1, 4}, {1, 2, 2}, {2, 1, 2}, {2, 2, 1}});
  CHECK(layouts(enumerate_degrees(shape(4, 1), 4, kDense, {})) == Layouts{{1, 1, 4}, {1, 2, 2}});
  model::Techniques no_cp;
  no_cp.cp = false;
  CHECK(layouts(enumerate_degrees(shape(1, 6), 6, kDense, no_cp)) ==
        Layouts{{1, 1, 6}, {2, 1, 3}, {3, 1, 2}, {6, 1, 1}});
}

TEST_CASE("degrees: experts spread over all ranks of the stage") {
  // tp = 2, dp = 2 on four GPUs, eight experts. etp = 1: ep divides gcd(8, 4) = 4: 1, 2, 4. etp = 2: ep divides
  // gcd(8, 4 / 2) = 2: 1, 2.
  std::set<std::pair<int, int>> found;
  for (const auto& d : enumerate_degrees(shape(1, 4), 4, kMoe, {})) {
    CHECK(d.gpus() % (d.ep * d.etp) == 0);
    if (d.tp == 2 && d.dp == 2) found.emplace(d.etp, d.ep);
  }
  CHECK(found == std::set<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}});
}

TEST_CASE("degrees: sharding groups are those wanted, or nodes where nothing is") {
  using Kind = model::ShardingGroup::Kind;
  const cost::Degrees all{.dp = 8};
  const auto groups = [&](const cost::Degrees& d, model::ShardingGroup wanted, const model::Techniques& allow = {}) {
    std::vector<int> found;
    for (const auto& own : with_sharding_groups({d}, shape(2, 4), kDense, allow, wanted)) {
      found.push_back(own.dp_replicate);
    }
    return found;
  };
  CHECK(groups(all, {}) == std::vector{1, 2});
  CHECK(groups(all, {Kind::kAll}) == std::vector{1});
  CHECK(groups(all, {Kind::kNode}) == std::vector{1, 2});
  CHECK(groups(all, {Kind::kRanks, 2}) == std::vector{1, 4});
  CHECK(groups(all, {Kind::kRanks, 3}) == std::vector{1});
  CHECK(groups(all, {Kind::kRanks, 8}) == std::vector{1});
  CHECK(groups(all, {Kind::kRanks, 1}) == std::vector{1});  // would shard nothing
  model::Techniques no_zero3;
  no_zero3.zero3 = false;
  CHECK(groups(all, {}, no_zero3) == std::vector{1});
  CHECK(groups({.tp = 4, .dp = 2}, {}) == std::vector{1});              // a node holds one rank of dp
  CHECK(groups({.tp = 2, .cp = 2, .dp = 2}, {}) == std::vector{1, 2});  // and shards over cp
  CHECK(groups({.cp = 8, .dp = 1}, {Kind::kNode}) == std::vector{1});
}

TEST_CASE("degrees: ZeRO shards over the groups that are wanted, and over no others") {
  using Kind = model::ShardingGroup::Kind;
  const auto stages = [&](const cost::Degrees& d, model::ShardingGroup wanted) {
    return zero_stages(d, shape(2, 4), kDense, {}, wanted);
  };
  const cost::Degrees all{.dp = 8};
  const cost::Degrees nodes{.dp = 8, .dp_replicate = 2};
  CHECK(stages(all, {}) == std::vector{0, 1, 2, 3});
  CHECK(stages(nodes, {}) == std::vector{3});
  CHECK(stages(all, {Kind::kAll}) == std::vector{0, 1, 2, 3});
  CHECK(stages(all, {Kind::kNode}) == std::vector{0});
  CHECK(stages(nodes, {Kind::kNode}) == std::vector{1, 2, 3});
  CHECK(stages(all, {Kind::kRanks, 3}) == std::vector{0});
  CHECK(stages(all, {Kind::kRanks, 16}) == std::vector{0, 1, 2, 3});
}

TEST_CASE("degrees: slices limit by their shortest samples and the experts all can share") {
  // MoE blocks with 8 and 12 experts share 4; a vision block has 576 tokens, too few for cp = 2.
  model::BlockType wide = moe_block();
  wide.feed_forward.experts = 12;
  model::BlockType vision = dense_block();
  vision.tokens = 576;
  const auto model = model_of({moe_block(), wide, vision}, {2, 0, 1});
  CHECK(traits_of(model, model::signature(model, 0, 3)) == SliceTraits{.experts = 4, .tokens = 576});
  CHECK(traits_of(model, model::signature(model, 1, 2)) == SliceTraits{.experts = 8, .tokens = 4096});
  CHECK(traits_of(model, model::signature(model, 0, 1)) == SliceTraits{.experts = 0, .tokens = 576});
}

TEST_CASE("degrees: forbidding a technique removes what uses it, and nothing else") {
  const auto all = enumerate_degrees(shape(2, 4), 8, kMoe, {});
  struct Case {
    bool model::Techniques::* technique;
    bool (*uses)(const cost::Degrees&);
  };
  const Case c = GENERATE(Case{&model::Techniques::tp, [](const cost::Degrees& d) { return d.tp > 1; }},
                          Case{&model::Techniques::sp, [](const cost::Degrees& d) { return d.sequence_parallel; }},
                          Case{&model::Techniques::cp, [](const cost::Degrees& d) { return d.cp > 1; }},
                          Case{&model::Techniques::dp, [](const cost::Degrees& d) { return d.dp > 1; }},
                          Case{&model::Techniques::ep, [](const cost::Degrees& d) { return d.ep > 1; }});
  model::Techniques allow;
  allow.*c.technique = false;
  auto expected = all;
  std::erase_if(expected, c.uses);
  CHECK(expected.size() < all.size());
  CHECK(enumerate_degrees(shape(2, 4), 8, kMoe, allow) == expected);
}
