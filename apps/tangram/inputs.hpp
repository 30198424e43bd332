// The files commands read.
#pragma once

#include <string>

#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::app {

[[nodiscard]] Expected<cluster::Fleet> load_fleet(const std::string& path);
[[nodiscard]] Expected<model::Model> load_model(const std::string& path, const model::JobOverrides& overrides = {});
[[nodiscard]] Expected<plan::LaunchPlan> load_plan(const std::string& path);

}  // namespace tangram::app
