// Named GPUs in terms of an island level. Goes in: a level, and GPUs of the fleet. Comes out: which member of which
// island each of them is in, and the shape that the GPUs of a part form.
#pragma once

#include <set>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::plan {

/// Where each GPU of a level is.
class GpuPlaces {
 public:
  explicit GpuPlaces(const cluster::IslandLevel& level);
  struct Where {
    int island = 0;
    int island_class = 0;
    int member = 0;  ///< counted over the level
  };
  [[nodiscard]] const Where& of(const GpuSlot& gpu) const;

 private:
  std::vector<std::vector<Where>> places_;  ///< [node][gpu]
};

/// What follows from where a part's GPUs are.
struct Spread {
  std::set<int> classes;
  bool spills = false;  ///< over several islands
};

/// Notes islands and members in the part, whose nodes and GPU numbers are given.
[[nodiscard]] Spread locate(PlacedPart& part, const GpuPlaces& places);

/// The shape a part's GPUs form. Where they are neither whole members nor an even part of one, check() says so.
[[nodiscard]] cluster::DeviceShape shape_of(const PlacedPart& part, cluster::IslandClass island_class, bool spills);

/// The same of a part of a finished plan, on one island.
[[nodiscard]] cluster::DeviceShape shape_of(const LaunchPlan& plan, const Part& part);

}  // namespace tangram::plan
