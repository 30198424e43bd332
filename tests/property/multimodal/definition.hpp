// The closed form of a graph of stages by its definition: every path is followed, every period tried. Shares no code
// with the module.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::tests {

/// Microbatches that each stage must hold at a period: n_s >= n_t - 1 + (sum of T from s to t, and twice the c between)
/// / P for every path from s to t. Of frozen stages the prefetch depth.
[[nodiscard]] std::vector<std::int64_t> least_in_flight(const multimodal::StageGraph& graph, std::int64_t period);

struct DefinedForm {
  std::int64_t period = 0;
  std::int64_t time = 0;
};

/// Of a graph whose transfers overlap, small numbers only: periods are tried one by one.
[[nodiscard]] std::optional<DefinedForm> defined_form(const multimodal::StageGraph& graph);

}  // namespace tangram::tests
