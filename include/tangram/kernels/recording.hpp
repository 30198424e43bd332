// Recordings of runs. Goes in: files as profilers write them. Comes out: a kernel graph of one phase, with the times of
// one GPU, and as much of what kernels touch as the files tell.
//
//   Kineto trace (torch.profiler, JSON)       kernels, copies and fills in the order of the GPU, times, streams and
//                                             events; the operator that launched each, by its path and number
//   execution trace (ExecutionTraceObserver)  with a Kineto trace: the tensors of each operator, by storage and offset,
//                                             joined by rf_id
//   CUDA graph (cudaGraphDebugDotPrint, DOT)  order, and the addresses of copies and fills; no times
//   Nsight Systems (cuda_gpu_trace, CSV)      order, times, streams
//   Nsight Compute (--csv)                    order, times
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/cluster/gpu.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

struct RecordingFile {
  std::string name;  ///< for errors and for the graph's sources
  std::string text;
};

enum class RecordingKind : std::uint8_t { kKineto, kExecutionTrace, kCudaGraph, kNsys, kNcu };
[[nodiscard]] std::string_view to_string(RecordingKind kind);  ///< "kineto", "execution_trace", "cuda_graph", ...

/// By content; fails where it is none of them.
[[nodiscard]] Expected<RecordingKind> kind_of(const RecordingFile& file);

struct Recording {
  KernelGraph graph;
  std::vector<std::string> notes;  ///< what was joined and what was left out, for people
};

/// One file, or a Kineto trace and the execution trace of the same run. `gpu`: the catalogue name of what ran it;
/// empty: as the files name it, among `devices`.
[[nodiscard]] Expected<Recording> import_recording(const std::vector<RecordingFile>& files, const std::string& gpu,
                                                   std::span<const cluster::GpuType> devices);

}  // namespace tangram::kernels
