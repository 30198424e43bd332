// Costs of a slice whose cuts may lie inside a block, and whose blocks may be recomputed in different ways. Goes in:
// unit costs and a chunk. Comes out: the sums of stage_cost, weighted by the shares of blocks.
#pragma once

#include "tangram/accuracy/experiment.hpp"
#include "tangram/cost/stage.hpp"

namespace tangram::accuracy {

/// Seconds and bytes.
struct SlicePrice {
  double forward = 0;
  double backward = 0;
  double sync = 0;
  double step = 0;
  double last_sync = 0;  ///< of the step: the exchange of the embedding's gradient
  double static_memory = 0;
  double transient = 0;
  double update = 0;  ///< beside static memory while the optimizer steps
  double activation = 0;
  double gradient_volume = 0;

  void add(const SlicePrice& other, double weight);
};

/// Bytes of one sample of the language model that cross a cut behind so many blocks. Behind an encoder in a stage of
/// its own it is what that made: the token embedding is with the language model. Past either end: as inside.
[[nodiscard]] std::int64_t passed_bytes(const Experiment& experiment, double blocks);

[[nodiscard]] SlicePrice price_chunk(const Experiment& experiment, const Chunk& chunk, const cost::UnitCosts& units);

}  // namespace tangram::accuracy
