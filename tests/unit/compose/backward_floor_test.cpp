// The least backward time that stages in front of a label still add, by hand.
#include "backward_floor.hpp"

#include "support/catch.hpp"

using namespace tangram::compose;

namespace {

/// Two equal blocks on one option. One block: T 10 of which F 4, or T 12 of which F 5. Both at once: T 18, F 8.
Program two_blocks() {
  Program program;
  program.blocks = 2;
  program.signatures = 2;
  program.options.resize(1);
  program.signature = {-1, 0, 1, -1, -1, 0, -1, -1, -1};  // [first * 3 + last]
  program.frontiers = {{{.T = 10, .F = 4}, {.T = 12, .F = 5}}, {{.T = 18, .F = 8}}};
  return program;
}

}  // namespace

TEST_CASE("backward floor: the cheapest cover of what is left") {
  const Program program = two_blocks();
  const BackwardFloor floor(program);
  CHECK(floor.at(12) == std::vector<std::int64_t>{0, 6, 12});  // a stage of both blocks does not fit
  CHECK(floor.at(18) == std::vector<std::int64_t>{0, 6, 10});
  CHECK(floor.at(9) == std::vector<std::int64_t>{0, 0, 0});  // nothing fits
}

TEST_CASE("backward floor: outlines say it themselves") {
  Program program = two_blocks();
  program.least_backward = {5, 9};
  CHECK(BackwardFloor(program).at(18) == std::vector<std::int64_t>{0, 5, 9});
}
