// Stages of a job as parts on islands. Goes in: the GPUs of every replica and a level of islands. Comes out: replicas
// that follow each other on alike GPUs as one part.
#pragma once

#include <vector>

#include "rank_assignment.hpp"
#include "tangram/cluster/islands.hpp"
#include "tangram/plan/gpu_places.hpp"

namespace tangram::importing {

struct JobPart {
  int island_class = 0;
  cost::Strategy strategy;
  std::int64_t samples = 0;
  plan::PlacedPart placed;
  bool spills = false;  ///< over several islands
};

[[nodiscard]] std::vector<JobPart> parts_of(const JobStage& stage, const std::vector<ReplicaGpus>& replicas,
                                            const plan::GpuPlaces& places, const model::Model& model);

}  // namespace tangram::importing
