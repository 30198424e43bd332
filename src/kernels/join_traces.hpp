// A Kineto trace and, where there is one, the execution trace of the same run. Goes in: both, as plain values. Comes
// out: kernels with their operators, times, and the tensors that they touch.
#pragma once

#include "execution_trace.hpp"
#include "kineto_trace.hpp"
#include "tangram/kernels/recording.hpp"

namespace tangram::kernels {

/// `execution` may be null. Kernels of the one device that the trace is of; the graph has no sources and no GPU yet.
[[nodiscard]] Recording join_traces(const KinetoTrace& kineto, const ExecutionTrace* execution);

}  // namespace tangram::kernels
