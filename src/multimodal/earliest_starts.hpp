// When the passes of a microbatch that is alone begin.
#pragma once

#include <cstdint>
#include <vector>

#include "neighbours.hpp"
#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

struct EarliestStarts {
  std::vector<std::int64_t> phi;   ///< [stage] its forward pass, ns
  std::vector<std::int64_t> back;  ///< [stage] its backward pass; of frozen stages the end of the forward pass, ns
};

/// Where transfers block, the boundaries of a stage are served one after the other.
[[nodiscard]] EarliestStarts earliest_starts(const StageGraph& graph, const Neighbours& neighbours);

}  // namespace tangram::multimodal
