// The PTX of a kernel graph. Goes in: a module, and how each kernel is launched (tangram/ptx/launches.hpp). Comes out:
// what emulated devices run.
#pragma once

#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/kernels/kernel_graph.hpp"
#include "tangram/ptx/analysis.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::dispatch {

struct Code {
  ptx::Module module;
  std::vector<ptx::Launch> launches;  ///< by kernel of the graph
};

/// `graph` has its repeats written out. The launches stand in the order of its kernels, buffers have the names and
/// bytes that they have in the graph. Fails with the first launch that does not.
[[nodiscard]] Expected<Code> code_of(const kernels::KernelGraph& graph, ptx::Module module, const std::string& launches,
                                     const std::string& file);

}  // namespace tangram::dispatch
