// The least that is known of a kernel's time. Goes in: what an operator has to do and what a GPU can do. Comes out:
//
//     t = floor + max(flops / (compute peak), bytes / (memory bandwidth))
//
// with `floor` the time of a kernel that does next to nothing, and `compute`, `memory` the shares of the datasheet's
// rates that kernels of this operator reach (Williams et al., "Roofline", CACM 2009, with a floor).
#pragma once

#include <optional>

#include "tangram/cluster/gpu.hpp"
#include "tangram/kernels/operators.hpp"

namespace tangram::kernels {

struct Roofline {
  double floor = 0;    ///< seconds
  double compute = 1;  ///< share of the dense peak, (0, 1]
  double memory = 1;   ///< share of the memory bandwidth; above 1 where operands stay in a cache

  bool operator==(const Roofline&) const = default;
};

/// Seconds; none where the GPU has no matrix units for `dtype` and there are products to compute.
[[nodiscard]] std::optional<double> roofline_seconds(const Roofline& roofline, const Work& work,
                                                     const cluster::GpuType& gpu, DType dtype);

}  // namespace tangram::kernels
