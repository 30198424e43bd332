// Which nodes the replicas of a draft get. Goes in: a draft that speaks of GPU types. Comes out: for every GPU of every
// replica a node of the fleet, or nothing when there are too few.
#pragma once

#include <optional>
#include <vector>

#include "tangram/baseline/baseline.hpp"

namespace tangram::baseline {

using NodeIndex = int;                                   ///< a node of the fleet
using StageNodes = std::vector<std::vector<NodeIndex>>;  ///< [replica][GPU]; none for a replica that idles

/// Depth by depth and, at each depth, pipeline by pipeline. A replica stays in one node where a node has room for it.
/// [pipeline][stage].
[[nodiscard]] std::optional<std::vector<std::vector<StageNodes>>> assign_nodes(const Draft& draft,
                                                                               const PlannerInput& input);

}  // namespace tangram::baseline
