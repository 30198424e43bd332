// The fixed order of one executor: which forward and backward passes come when.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tangram/simulate/simulate.hpp"

namespace tangram::simulate {

enum class PassKind : std::uint8_t { kForward, kBackward, kWeightGradient };

struct Pass {
  PassKind kind = PassKind::kForward;
  std::int64_t microbatch = 0;
  std::size_t chunk = 0;
};

/// First min(M v, warm-up) forward passes; then one forward, one backward, alternately; then the backward passes that
/// are left. Forward passes take the microbatches in groups: a group goes through the first chunk, then through the
/// second, and so on, before the next group starts; backward passes do the same from the last chunk to the first.
class Order {
 public:
  Order(const SimPipeline& pipeline, const SimStage& stage)
      : microbatches_(pipeline.microbatches),
        chunks_(chunks_of(pipeline)),
        group_(group_of(pipeline)),
        lead_(pipeline.kind == ScheduleKind::kGPipe ? half() : std::min(half(), stage.warmup)) {}

  /// Forward and backward passes, without weight gradients.
  [[nodiscard]] std::int64_t size() const { return 2 * half(); }

  /// The k-th, 0 <= k < size().
  [[nodiscard]] Pass at(std::int64_t k) const {
    if (k < lead_) return forward(k);
    if (k >= size() - lead_) return backward(k - half());
    const std::int64_t steady = k - lead_;
    return steady % 2 == 0 ? forward(lead_ + steady / 2) : backward(steady / 2);
  }

 private:
  [[nodiscard]] std::int64_t half() const { return microbatches_ * chunks_; }

  [[nodiscard]] Pass forward(std::int64_t k) const {
    if (chunks_ == 1) return {PassKind::kForward, k, 0};
    const std::int64_t first = k / (group_ * chunks_) * group_;
    const std::int64_t length = std::min(group_, microbatches_ - first);
    const std::int64_t within = k - first * chunks_;
    return {PassKind::kForward, first + within % length, static_cast<std::size_t>(within / length)};
  }

  [[nodiscard]] Pass backward(std::int64_t k) const {
    Pass pass = forward(k);
    pass.kind = PassKind::kBackward;
    pass.chunk = static_cast<std::size_t>(chunks_) - 1 - pass.chunk;
    return pass;
  }

  std::int64_t microbatches_;
  std::int64_t chunks_;
  std::int64_t group_;
  std::int64_t lead_;
};

}  // namespace tangram::simulate
