// The least that stages in front of a label add, by hand.
#include "bounds/end_floor.hpp"
#include "support/catch.hpp"

using namespace tangram;
using namespace tangram::chain;

namespace {

// Two blocks. One option runs a block with T = 10 and F = 4 (or 12 and 5), or both with T = 18 and F = 8.
Program two_blocks() {
  Program program;
  program.blocks = 2;
  program.inventory = {2};
  program.options = {{{{0, 1}}, 0}};
  program.keys = 1;
  program.signatures = 2;
  program.signature = {3, {-1, 0, 1, -1, -1, 0, -1, -1, -1}};
  program.frontiers = {2, {{{.T = 10, .F = 4}, {.T = 12, .F = 5}}, {{.T = 18, .F = 8}}}};
  program.cut_kind.assign(3, 0);
  program.prices = {{1, {{3, 3}}}};
  return program;
}

}  // namespace

TEST_CASE("end floor: the cheapest cover of what is left, hops included, less one for rounding") {
  const Program program = two_blocks();
  const EndCosts ends(program);
  // A stage of both blocks does not fit 12. Behind the last block there is a hop of 3, and one between two stages.
  const EndFloor backward = ends.backward_at(12, 0);
  CHECK(backward.rest(1, 0) == 6 + 3 - 1);
  CHECK(backward.rest(2, 0) == 6 + 3 + 6 - 1);
  CHECK(ends.backward_at(18, 0).rest(2, 0) == 10 - 1);
  CHECK(ends.forward_at(12, 0).rest(2, 0) == 4 + 3 + 4 - 1);
  CHECK(ends.forward_at(18, 0).rest(2, 0) == 8 - 1);
  CHECK(ends.forward_at(9, 0).rest(2, 0) == 0);  // nothing fits
}

TEST_CASE("end floor: relaxed frontiers say it themselves") {
  Program program = two_blocks();
  program.least_backward = {2, {5, 9}};
  program.least_forward = {2, {3, 7}};
  const EndCosts ends(program);
  CHECK(ends.backward_at(18, 0).rest(2, 0) == 9 - 1);
  CHECK(ends.forward_at(18, 0).rest(2, 0) == 7 - 1);
}

TEST_CASE("end floor: prices keep it from taking units that are not there") {
  // Three blocks, of which one stage runs one: 2 on the only unit of class 0, 10 on units of class 1, no hops. At price
  // 8 of class 0 both are alike, and the floor of three blocks is 30 - 8 = 22; without prices it is 6.
  Program program;
  program.blocks = 3;
  program.inventory = {1, 2};
  program.options = {{{{0, 1}}, 0}, {{{1, 1}}, 0}};
  program.keys = 1;
  program.signatures = 2;
  program.signature = {4, {-1, 0, 1, 1, -1, -1, 0, 1, -1, -1, -1, 0, -1, -1, -1, -1}};
  program.frontiers = {2, {{{.T = 9, .F = 2}}, {}, {{.T = 20, .F = 10}}, {}}};
  program.cut_kind.assign(4, 0);
  program.prices = {{1, {{0, 0}}}};
  const EndCosts ends(program);
  CHECK(ends.forward_at(20, 0).rest(3, 0) == 6 - 1);
  const EndFloor priced = ends.forward_at(20, 8);
  const auto floor = [&](int blocks, const std::vector<std::int64_t>& left) {
    return priced.rest(blocks, priced.refund(left));
  };
  CHECK(floor(3, {1, 2}) > 6);
  CHECK(floor(3, {1, 2}) <= 22);
  // What is left decides: two blocks without the unit of class 0 take 20, and with it 12.
  CHECK(floor(2, {0, 2}) > floor(2, {1, 2}));
  CHECK(floor(2, {0, 2}) <= 20);
  CHECK(floor(2, {1, 1}) <= 12);
}
