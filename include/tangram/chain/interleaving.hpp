// Interleaved 1F1B in plain numbers: several model chunks a stage, which microbatches pass in groups. Goes in: what a
// program says of it. Comes out: which groups a pipeline may have, and what they make it hold and wait for.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "tangram/base/grid.hpp"

namespace tangram::chain {

/// One-way latency c and link occupancy of a boundary, ns.
struct Price {
  std::int64_t latency = 0;
  std::int64_t occupancy = 0;

  /// Between stages that can not be neighbours.
  [[nodiscard]] static constexpr Price none() { return {INT64_MAX / 8, INT64_MAX / 8}; }
  [[nodiscard]] constexpr bool is_none() const { return occupancy >= INT64_MAX / 8; }
};

/// So many microbatches pass a chunk before any passes the next one.
struct MicrobatchGroup {
  std::int64_t microbatches = 0;  ///< G
  std::int64_t most_stages = 0;   ///< of a pipeline that may have it: S <= G, and what a runtime asks for
};

/// Of a stage's blocks those of one of its chunks: as even as they go, the larger chunks last, as the first ones are
/// held longest.
template <std::integral Count>
[[nodiscard]] constexpr Count chunk_size(Count blocks, Count chunks, Count chunk) {
  return (blocks + chunk) / chunks;
}

/// A program of v > 1 chunks counts passes of one chunk: M is v times the microbatches, F, T and A - T are those of a
/// v-th of a stage's blocks (the synchronisation of all), n_max the passes that memory holds. A stage with d behind it
/// has 2d + 1 passes in flight, and holds (v - 1) G more (arXiv 2104.04473, section 2.2; Megatron-LM's schedules.py).
/// Closed forms take all chunks of a stage for equally long; timetables know what blocks take
/// (Program::work_before).
struct Interleaving {
  std::int64_t chunks = 1;  ///< v; 1: none
  /// A stage waits until what it sends forward has been received; gradients are sent beside the passes.
  bool sends_block = false;
  std::vector<MicrobatchGroup> groups;  ///< ascending
  Grid<Price> around;                   ///< from the last stage back to the first, by their keys

  /// The smallest group of pipelines of so many stages; 0: there is none.
  [[nodiscard]] std::int64_t least_group(std::int64_t stages) const {
    for (const MicrobatchGroup& group : groups) {
      if (group.most_stages >= stages) return group.microbatches;
    }
    return 0;
  }
  /// Of those of no more than `most` microbatches the one that waits least for the way around, the smallest of such;
  /// 0: there is none. `latency` as wait_around() takes it.
  [[nodiscard]] std::int64_t group_for(std::int64_t stages, std::int64_t most, std::int64_t latency,
                                       std::int64_t period) const {
    std::int64_t best = 0;
    for (const MicrobatchGroup& group : groups) {
      if (group.most_stages < stages || group.microbatches > most) continue;
      const bool waits_less =
          best == 0 || wait_around(latency, group.microbatches, period) < wait_around(latency, best, period);
      if (waits_less) best = group.microbatches;
    }
    return best;
  }
  /// The most microbatches of a group that a stage with `in_flight` passes in flight holds, of a memory for n_max.
  [[nodiscard]] std::int64_t most_in_group(std::int64_t in_flight, std::int64_t n_max, std::int64_t passes) const {
    return n_max >= passes ? INT64_MAX : (n_max - in_flight) / (chunks - 1);
  }
  /// How long a pipeline waits, altogether, for what its last stage sends back to the first: a group has passed a chunk
  /// after G periods P, and is there again after the latency of all stages and the way around.
  [[nodiscard]] std::int64_t wait_around(std::int64_t latency, std::int64_t group, std::int64_t period) const {
    return latency / period < group ? 0 : (chunks - 1) * (latency - group * period);
  }
};

}  // namespace tangram::chain
