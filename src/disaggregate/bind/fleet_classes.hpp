// The GPUs of a fleet by their types, and what lies between these.
#pragma once

#include <string>
#include <vector>

#include "tangram/cluster/fleet.hpp"
#include "tangram/disaggregate/bind.hpp"

namespace tangram::disaggregate {

struct FleetClasses {
  std::vector<GpuClass> classes;
  Grid<Link> links;
};

/// Types in the order of their names.
[[nodiscard]] FleetClasses classes_of(const cluster::Fleet& fleet, const Deployment& deployment);

}  // namespace tangram::disaggregate
