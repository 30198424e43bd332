// A Kineto trace as plain values. Goes in: its JSON. Comes out: what ran on the GPU in the order of its start, which
// operator launched it, and what waited for what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/io/document.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

enum class GpuWork : std::uint8_t { kKernel, kCopy, kFill };

struct TracedKernel {
  GpuWork work = GpuWork::kKernel;
  std::string name;
  double start = 0;     ///< microseconds
  double duration = 0;  ///< microseconds
  int device = 0;
  int stream = 0;
  std::int64_t correlation = -1;  ///< with the launch; -1: none
  std::int64_t external = -1;     ///< "External id"; -1: none
  std::optional<Launch> launch;
  int op = -1;             ///< index in KinetoTrace::ops of the innermost operator that launched it; -1: none
  std::vector<int> after;  ///< earlier kernels that it waits for through events
};

struct TracedOp {
  std::string path;            ///< names of the operators around it and its own: "aten::linear/aten::addmm"
  int number = 0;              ///< among those of the same path
  std::int64_t rf_id = -1;     ///< what execution traces call it by
  std::int64_t external = -1;  ///< "External id"
};

struct KinetoTrace {
  std::vector<std::string> gpus;  ///< names by number of the device; empty: not named
  std::vector<TracedKernel> kernels;
  std::vector<TracedOp> ops;
};

/// Fails where an event of the GPU lacks its time, and where there is none.
[[nodiscard]] Expected<KinetoTrace> read_kineto(const io::Document& document);

}  // namespace tangram::kernels
