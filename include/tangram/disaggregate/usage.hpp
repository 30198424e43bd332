// What a placement takes. Goes in: a problem and the class of each kernel. Comes out: busy seconds of GPUs and links,
// the latency of a pass, bytes on each GPU, and the period that follows.
#pragma once

#include <vector>

#include "tangram/base/grid.hpp"
#include "tangram/disaggregate/problem.hpp"

namespace tangram::disaggregate {

struct Usage {
  std::vector<double> gpu;      ///< seconds a round, of one GPU of each class
  Grid<double> link;            ///< seconds a round, of one lane
  std::vector<double> latency;  ///< of one pass of each phase, alone
  std::vector<double> memory;   ///< bytes on one GPU of each class
  /// Seconds from one round to the next that no order of work undercuts: the largest of `gpu`, `link` and, for each
  /// phase, passes * latency / in_flight.
  double period = 0;
  bool fits = true;  ///< memory suffices, and every kernel runs where it is placed
};

/// O(kernels + readers of all buffers). The problem is one that check() accepts, the placement has its length.
[[nodiscard]] Usage usage_of(const Problem& problem, const Placement& placement);

/// Seconds of one pass of a phase that has all GPUs and links to itself. A GPU runs kernels in their order; a message
/// is sent behind the kernel that wrote it, takes both GPUs Link::gpu_seconds and the link Link::seconds, and is taken
/// in before the first kernel that reads it. Everything else overlaps.
[[nodiscard]] double pass_latency(const Problem& problem, const Placement& placement, int phase);

/// Bytes of messages alive at the same time in one pass, on one GPU of each class: from the writer, or from where they
/// are sent, to the last reader there.
[[nodiscard]] std::vector<double> live_messages(const Problem& problem, const Placement& placement, int phase);

}  // namespace tangram::disaggregate
