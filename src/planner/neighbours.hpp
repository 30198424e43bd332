// Fleets next to a fleet: nodes that are gone, a node more. Goes in: a fleet and names of its nodes. Comes out: the
// other fleet, or why there is none (no node would be left).
#pragma once

#include <string>
#include <vector>

#include "tangram/cluster/fleet.hpp"

namespace tangram::planner {

[[nodiscard]] Expected<cluster::Fleet> without_nodes(const cluster::Fleet& fleet,
                                                     const std::vector<std::string>& names);

/// One more like the node of this name.
[[nodiscard]] Expected<cluster::Fleet> with_one_more(const cluster::Fleet& fleet, const std::string& name);

}  // namespace tangram::planner
