// tangram disaggregate adapt: what following the load, and measured times, is worth.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "command.hpp"
#include "exit_codes.hpp"
#include "tangram/disaggregate/compare.hpp"
#include "tangram/disaggregate/serving.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::app {

struct AdaptTo {
  std::vector<disaggregate::Request> arrivals;
  std::span<const kernels::KernelGraph> graphs;
  std::span<const disaggregate::Batch> batches;  ///< of the graphs
  std::uint64_t seed = 1;
};

[[nodiscard]] ExitCode adapt_to(const AdaptTo& what, const Context& context);

}  // namespace tangram::app
