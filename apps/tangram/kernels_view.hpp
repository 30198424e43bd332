// Kernel graphs for people, and what was found in them as documents.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tangram/kernels/check.hpp"
#include "tangram/kernels/held_out.hpp"
#include "tangram/kernels/kernel_graph.hpp"
#include "terminal.hpp"

namespace tangram::app {

[[nodiscard]] std::string graph_for_people(const kernels::KernelGraph& graph, const Terminal& terminal);

[[nodiscard]] std::string findings_for_people(const kernels::KernelGraph& graph,
                                              const std::vector<kernels::Finding>& findings, const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json findings_document(const kernels::KernelGraph& graph,
                                                       const std::vector<kernels::Finding>& findings);

[[nodiscard]] std::string held_out_for_people(const std::vector<kernels::HeldOut>& lines, const Terminal& terminal);
[[nodiscard]] nlohmann::ordered_json held_out_document(const std::vector<kernels::HeldOut>& lines);

}  // namespace tangram::app
