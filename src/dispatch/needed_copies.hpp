// Which versions of buffers devices read that another device wrote.
#pragma once

#include <span>
#include <vector>

#include "pieces.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::dispatch {

struct NeededCopy {
  int buffer = 0;
  std::vector<PieceRange> ranges;  ///< ascending, with gaps in between
  int writer = 0;                  ///< kernel
  int from = 0;                    ///< devices
  int to = 0;
  int reader = -1;  ///< the first kernel there that reads any of this version; -1: in a later pass
};

/// By phase, in the order of their writers; one for each version of a buffer and each device.
[[nodiscard]] std::vector<std::vector<NeededCopy>> needed_copies(const kernels::KernelGraph& graph,
                                                                 const Pieces& pieces, std::span<const int> on);

}  // namespace tangram::dispatch
