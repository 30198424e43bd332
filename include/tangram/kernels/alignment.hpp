// Recordings of one step on several GPUs. Goes in: a graph, and a recording of the same step on another GPU, or anew on
// one that the graph knows. Comes out: the graph with that GPU's times and kernel names, too.
//
// Two GPUs run different kernels at a third of the positions of an LLM (FluidGPU's census), and not always equally
// many: kernels are matched by the operators that launch them, never by their names. Where an operator has other
// numbers of kernels on both, they become one, with the sum of the times. Recordings without operators (nsys, ncu, CUDA
// graphs) are matched by order, and only on a GPU that the graph knows, where names must be equal.
#pragma once

#include "tangram/base/expected.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

/// Fails at the first position that differs, and names it. Both have one GPU at least, `recording` just one, and phases
/// of the same number.
[[nodiscard]] Expected<KernelGraph> aligned(const KernelGraph& graph, const KernelGraph& recording);

}  // namespace tangram::kernels
