// Which layouts of the encoders are tried, and what each takes at least. Goes in: the model, the islands. Comes out:
// cases, the fastest first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "colocated_pricing.hpp"

namespace tangram::compose {

/// A layout of every encoder, with turns that the language model takes with them.
struct EncoderCase {
  EncoderTurns turns = EncoderTurns::kThreePhases;
  EncoderLayouts layouts;
  std::int64_t microbatch = 0;  ///< of per-microbatch turns; 0: any
  Nanoseconds least_time;       ///< of all passes of the encoders, on whatever GPUs of the fleet
  std::vector<Bytes> reserve;   ///< by class of the finest level: the least that its GPUs keep
};

/// The largest number of GPUs of a lane.
inline constexpr int kMostEncoderTp = 8;

/// tp: powers of two, up to 8, that divide the members of all classes; sequence parallelism and ZeRO-1 wherever the job
/// has them; three ways to recompute. Per-microbatch turns with 1, 2, 4, ... samples, or with those that the job fixes.
/// By time.
[[nodiscard]] std::vector<EncoderCase> encoder_cases(const model::Model& model, const cluster::IslandLevel& level,
                                                     const EncoderPricing& pricing);

}  // namespace tangram::compose
