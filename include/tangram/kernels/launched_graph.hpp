// The kernel graph of recorded launches. Goes in: modules of PTX, launches in order, GPU types. Comes out: a graph of
// one step, in which what kernels touch is what the analysis of their PTX found, or the signature of kernels without
// PTX says.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tangram/base/expected.hpp"
#include "tangram/kernels/kernel_cost.hpp"
#include "tangram/kernels/kernel_graph.hpp"
#include "tangram/ptx/launches.hpp"
#include "tangram/ptx/program.hpp"

namespace tangram::kernels {

/// Kernels are called "4.norm": the fifth launch, of entry norm. A buffer that no launch writes is a weight, or an
/// input where its integers were recorded; one that is only written an output; one of which bytes are read that no
/// launch of the step wrote before is a KV cache; the others are activations. Accesses in many pieces (more than 256)
/// are one that is not exact. Times are those of a kernel that streams the bytes touched, by the roofline: import
/// measured ones with --onto. Errors name the line of `file`.
[[nodiscard]] Expected<KernelGraph> graph_of_launches(std::span<const ptx::Module> modules,
                                                      const std::vector<ptx::RecordedLaunch>& launches,
                                                      const std::string& file, std::span<const cluster::GpuType> gpus,
                                                      const KernelCosts& costs);

}  // namespace tangram::kernels
