// What the published programs read, written from our fleet, model and profiles, so that they can be run beside this
// one. Goes in: what planners read here. Comes out: files in a folder for each program.
//
//   metis/   hostfile, clusterfile.json, profile/DeviceType.TYPE_tpT_bsB.json (milliseconds, MB)
//   sailor/  cluster.json, quotas.json, training_config.json, llm_info.json, network.json, communication_cost.json,
//            profiles/TYPE/profile.json (seconds)
#pragma once

#include <string>
#include <vector>

#include "tangram/baseline/input.hpp"
#include "tangram/cluster/fleet.hpp"

namespace tangram::baseline {

struct PlannerFile {
  std::string path;  ///< inside the folder, with "/"
  std::string text;
};

struct PlannerFiles {
  std::vector<PlannerFile> files;
  std::vector<std::string> notes;  ///< what the program will not take as it is
};

[[nodiscard]] PlannerFiles write_planner_files(const cluster::Fleet& fleet, const PlannerInput& input);

}  // namespace tangram::baseline
