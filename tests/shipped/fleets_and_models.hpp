// What configs/ ships, read. Goes in: nothing. Comes out: every fleet and every model, by name.
#pragma once

#include <string>
#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"

namespace tangram::shipped {

/// configs/clusters and configs/models, sorted by file name. Throws std::runtime_error when one cannot be read.
[[nodiscard]] std::vector<cluster::Fleet> fleets();
[[nodiscard]] std::vector<model::Model> models();

/// Their file names without endings.
[[nodiscard]] std::vector<std::string> fleet_names();
[[nodiscard]] std::vector<std::string> model_names();

[[nodiscard]] cluster::Fleet fleet_named(const std::string& name);
[[nodiscard]] model::Model model_named(const std::string& name);

/// The nodes [first, first + count) of those whose first GPU group is of this type, as a fleet of their own.
[[nodiscard]] cluster::Fleet part_of(const cluster::Fleet& whole, const std::string& gpu_type, std::size_t count);

}  // namespace tangram::shipped
