// Which blocks the positions of a measured pipeline hold.
#include "cut.hpp"

#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::accuracy;

namespace {

using Blocks = std::vector<double>;

Cut cut_of(const Measurement& m, int layers, std::int64_t positions) {
  auto cut = find_cut(m, layers, positions);
  if (!cut) FAIL(cut.error().front().message);
  return std::move(*cut);
}

Blocks even(int layers, std::int64_t positions) {
  const Cut cut = cut_of({}, layers, positions);
  CHECK(cut.recomputed.empty());
  CHECK(cut.selective.empty());
  return cut.blocks;
}

std::string refusal(const Measurement& m, int layers, std::int64_t positions) {
  const auto cut = find_cut(m, layers, positions);
  REQUIRE_FALSE(cut);
  return cut.error().front().message;
}

}  // namespace

TEST_CASE("layers are cut evenly") {
  CHECK(even(12, 1) == Blocks{12});
  CHECK(even(12, 4) == Blocks{3, 3, 3, 3});
  CHECK(even(7, 3) == Blocks{2, 3, 2});  // 9 with both ends: 3 each
  CHECK(even(2, 4) == Blocks{0, 1, 1, 0});
  CHECK(even(11, 4) == Blocks{3, 3, 3, 2});
  CHECK(even(5, 1) == Blocks{5});
}

TEST_CASE("embedding and head count as layers where layers alone do not divide") {
  // 126 layers in 16 positions of Llama 3.1: 128 / 16 = 8.
  Blocks expected(16, 8);
  expected.front() = expected.back() = 7;
  CHECK(even(126, 16) == expected);
}

TEST_CASE("more positions than layers are refused") {
  CHECK(refusal({}, 3, 4) == "3 layers cannot fill 4 pipeline positions");
  CHECK(refusal({}, 3, 1'000'000'000'000) == "3 layers cannot fill 1000000000000 pipeline positions");
}

TEST_CASE("printed layers, with and without the ends as layers of their own") {
  Measurement m;
  m.layers_per_stage = {16, 18};
  CHECK(cut_of(m, 34, 2).blocks == Blocks{16, 18});
  CHECK(cut_of(m, 32, 2).blocks == Blocks{15, 17});
  CHECK(refusal(m, 33, 2) == "layers per stage do not add up to 33 layers");
  CHECK(refusal(m, 34, 4) == "2 parts of the model are printed for 4 pipeline positions");
  m.layers_per_stage = {26};
  CHECK(cut_of(m, 24, 1).blocks == Blocks{24});
  m.layers_per_stage = {0, 26};
  CHECK(refusal(m, 24, 2) == "layers per stage do not add up to 24 layers");
}

TEST_CASE("partitions into units: two before the blocks, four after") {
  Measurement m;
  m.partition = {0, 30};
  CHECK(cut_of(m, 24, 1).blocks == Blocks{24});
  m.partition = {0, 9, 15, 21, 30};
  CHECK(cut_of(m, 24, 4).blocks == Blocks{7, 6, 6, 5});
  m.partition = {0, 1, 15, 27, 30};  // ends without a block
  CHECK(cut_of(m, 24, 4).blocks == Blocks{0, 13, 11, 0});
  m.partition = {0, 15, 25};
  CHECK(refusal(m, 24, 2) == "the partition does not cover 24 layers");
  m.partition = {0, 20, 10, 30};
  CHECK(refusal(m, 24, 3) == "the partition does not cover 24 layers");
  m.partition = {3, 30};
  CHECK(refusal(m, 24, 1) == "the partition does not cover 24 layers");
  m.partition = {0};
  CHECK(refusal(m, 24, 1) == "the partition does not cover 24 layers");
}

TEST_CASE("operators cut inside blocks") {
  // 43 operators, 4 layers: 10 a layer, one embedding, two of the head. 20 - 1 = 1.9 blocks; 23 - 2 = 2.1.
  Measurement m;
  m.stage_operators = {20, 23};
  const Cut cut = cut_of(m, 4, 2);
  CHECK(cut.blocks[0] == Approx(1.9));
  CHECK(cut.blocks[1] == Approx(2.1));
  CHECK(cut.recomputed == Blocks{0, 0});
  CHECK(cut.selective == Blocks{0, 0});
}

TEST_CASE("recomputed operators are those of the core first, then whole blocks") {
  Measurement m;
  m.stage_operators = {21, 22};
  // Stage 0 has 2 blocks. 4 operators are the core of one; 14 the cores of both (8) and 6 more, the rest of one block;
  // 20 are all.
  const auto first = [&](int again) {
    m.stage_recomputed_operators = {again};
    const Cut cut = cut_of(m, 4, 2);
    CHECK(cut.recomputed[1] == 0);
    return std::pair(cut.recomputed[0], cut.selective[0]);
  };
  CHECK(first(0) == std::pair(0.0, 0.0));
  CHECK(first(4) == std::pair(0.0, 1.0));
  CHECK(first(14) == std::pair(1.0, 1.0));
  CHECK(first(20) == std::pair(2.0, 0.0));
  CHECK(first(99) == std::pair(2.0, 0.0));
}

TEST_CASE("operators without any outside the blocks make whole blocks") {
  Measurement m;
  m.stage_operators = {20, 20};
  CHECK(cut_of(m, 4, 2).blocks == Blocks{2, 2});
}

TEST_CASE("operators that make no blocks are refused") {
  Measurement m;
  m.stage_operators = {8, 8};
  CHECK(refusal(m, 4, 2) == "16 operators are too few for 4 layers");
  m.stage_operators = {0, 43};
  CHECK(refusal(m, 4, 2) == "a stage has fewer operators than the embedding or the head");
  m.stage_operators = {42, 1};
  CHECK(refusal(m, 4, 2) == "a stage has fewer operators than the embedding or the head");
  m.stage_operators = {20, 23};
  CHECK(refusal(m, 4, 3) == "2 parts of the model are printed for 3 pipeline positions");
}
