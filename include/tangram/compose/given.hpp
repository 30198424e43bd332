// Pipelines that somebody else chose, priced as the search prices its own. Goes in: stages with their shapes and
// strategies. Comes out: the composition, whose times and memory are those a search would have found for it; the period
// and the closed form are left 0, as in-flight counts are given too.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tangram/compose/composition.hpp"

namespace tangram::compose {

struct GivenPart {
  int island_class = 0;  ///< index into the level's classes
  cluster::DeviceShape shape;
  std::int64_t samples = 0;  ///< of the stage's microbatch
  cost::Strategy strategy;
  std::string parallelizer;
  std::string opaque;
};

struct GivenStage {
  int first = 0;  ///< blocks [first, last)
  int last = 0;
  std::int64_t in_flight = 1;
  std::vector<GivenPart> parts;
};

struct GivenPipeline {
  int replicas = 1;  ///< pipelines between which gradients are reduced
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  std::vector<GivenStage> stages;
};

/// The first stage that no cost exists for.
struct Unpriced {
  std::size_t stage = 0;
  std::string why;
};

[[nodiscard]] tl::expected<Composition, Unpriced> price(const GivenPipeline& given, const model::Model& model,
                                                        const cluster::IslandLevel& level,
                                                        const cost::ProfileSet* profiles);

}  // namespace tangram::compose
