// Which layouts of the encoders are tried, and what each takes at least. Goes in: the model, the islands. Comes out:
// cases, the fastest first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "colocated_pricing.hpp"

namespace tangram::compose {

/// A layout of every encoder, with turns that the language model takes with them.
struct EncoderCase {
  EncoderTurns turns = EncoderTurns::kThreePhases;
  EncoderLayouts layouts;
  std::int64_t microbatch = 0;         ///< of per-microbatch turns; 0: any
  std::vector<std::string> gpu_types;  ///< that plans use, the one on which encoders are slowest last
  Nanoseconds least_time;              ///< of all passes of the encoders in plans that use that one
  std::vector<Bytes> reserve;          ///< by class of the finest level: the least that its GPUs keep
};

/// The largest number of GPUs of a lane.
inline constexpr int kMostEncoderTp = 8;

/// Samples of a microbatch that encoders take in one turn.
inline constexpr std::int64_t kMostTurnSamples = 64;

/// tp: powers of two, up to 8, that divide the members of all classes; sequence parallelism and ZeRO-1 wherever the job
/// has them; three ways to recompute. Per-microbatch turns with 1, 2, 4, ... 64 samples, or with those that the job
/// fixes. For each, GPUs of all `gpu_types` (none named: of all), of all but the slowest, and so on. By time.
[[nodiscard]] std::vector<EncoderCase> encoder_cases(const model::Model& model, const cluster::IslandLevel& level,
                                                     const EncoderPricing& pricing,
                                                     const std::vector<std::string>& gpu_types);

}  // namespace tangram::compose
