// Encoders on the GPUs of the language model. Goes in: what encoder passes take on each lane, and the pipelines of the
// language model. Comes out: the iteration time, by formula and pass by pass.
//
// In turns, `rounds` times: the encoder passes of some microbatches, a gather, 1F1B of the language model over them, a
// broadcast of the gradient of its input, the backward passes of the encoders. One microbatch a round on pipelines of
// one stage is what Megatron-LM runs without pipelines; all microbatches in one round are its three phases.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tangram/multimodal/stage_graph.hpp"

namespace tangram::multimodal {

/// GPUs that run all encoders, one after the other, for their share of a round.
struct EncoderLane {
  int stage = 0;              ///< of the language model whose GPUs they are
  std::int64_t forward = 0;   ///< ns
  std::int64_t backward = 0;  ///< ns; 0 where all encoders are frozen
};

/// GPUs that share no activations with others.
struct SuperLane {
  std::vector<EncoderLane> lanes;  ///< at least one
  std::int64_t gather = 0;         ///< of what encoders made to who reads it, ns
  std::int64_t broadcast = 0;      ///< of its gradients, ns
  /// For the microbatches of one round. Its stages synchronise nothing by themselves (A = T).
  StageGraph language;
};

struct Colocated {
  std::vector<SuperLane> super_lanes;  ///< at least one
  std::int64_t rounds = 1;
  std::int64_t sync = 0;  ///< gradients of all modules, behind everything else, ns
  std::int64_t step = 0;  ///< of the slowest optimizer, ns
};

/// What a plan must have so that everything else may take it as it is: super-lanes with lanes on stages that exist, no
/// negative time, at least one round, language models that pass check(StageGraph) and have no gradients of their own.
[[nodiscard]] Expected<void> check(const Colocated& plan);

/// Iteration time, ns. nullopt: a language model has no closed form. No timetable takes longer, as long as none of a
/// language model does; where lanes and stages are alike it is the timetable.
[[nodiscard]] std::optional<std::int64_t> closed_form(const Colocated& plan);

/// Iteration time, ns, each lane and stage as early as it can. nullopt: as closed_form().
[[nodiscard]] std::optional<std::int64_t> timetable(const Colocated& plan);

}  // namespace tangram::multimodal
