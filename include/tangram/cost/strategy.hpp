// How one stage is parallelized inside. Values only.
#pragma once

#include <compare>

#include "tangram/model/model.hpp"

namespace tangram::cost {

using model::RecomputeMode;

/// Degrees inside one stage. Attention and dense parts use tp x cp x dp = all GPUs of the stage. Experts use
/// etp x ep x edp = all GPUs, where ep shards experts over the dp x cp (x tp / etp) ranks.
struct Degrees {
  int tp = 1;
  int cp = 1;
  int dp = 1;
  int ep = 1;
  int etp = 1;
  bool sequence_parallel = false;  ///< only with tp > 1

  [[nodiscard]] int gpus() const { return tp * cp * dp; }
  [[nodiscard]] int edp() const { return gpus() / (ep * etp); }
  auto operator<=>(const Degrees&) const = default;
};

/// What trades time for memory at fixed degrees.
struct MemoryPolicy {
  int zero = 0;  ///< 0..3 over dp x cp (experts: over edp)
  RecomputeMode recompute = RecomputeMode::kNone;
  int recompute_layers = 0;  ///< blocks recomputed in full, from the stage's first; kFull only
  auto operator<=>(const MemoryPolicy&) const = default;
};

struct Strategy {
  Degrees degrees;
  MemoryPolicy policy;
  auto operator<=>(const Strategy&) const = default;
};

}  // namespace tangram::cost
