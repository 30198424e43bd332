// From a placement to a schedule. Goes in: a kernel graph and the device of each kernel. Comes out: segments of each
// stream, the copies without which a device would read what it does not have, and the waits without which streams of
// one device would overwrite or miss each other's bytes; none of them follows from the others.
#pragma once

#include <span>

#include "tangram/dispatch/schedule.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::dispatch {

/// `graph` has its repeats written out (kernels::unrolled), `on` a device for each kernel. Seconds are left 0.
///
/// One copy for each version of a buffer (kernel and buffer that it writes) and each other device that reads it, taken
/// in front of the first reader; one that a later pass reads, or a later phase, is taken at the end of the pass. The
/// last phase follows itself, the others are followed by those behind them. A write that is not exact may leave bytes
/// as they were, so that it needs them. Recorded orders (Kernel::after) count between kernels of a device of which
/// one is pinned; else data alone decides. O(accesses x pieces of their bytes x streams).
[[nodiscard]] Schedule lowered(const kernels::KernelGraph& graph, std::span<const int> on, std::vector<Device> devices);

}  // namespace tangram::dispatch
