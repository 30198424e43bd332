// From a placement to what streams do. Goes in: the problem, a placement, and the graph that the problem was made of
// (bind.hpp). Comes out: segments, copies and waits with their seconds.
#pragma once

#include "tangram/disaggregate/problem.hpp"
#include "tangram/dispatch/schedule.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::disaggregate {

/// Classes are the devices. The graph may have repeats, as it was read.
[[nodiscard]] dispatch::Schedule dispatched(const Problem& problem, const Placement& placement,
                                            const kernels::KernelGraph& graph);

}  // namespace tangram::disaggregate
