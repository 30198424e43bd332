// A shape in a table of measured times. Goes in: the shape, and a roofline that says how times grow. Comes out: how
// many times the roofline the GPU takes there, from the row of that shape or from its neighbours.
//
// What is interpolated is log(measured / roofline), linearly in the logarithm of each axis. The roofline carries the
// growth, the rows what a real library makes of it; beyond the ends of an axis the last ratio holds. Held out, this is
// nowhere worse than interpolating log(measured) (GEMM and attention on six GPUs: by 0 to 1.2 percentage points better
// in the mean), and it extrapolates.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tangram/kernels/operator_table.hpp"

namespace tangram::kernels {

/// A set of axes of a table: bit i is OperatorTable::axes[i].
using AxisSet = std::uint32_t;

struct TableRatio {
  double log_ratio = 0;
  AxisSet interpolated = 0;  ///< axes between whose rows the shape lies
  bool beyond = false;       ///< outside of the rows of an axis

  [[nodiscard]] bool measured() const { return interpolated == 0 && !beyond; }
};

class TableLookup {
 public:
  /// Both outlive the lookup. The table has axes.
  TableLookup(const OperatorTable& table, int gpu, const cluster::GpuType& device);

  /// None where no row is of the shape's family, or none was measured on the GPU. On axes of `held_out` rows of the
  /// shape's own number do not count.
  [[nodiscard]] std::optional<TableRatio> find(std::span<const std::int64_t> shape, AxisSet held_out = 0) const;

  [[nodiscard]] std::optional<double> roofline(std::span<const std::int64_t> shape) const;

 private:
  struct Rows {
    int first = 0;
    int last = 0;
    [[nodiscard]] bool empty() const { return first >= last; }
  };
  struct Query {
    std::span<const std::int64_t> shape;
    AxisSet held_out = 0;
  };

  /// Rows of `rows`, alike before `column`, that have `value` there.
  [[nodiscard]] Rows having(Rows rows, int column, std::int64_t value) const;
  [[nodiscard]] std::optional<double> ratio(Rows rows, std::size_t axis, const Query& query, TableRatio& found) const;
  [[nodiscard]] std::optional<double> ratio_of_row(int row) const;

  const OperatorTable& table_;
  int gpu_;
  const cluster::GpuType& device_;
  const Roofline& roofline_;
};

}  // namespace tangram::kernels
