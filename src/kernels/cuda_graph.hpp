// A CUDA graph as cudaGraphDebugDotPrint dumps it (flags Verbose or KernelNodeParams, MemcpyNodeParams,
// MemsetNodeParams). Goes in: DOT. Comes out: its nodes in an order that keeps its edges, with the addresses of copies
// and fills.
#pragma once

#include "tangram/kernels/recording.hpp"

namespace tangram::kernels {

/// Without a GPU and without times: such a dump has neither.
[[nodiscard]] Expected<Recording> read_cuda_graph(const RecordingFile& file);

}  // namespace tangram::kernels
