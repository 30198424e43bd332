// An encoder that shares the GPUs of a stage of the language model. Goes in: the encoder and the stage. Comes out: its
// passes, and what it holds on each of these GPUs.
#pragma once

#include "tangram/accuracy/experiment.hpp"
#include "tangram/cost/profile.hpp"
#include "tangram/simulate/simulate.hpp"

namespace tangram::accuracy {

struct EncoderPrice {
  simulate::SimEncoders passes;
  double beside = 0;  ///< bytes while the language model runs
  double alone = 0;   ///< bytes while it runs backward itself
};

/// Errors carry the reason.
[[nodiscard]] Expected<EncoderPrice> price_encoder(const SharedEncoder& encoder, const Stage& stage,
                                                   const cost::ProfileSet& profiles);

/// Turns without the encoders of the stages. `device`: whose host keeps what is offloaded. `microbatches`: of an
/// iteration.
[[nodiscard]] simulate::SimTurns turns_of(const SharedEncoder& encoder, const cluster::GpuType& device,
                                          std::int64_t microbatches);

}  // namespace tangram::accuracy
