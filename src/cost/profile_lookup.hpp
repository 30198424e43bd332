// The point of a profile that is asked for, out of its rows: measured, or between neighbours by the formulas of
// profile.hpp. Goes in: units that differ in sequence length alone. Comes out: a time and the rows it is made of.
#pragma once

#include "tangram/cost/profile.hpp"

namespace tangram::cost {

struct Point {
  std::int64_t tokens = 0;
  Degrees degrees;
  std::int64_t samples = 1;
};

/// RowId::profile is left at 0. The answer depends on the rows it names alone: a profile of just these gives the same.
[[nodiscard]] std::optional<Measured> look_up(const Profile& profile, const std::vector<std::size_t>& units,
                                              const Point& point);

}  // namespace tangram::cost
