// Graphs for tests, small enough to be worked out by hand.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels::test {

inline Buffer buffer(std::string id, std::int64_t bytes, std::int64_t copies = 1) {
  Buffer made;
  made.id = std::move(id);
  made.bytes = Bytes(bytes);
  made.kind = BufferKind::kActivation;
  made.copies = copies;
  return made;
}

/// On every GPU the same time.
inline Kernel kernel(std::string id, std::vector<Access> reads, std::vector<Access> writes, int gpus = 1) {
  Kernel made;
  made.id = id;
  made.position = "position/" + id;
  made.op = "aten::" + id;
  made.reads = std::move(reads);
  made.writes = std::move(writes);
  made.times.assign(static_cast<std::size_t>(gpus), KernelTime{Nanoseconds(1500), TimeSource::kMeasured, 0.03});
  made.names.assign(static_cast<std::size_t>(gpus), id + "_kernel");
  return made;
}

inline KernelGraph graph_of(std::vector<Buffer> buffers, std::vector<Kernel> kernels,
                            std::vector<std::string> gpus = {"L40S"}) {
  KernelGraph graph;
  graph.gpus = std::move(gpus);
  graph.buffers = std::move(buffers);
  graph.kernels = std::move(kernels);
  for (std::size_t k = 0; k < graph.kernels.size(); ++k) graph.kernels[k].order = static_cast<std::int64_t>(k);
  graph.phases.push_back({"step", 0, 0, 0, 0, graph.kernel_count(), {}});
  return graph;
}

/// first writes x; in each of three passes, layer reads x and its own weight and writes y, back reads y and writes x;
/// last reads x.
inline KernelGraph repeated_graph() {
  KernelGraph graph = graph_of({buffer("x", 8), buffer("y", 8), buffer("weight", 16, 3)},
                               {kernel("first", {}, {{0, 0, 8}}), kernel("layer", {{0, 0, 8}, {2, 0, 16}}, {{1, 0, 8}}),
                                kernel("back", {{1, 0, 8}}, {{0, 0, 8}}), kernel("last", {{0, 0, 8}}, {})});
  graph.kernels[1].layer = 0;
  graph.kernels[2].layer = 0;
  graph.phases.front().repeats.push_back({1, 2, 3});
  return graph;
}

}  // namespace tangram::kernels::test
