// What cluster.json says about the links between nodes: rules on labels, and a measured matrix.
#pragma once

#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cluster {

/// Reads "links"; the fleet's nodes and labels must be there.
[[nodiscard]] std::vector<LinkRule> read_link_rules(io::ObjectReader& root, const std::vector<Node>& nodes);

/// Reads "measured_links" into fleet.measured; nodes (in their final order) and rules must be there.
void read_measured_links(io::ObjectReader& root, Fleet& fleet);

}  // namespace tangram::cluster
