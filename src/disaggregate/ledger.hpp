// What a placement draws on each resource, kept up to date as kernels move.
#pragma once

#include <vector>

#include "resources.hpp"
#include "tangram/base/grid.hpp"

namespace tangram::disaggregate {

/// What a share of memory too much counts against the same share of the period, where the search has to weigh them.
inline constexpr double kOverdraftWeight = 2;

class Ledger {
 public:
  static constexpr int kNowhere = -1;

  /// All kernels are nowhere: they and their messages take nothing.
  explicit Ledger(const Resources& resources);
  Ledger(const Resources& resources, const Placement& placement);

  /// Puts a kernel on a class that runs it, or nowhere. O(classes * buffers of the kernel).
  void put(int kernel, int on);
  [[nodiscard]] const Placement& placement() const { return placement_; }
  /// By row; sums of differences, so off by rounding after many moves.
  [[nodiscard]] const std::vector<double>& rows() const { return rows_; }
  /// Takes back moves together with what rounding they brought.
  void restore(const std::vector<double>& rows) { rows_ = rows; }

  /// The largest row of time.
  [[nodiscard]] double period() const;
  /// By how much memory is overdrawn, as shares of what classes have, all together.
  [[nodiscard]] double overdraft() const;
  [[nodiscard]] double priced(const std::vector<double>& prices) const;

 private:
  void count_buffers(int kernel, double sign);
  void count_buffer(int buffer, double sign);
  void count_hop(const Hop& hop, double sign);

  const Resources* resources_;
  Placement placement_;
  std::vector<double> rows_;
  Grid<int> readers_;  // by buffer and class
};

}  // namespace tangram::disaggregate
