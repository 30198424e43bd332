// The files commands read.
#pragma once

#include <string>
#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/model/model.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::app {

[[nodiscard]] Expected<cluster::Fleet> load_fleet(const std::string& path);
[[nodiscard]] Expected<model::Model> load_model(const std::string& path, const model::JobOverrides& overrides = {});
/// Profiles of the GPU types in the catalogue and in the fleet, with the mistakes of all files.
[[nodiscard]] Expected<cost::ProfileSet> load_profiles(const std::vector<std::string>& paths,
                                                       const cluster::Fleet& fleet);
[[nodiscard]] Expected<plan::LaunchPlan> load_plan(const std::string& path);

}  // namespace tangram::app
