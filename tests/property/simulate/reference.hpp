// Two other ways to find out when a pipeline is through, for stages of one part.
#pragma once

#include <optional>

#include "numbers.hpp"

namespace tangram::simulate {

/// When each stage ends its last backward pass.
using Ends = std::vector<Int>;

/// The longest path through the graph of passes and transfers, each executor's passes chained in the order of its list.
/// Any kind but kZeroBubble. Nothing: the graph has a cycle.
[[nodiscard]] std::optional<Ends> longest_path(const SimPipeline& pipeline);

/// kZeroBubble, nanosecond after nanosecond. No pass may take no time.
[[nodiscard]] Ends tick_zero_bubble(const SimPipeline& pipeline);

}  // namespace tangram::simulate
