// How far kernel times can be trusted. Goes in: a table of measured times. Comes out: errors of rows that were not
// looked at when they were predicted, and the `inference` part of the table, which follows from the rows alone: no
// number of it is fitted to one row.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tangram/kernels/operator_table.hpp"

namespace tangram::kernels {

struct HeldOut {
  Operator op = Operator::kGemm;
  std::string gpu;     ///< empty: a GPU without rows, by what the others have in common
  std::string method;  ///< "roofline", "beyond", or the axes that are interpolated: "m", "n, k"
  int rows = 0;
  double mean = 0;  ///< of |predicted - measured| / measured
  double median = 0;
  double p90 = 0;
};

/// Roofline: fitted to every other row, tried on those between. An axis: each row from its neighbours on it, all rows
/// of its own number left out. Beyond: rows at the end of an axis, from their one neighbour. Two axes: rows of both
/// numbers left out together, which is what a shape between the grid's lines asks for. The table has an inference part.
[[nodiscard]] std::vector<HeldOut> held_out(const OperatorTable& table, std::span<const cluster::GpuType> devices);

/// The table with its inference part found anew. Fails where `devices` lack one of its GPUs.
[[nodiscard]] Expected<OperatorTable> inferred(OperatorTable table, std::span<const cluster::GpuType> devices);

}  // namespace tangram::kernels
