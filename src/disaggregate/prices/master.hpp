// The master problem of column generation (Dantzig and Wolfe 1960): the best mixture of placements met so far, and what
// its resources are worth.
#pragma once

#include <vector>

namespace tangram::disaggregate {

struct MasterSolution {
  /// Of the mixture; infinite: none of the placements can be mixed so that memory suffices.
  double period = 0;
  std::vector<double> shares;  ///< by column; they add up to 1, or are all 0
  /// By row, none negative. Those of rows that the period bounds add up to 1, but for an infinite period, where only
  /// memory may be worth anything.
  std::vector<double> prices;
};

/// A linear program over shares y of columns a, each row bounded by the period P or by 1 of memory:
///     minimise P    with    sum of y a <= P for rows of time,    sum of y a <= 1 for rows of memory,    sum of y = 1
/// In z = y / P it is: maximise sum of z with sum of z a <= 1 and sum of z (a - 1) <= 0, where z = 0 is a vertex to
/// begin at.
class Master {
 public:
  /// Rows from `first_memory_row` on are of memory. Those before are in a unit of about one period: one of more than
  /// 1e6 counts as infinite.
  Master(int rows, int first_memory_row) : rows_(rows), first_memory_row_(first_memory_row) {}

  void add(std::vector<double> column) { columns_.push_back(std::move(column)); }
  /// Primal simplex with Dantzig's rule, on right sides that are moved apart by 1e-9. O(rows * columns) a pivot.
  [[nodiscard]] MasterSolution solve() const;

 private:
  int rows_;
  int first_memory_row_;
  std::vector<std::vector<double>> columns_;
};

}  // namespace tangram::disaggregate
