// Repeats written out. Goes in: a graph whose equal layers are listed once. Comes out: the graph with every pass of
// every repeat, each on its own copies of buffers that have them.
#pragma once

#include <cstdint>
#include <limits>

#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

/// Kernels and buffers of pass p get "[p]" behind their ids and positions, layers count on. Of repeats with more passes
/// than `most_passes` the first ones. Needs a graph of which check() reports no error. O(kernels written out).
[[nodiscard]] KernelGraph unrolled(const KernelGraph& graph,
                                   std::int64_t most_passes = std::numeric_limits<std::int64_t>::max());

}  // namespace tangram::kernels
