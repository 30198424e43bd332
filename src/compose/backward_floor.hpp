// How much backward time the stages in front of a label add at least. Goes in: a program and a period. Comes out: for
// every number of blocks left, the least sum of T - F over all ways to cover them with stages that fit the period,
// whatever units those take.
//
// Why it matters: stages in front of a label make its A + sum (F + c) part of the end, and its Lat + sum (T + 2c)
// another. The second is no less than the first as long as A <= Lat + sum (T - F). So A counts only where it is larger
// than Lat plus this floor: below it, gradient synchronisation hides behind the backward passes still to come.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/compose/program.hpp"

namespace tangram::compose {

class BackwardFloor {
 public:
  explicit BackwardFloor(const Program& program);

  /// [blocks left]; what no stages that fit the period can cover counts as 0. O(blocks^2).
  [[nodiscard]] std::vector<std::int64_t> at(std::int64_t period) const;

 private:
  const Program& program_;
  std::vector<std::int64_t> fastest_;   // [signature] least T of any plan
  std::vector<std::int64_t> backward_;  // [signature] least T - F of any plan
};

}  // namespace tangram::compose
