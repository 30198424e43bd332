// Which kernels must wait for which, and for whose bytes. Goes in: the kernels of a phase in launch order with the
// bytes that they touch. Comes out: hazards between pairs of them. Any order of the kernels that keeps all of them
// leaves the same bytes in memory as the recorded one.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/kernels/kernel_graph.hpp"

namespace tangram::kernels {

enum class HazardKind : std::uint8_t { kReadAfterWrite, kWriteAfterRead, kWriteAfterWrite };

/// `to` waits for `from`, which was launched before it.
struct Hazard {
  int from = 0;  ///< indices in KernelGraph::kernels
  int to = 0;
  HazardKind kind = HazardKind::kReadAfterWrite;
  int buffer = 0;          ///< that `to` touches
  std::int64_t bytes = 0;  ///< that both touch, and that no kernel in between surely overwrites
  bool exact = true;       ///< both surely touch all of them
  /// Only the memory is the same, not what is in it: `to` starts the buffer afresh (another allocation of the storage,
  /// or all of the buffer overwritten unread). Where both run on different GPUs, which have memory of their own, there
  /// is nothing to wait for.
  bool storage = false;

  bool operator==(const Hazard&) const = default;
};

/// Of one phase, ordered by `to`, then `from`. A byte counts from the last kernel that surely wrote it: an access that
/// is not exact hides nothing that was before. Every repeat counts once: unroll (unroll.hpp) for what passes of it wait
/// for. O(accesses x (log segments + hazards)).
[[nodiscard]] std::vector<Hazard> hazards(const KernelGraph& graph, const Phase& phase);

}  // namespace tangram::kernels
