// Hosts that a cluster manager can be asked for together. Goes in: a plan and what of it is started. Comes out: groups
// of alike hosts, in the order of ranks; and the files of the program that is started on them.
#pragma once

#include <string>
#include <vector>

#include "formats.hpp"

namespace tangram::exporting {

/// Neighbouring hosts of one island with equally many processes.
struct Component {
  int island = 0;
  int gpus = 0;                    ///< of each host
  std::vector<std::size_t> hosts;  ///< positions in LaunchOrder::hosts
};

[[nodiscard]] std::vector<Component> components_of(const plan::LaunchPlan& plan, const plan::LaunchOrder& order);

/// The program inside a job: its files, and how its ranks are placed.
struct Wrapped {
  Export files;
  Launch launch;
  std::string arguments;  ///< what to give the job
};
[[nodiscard]] Expected<Wrapped> wrapped(const plan::LaunchPlan& plan, Format program);

}  // namespace tangram::exporting
