// One entry of "nodes": a node or a group of equal ones, with overrides for single nodes.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "gpu_records.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/io/reader.hpp"

namespace tangram::cluster {

/// Appends the group's nodes to `nodes`. `names` holds the names seen so far. Mistakes are reported at the group.
void read_node_group(io::ObjectReader& group, const GpuTable& types, std::set<std::string>& names,
                     std::vector<Node>& nodes);

/// The names that the text at `key` stands for; empty after a report.
[[nodiscard]] std::vector<std::string> read_names(io::ObjectReader& reader, std::string_view key,
                                                  const std::string& pattern);

}  // namespace tangram::cluster
