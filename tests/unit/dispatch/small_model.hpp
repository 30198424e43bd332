// A transformer of two layers in PTX (tests/data/dispatch).
#pragma once

#include "tangram/dispatch/code.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::testing {

struct SmallModel {
  kernels::KernelGraph graph;
  dispatch::Code code;
};

/// Its 26 kernels on `streams` streams by turns.
[[nodiscard]] SmallModel small_model(int streams = 1);

}  // namespace tangram::testing
