// Tables of NVIDIA's profilers. Goes in: CSV of Nsight Systems (nsys stats --report cuda_gpu_trace --format csv) or of
// Nsight Compute (ncu --csv, one row a metric, or --page raw, one row a kernel). Comes out: kernels in their order.
#pragma once

#include "tangram/kernels/recording.hpp"

namespace tangram::kernels {

/// The graph's GPU is as the file names it, and empty where it does not.
[[nodiscard]] Expected<Recording> read_nsys(const RecordingFile& file);
[[nodiscard]] Expected<Recording> read_ncu(const RecordingFile& file);

}  // namespace tangram::kernels
