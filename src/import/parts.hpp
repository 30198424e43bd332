// Stages of a job as parts on islands. Goes in: the GPUs of every replica and a level of islands. Comes out: replicas
// that follow each other on alike GPUs as one part, and what the part's shape is.
#pragma once

#include <vector>

#include "seating.hpp"
#include "tangram/cluster/islands.hpp"

namespace tangram::importing {

struct JobPart {
  int island_class = 0;
  cost::Strategy strategy;
  std::int64_t samples = 0;
  plan::PlacedPart placed;
  bool spills = false;  ///< over several islands
};

/// Where each GPU of a level is.
class GpuPlaces {
 public:
  explicit GpuPlaces(const cluster::IslandLevel& level);
  struct Where {
    int island = 0;
    int island_class = 0;
    int member = 0;  ///< counted over the level
  };
  [[nodiscard]] const Where& of(const plan::GpuSlot& gpu) const;

 private:
  std::vector<std::vector<Where>> places_;  ///< [node][gpu]
};

[[nodiscard]] std::vector<JobPart> parts_of(const JobStage& stage, const std::vector<ReplicaGpus>& replicas,
                                            const GpuPlaces& places, const model::Model& model);

/// The shape a part's GPUs form; where they are neither whole members nor an even part of one (check() says so), the
/// members they touch with equally many each.
[[nodiscard]] cluster::DeviceShape shape_of(const JobPart& part, const cluster::IslandLevel& level);

}  // namespace tangram::importing
