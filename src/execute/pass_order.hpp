// The order of a stage's passes under 1F1B (Narayanan et al., arXiv 2006.09503, section 3), with the warm-up the plan
// wrote: min(M, warm-up) forward passes; then one forward, one backward, alternately; then the backward passes left.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tangram::execute {

struct Pass {
  bool backward = false;
  std::int64_t microbatch = 0;
};

class PassOrder {
 public:
  PassOrder(std::int64_t microbatches, std::int64_t warmup)
      : microbatches_(microbatches), lead_(std::min(microbatches, warmup)) {}

  [[nodiscard]] std::int64_t size() const { return 2 * microbatches_; }

  /// The k-th, 0 <= k < size().
  [[nodiscard]] Pass at(std::int64_t k) const {
    if (k < lead_) return {false, k};
    if (k >= size() - lead_) return {true, k - microbatches_};
    const std::int64_t steady = k - lead_;
    return steady % 2 == 0 ? Pass{false, lead_ + steady / 2} : Pass{true, steady / 2};
  }

 private:
  std::int64_t microbatches_;
  std::int64_t lead_;
};

}  // namespace tangram::execute
