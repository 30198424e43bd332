// The fixed order of one executor in 1F1B: which pass comes k-th.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tangram::simulate {

struct Pass {
  bool forward = true;
  std::int64_t microbatch = 0;
};

/// min(M, warmup) forwards; then one forward, one backward, alternately; then the backwards that are left
/// (Narayanan et al., PipeDream-Flush, arXiv 2006.09503, section 3). 0 <= k < 2 M.
[[nodiscard]] inline Pass pass_at(std::int64_t k, std::int64_t microbatches, std::int64_t warmup) {
  const std::int64_t lead = std::min(microbatches, warmup);
  if (k < lead) return {true, k};
  if (k >= 2 * microbatches - lead) return {false, k - microbatches};
  const std::int64_t steady = k - lead;
  return steady % 2 == 0 ? Pass{true, lead + steady / 2} : Pass{false, steady / 2};
}

}  // namespace tangram::simulate
