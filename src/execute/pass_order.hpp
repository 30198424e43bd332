// The order of a stage's passes under 1F1B (Narayanan et al., arXiv 2006.09503, section 3), with the warm-up the plan
// wrote: min(M v, warm-up) forward passes; then one forward, one backward, alternately; then the backward passes left.
// Of v interleaved chunks (arXiv 2104.04473, section 2.2) a group of microbatches goes through the first one, then
// through the second, and so on, before the next group starts; backward passes do the same from the last chunk to the
// first. Under zero bubble (arXiv 2401.10241, section 2) weight gradients that are put off come as late as a stage may:
// where it holds as many microbatches as the plan lets it, and at the end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tangram::execute {

struct Pass {
  bool backward = false;
  std::int64_t microbatch = 0;
  int chunk = 0;
  bool weights = false;  ///< the weight gradients that the microbatch's backward pass put off
  bool operator==(const Pass&) const = default;
};

class PassOrder {
 public:
  PassOrder(std::int64_t microbatches, std::int64_t warmup, int chunks = 1, std::int64_t group = 1)
      : microbatches_(microbatches), chunks_(chunks), group_(group), lead_(std::min(half(), warmup)) {}

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
    const std::int64_t first = k / (group_ * chunks_) * group_;
    const std::int64_t length = std::min(group_, microbatches_ - first);
    const std::int64_t within = k - first * chunks_;
    return {false, first + within % length, static_cast<int>(within / length)};
  }

  [[nodiscard]] Pass backward(std::int64_t k) const {
    const Pass mirror = forward(k);
    return {true, mirror.microbatch, chunks_ - 1 - mirror.chunk};
  }

  std::int64_t microbatches_;
  int chunks_;
  std::int64_t group_;
  std::int64_t lead_;
};

/// All passes of a stage under zero bubble, which holds `put_off` microbatches beyond warm-up + 1.
[[nodiscard]] inline std::vector<Pass> zero_bubble_passes(std::int64_t microbatches, std::int64_t warmup,
                                                          std::int64_t put_off) {
  const PassOrder order(microbatches, warmup);
  std::vector<Pass> passes;
  std::int64_t forwards = 0;
  std::int64_t weights = 0;
  for (std::int64_t k = 0; k < order.size(); ++k) {
    const Pass pass = order.at(k);
    if (!pass.backward && forwards - weights > warmup + put_off) passes.push_back({true, weights++, 0, true});
    forwards += pass.backward ? 0 : 1;
    passes.push_back(pass);
  }
  while (weights < microbatches) passes.push_back({true, weights++, 0, true});
  return passes;
}

/// So many of M microbatches have a warm-up of `deepest` passes, `steady` microbatches behind it, and a last group as
/// long as that of all: what an order does is seen on them.
[[nodiscard]] inline std::int64_t telling_microbatches(std::int64_t microbatches, std::int64_t deepest,
                                                       std::int64_t steady, int chunks, std::int64_t group) {
  if (chunks == 1) return std::min(microbatches, deepest + steady);
  const std::int64_t groups = deepest / chunks / group + 2 + (steady + group - 1) / group;
  return groups > microbatches / group ? microbatches : std::min(microbatches, groups * group + microbatches % group);
}

}  // namespace tangram::execute
