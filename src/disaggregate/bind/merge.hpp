// Kernels that must not be apart become one.
#pragma once

#include <vector>

#include "tangram/disaggregate/problem.hpp"

namespace tangram::disaggregate {

/// Kernels first .. last of one phase.
struct KernelRange {
  int first = 0;
  int last = 0;
};

/// The problem with one kernel in place of each range, and of ranges that overlap: its time is the sum of theirs, and
/// what they send each other is not sent. Repeats that a range touches are none any more.
[[nodiscard]] Problem merged(const Problem& problem, const std::vector<KernelRange>& ranges);

}  // namespace tangram::disaggregate
