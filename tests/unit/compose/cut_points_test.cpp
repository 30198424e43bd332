// Where models may be cut: how far apart cuts lie, and what segments have in common.
#include "cut_points.hpp"

#include <array>
#include <vector>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

using Blocks = std::vector<int>;

Blocks places(const CutPoints& cuts) {
  Blocks blocks;
  for (int cut = 0; cut <= cuts.segments(); ++cut) blocks.push_back(cuts.block(cut));
  return blocks;
}

// Of blocks of these types.
model::Model model_of_types(const std::vector<int>& types) {
  model::Model model = model_of(static_cast<int>(types.size()));
  model.types.assign(3, small_block());
  model.blocks = types;
  return model;
}

}  // namespace

TEST_CASE("a model of few blocks may be cut between any two") {
  const model::Model model = model_of(256);
  CHECK(cut_spacing(model, {}) == 1);
  CHECK(cut_spacing(model, {.blocks = 100, .segments = 256}) == 1);
  CHECK(CutPoints(model, 1) == CutPoints(model));
  CHECK(CutPoints(model).are_everywhere());
  CHECK(CutPoints(model_of(3)).block(2) == 2);
}

TEST_CASE("a deeper one has at most as many segments as wanted, and the last may be shorter") {
  // 1,000 blocks: 143 segments of 7, 125 of 8.
  CHECK(cut_spacing(model_of(1000), {}) == 8);
  CHECK(CutPoints(model_of(1000), 8).segments() == 125);
  // 257: 129 segments of 2.
  CHECK(cut_spacing(model_of(257), {}) == 3);
  const model::Model model = model_of(11);
  CHECK(cut_spacing(model, {.blocks = 10, .segments = 3}) == 4);
  const CutPoints cuts(model, 4);
  CHECK(places(cuts) == Blocks{0, 4, 8, 11});
  CHECK(cuts.longest_segment() == 4);
  CHECK_FALSE(cuts.are_everywhere());
}

TEST_CASE("a place between cuts counts as the next one") {
  const CutPoints cuts(model_of(11), 4);
  CHECK(cuts.cut_at(0) == 0);
  CHECK(cuts.cut_at(4) == 1);
  CHECK(cuts.cut_at(5) == 2);
  CHECK(cuts.cut_at(11) == 3);
}

TEST_CASE("segments hold whole periods of blocks that repeat") {
  const model::Model alternating = model_of_types({0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(places(CutPoints(alternating, 3)) == Blocks{0, 4, 8, 10});
  const model::Model thirds = model_of_types({0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1});
  CHECK(places(CutPoints(thirds, 3)) == Blocks{0, 3, 6, 9, 12});
  CHECK(places(CutPoints(thirds, 4)) == Blocks{0, 6, 12});
}

TEST_CASE("where blocks stop repeating a segment ends") {
  const model::Model model = model_of_types({0, 0, 0, 0, 0, 1, 2, 1, 2, 1, 2});
  CHECK(places(CutPoints(model, 2)) == Blocks{0, 2, 4, 5, 7, 9, 11});
}

TEST_CASE("where an encoder ends a segment ends") {
  model::Model model = model_of_types({0, 0, 0, 0, 0, 0, 0, 0});
  model.types[1].attention.causal = true;
  model.types[0].attention.causal = false;
  for (std::size_t block = 3; block < 8; ++block) model.blocks[block] = 1;
  // Three blocks attend both ways; without the end of the encoder a segment of 8 would hold both kinds.
  CHECK(places(CutPoints(model, 8)) == Blocks{0, 3, 8});
}

TEST_CASE("cuts near some are those, the ends, and all within reach") {
  const std::array cuts{5, 11, 12};
  CHECK(places(CutPoints::near(model_of(12), cuts, 0)) == Blocks{0, 5, 11, 12});
  CHECK(places(CutPoints::near(model_of(12), cuts, 2)) == Blocks{0, 3, 4, 5, 6, 7, 9, 10, 11, 12});
}

TEST_CASE("the rule says how far cuts lie apart") {
  CHECK(cut_rule(CutPoints(model_of(1000), 8)) ==
        "stages end at every 8th block, and where blocks stop repeating or a module ends: 125 segments of 1000 blocks; "
        "those of the fastest plan are then moved by single blocks");
  CHECK(cut_rule(CutPoints(model_of(66), 22)).starts_with("stages end at every 22nd block"));
  CHECK(cut_rule(CutPoints(model_of(66), 11)).starts_with("stages end at every 11th block"));
}
