// The file of a kernel graph (tangram.kernels/1). Goes in: text. Comes out: a graph whose references are whole, or
// every mistake with its place; and the canonical text of a graph, of which reading gives the same graph.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tangram/base/expected.hpp"
#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

/// What is not in the file: whether graphs make sense (check.hpp). Ids are unique, accesses lie within their buffers,
/// phases hold each kernel once and in launch order.
[[nodiscard]] Expected<KernelGraph> read_kernel_graph(std::string text, std::string file);

[[nodiscard]] nlohmann::ordered_json kernel_graph_json(const KernelGraph& graph);

}  // namespace tangram::kernels
