// Rooflines from measured rows. Goes in: rows of a table and a GPU. Comes out: the three numbers that are nearest to
// all of the rows, in the mean of |log(modelled / measured)|.
#pragma once

#include <optional>
#include <vector>

#include "tangram/kernels/operator_table.hpp"

namespace tangram::kernels {

/// What a row says of a GPU.
struct TimedWork {
  Work work;
  double seconds = 0;
};

/// Of rows that were measured on the GPU.
[[nodiscard]] std::vector<TimedWork> timed_work(const OperatorTable& table, int gpu);

/// Relative errors of a roofline, one for each row: |modelled - measured| / measured.
[[nodiscard]] std::vector<double> errors_of(const Roofline& roofline, const std::vector<TimedWork>& rows,
                                            const cluster::GpuType& gpu, DType dtype);

/// Of 600 evenly spaced rows at most, by coordinate search over factors: deterministic. With `memory` that share is
/// given. `rows` is not empty.
[[nodiscard]] Roofline fitted(const std::vector<TimedWork>& rows, const cluster::GpuType& gpu, DType dtype,
                              std::optional<double> memory = std::nullopt);

}  // namespace tangram::kernels
