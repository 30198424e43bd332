// From a fleet and a kernel graph to a problem. Goes in: the GPUs there are, the kernels of prefill and decode with
// their times and buffers, how requests look. Comes out: a problem in plain numbers, or why there is none.
#pragma once

#include "tangram/base/expected.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/disaggregate/problem.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::disaggregate {

struct Deployment {
  int in_flight = 2;  ///< micro-batches of each phase, for each GPU of the type of which there are most
  double generated_tokens =
      256;  ///< of a request, in the mean: how often decode passes for each time that prefill does
  double message_seconds = 5e-6;      ///< of a link for each message, beside its latency and bytes: GPU-initiated RDMA
  double message_gpu_seconds = 2e-6;  ///< of the sender's stream, and of the receiver's
};

/// One class for each type of GPU in the fleet, and a kernel for each launch of every phase: repeats are written out. A
/// round is one pass of decode (of the only phase, whatever its name) and as many of prefill as its requests need.
///
/// Messages are the bytes that a kernel reads and another wrote (read-after-write hazards): those that go from a kernel
/// of prefill to one of decode through the KV cache are sent once a prefill. Other hazards keep no kernels together:
/// each GPU has its own copy of a buffer. A pinned kernel, all that it reads from or writes for, and what is launched
/// in between are one kernel. Between two types of GPUs goes the slowest link of any two that are next to each other:
/// in one node the host's, else that of the nodes.
///
/// Fails where a GPU type of the fleet has no times in the graph, and where a kernel has none on any.
[[nodiscard]] Expected<Problem> problem_of(const cluster::Fleet& fleet, const kernels::KernelGraph& graph,
                                           const Deployment& deployment);

/// GPUs of the type of which there are most: so many passes are in flight if each of these has one.
[[nodiscard]] int most_gpus(const Problem& problem);

/// Requests of a micro-batch: those of the last phase, at least 1.
[[nodiscard]] int requests_of(const kernels::KernelGraph& graph);

}  // namespace tangram::disaggregate
