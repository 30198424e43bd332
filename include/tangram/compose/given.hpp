// Pipelines that somebody else chose, priced as the search prices its own. Goes in: stages with their shapes and
// strategies. Comes out: the composition, whose times and memory are those a search would have found for it; the period
// and the closed form are left 0, as in-flight counts are given too.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tangram/compose/composition.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::compose {

struct GivenPart {
  int island_class = 0;  ///< index into the level's classes
  cluster::DeviceShape shape;
  std::int64_t samples = 0;  ///< of the stage's microbatch
  cost::Strategy strategy;
  std::string parallelizer;
  std::string opaque;
  int member = -1;  ///< of the class: where the part is, if it lies in one; -1: over several, or it is not known
};

struct GivenStage {
  int first = 0;  ///< blocks [first, last)
  int last = 0;
  std::int64_t in_flight = 1;  ///< microbatches, of several chunks passes
  std::vector<GivenPart> parts;
  std::vector<model::BlockRange> chunks = {};  ///< where its blocks are, interleaved; empty: all in a row
};

struct GivenPipeline {
  int replicas = 1;  ///< equal pipelines between which gradients are reduced
  std::int64_t microbatch = 1;
  std::int64_t microbatches = 1;
  std::vector<GivenStage> stages;
  std::vector<int> with_replicas = {};  ///< classes, ascending: one member of each holds all replicas' stages on it
  std::int64_t group = 0;               ///< microbatches that pass a chunk in a row, where stages have several
};

/// The first stage that no cost exists for.
struct Unpriced {
  std::size_t stage = 0;
  std::string why;
  std::size_t pipeline = 0;  ///< of several
};

[[nodiscard]] tl::expected<Composition, Unpriced> price(const GivenPipeline& given, const model::Model& model,
                                                        const cluster::IslandLevel& level,
                                                        const cost::ProfileSet* profiles);

/// All pipelines of a plan, each written out, in their order: those that are alike are replicas of each other, and
/// gradients are reduced between all, as in an ensemble, which is priced before it is placed: only where all are alike
/// does it count that one member holds what they have of a class. What it says of replicas is not read.
[[nodiscard]] tl::expected<std::vector<Composition>, Unpriced> price_together(std::span<const GivenPipeline> pipelines,
                                                                              const model::Model& model,
                                                                              const cluster::IslandLevel& level,
                                                                              const cost::ProfileSet* profiles);

/// Encoders on all GPUs of these pipelines.
struct GivenEncoders {
  cost::EncoderTurns turns = cost::EncoderTurns::kThreePhases;
  std::vector<cost::EncoderLayout> layouts;  ///< of each encoder of the model
};

/// The same of alike pipelines that hold the language model of `model` alone, its encoders on their GPUs. `samples`: of
/// all pipelines, in shares that differ by no more than one; 0: all of their microbatches are full.
[[nodiscard]] tl::expected<std::vector<Composition>, Unpriced> price_colocated(
    std::span<const GivenPipeline> pipelines, const GivenEncoders& encoders, std::int64_t samples,
    const model::Model& model, const cluster::IslandLevel& level, const cost::ProfileSet* profiles);

}  // namespace tangram::compose
