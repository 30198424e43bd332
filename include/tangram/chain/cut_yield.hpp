// What each exact cut of the search removed: numbers alone, so that the solver and those who report can share them.
#pragma once

#include <cstdint>

namespace tangram::chain {

/// What each exact cut removed. Groups are all ways to put one slice on one option in front of a state.
struct CutYield {
  std::int64_t slices_by_capacity =
      0;  ///< of options of a program: in no plan of interest, by time or units (relaxed frontiers)
  std::int64_t windows_by_bound = 0;     ///< the relaxation of a range of periods is no better than the best plan
  std::int64_t groups_by_units = 0;      ///< not enough units left
  std::int64_t groups_by_spending = 0;   ///< over the spending limit
  std::int64_t groups_by_remainder = 0;  ///< the units left after them cannot hold the blocks left
  std::int64_t groups_by_packing = 0;  ///< in front of a label: whole stages on the units left after them take too long
  std::int64_t labels_by_time = 0;     ///< A + max o reaches the cutoff
  std::int64_t labels_by_bound = 0;    ///< completion bound reaches the cutoff
  std::int64_t labels_by_remainder = 0;  ///< the units left cannot hold the blocks left
  std::int64_t labels_by_dominance = 0;  ///< another label is no worse in anything

  CutYield& operator+=(const CutYield& other);
};

}  // namespace tangram::chain
