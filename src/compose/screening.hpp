// Programs whose stages hold too few blocks, however these are cut. Goes in: options, and what the store knows of each:
// the time of one block, then which slices fit. Comes out: how many blocks stages of no more than a given time can
// hold. It takes a question per shape, or a few, where a relaxation takes one per slice and bounds that are made of
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "frontier_store.hpp"
#include "pricing.hpp"
#include "space.hpp"

namespace tangram::compose {

/// Blocks that a stage on an entry of the store holds at most, the depth-th from the end of its pipeline; 0: none fits.
/// Falls with the depth, from 1 on.
using HeldBlocks = std::function<double(int entry, int depth)>;

/// In `slowest` (ns), by the time of one block (ns; 0: none fits). Counts on T being a sum over blocks, and ignores
/// memory for more than one.
[[nodiscard]] double blocks_by_time(double block, std::int64_t slowest);

/// What so many blocks take at least; ns.
[[nodiscard]] std::int64_t least_time(double block, int blocks);

/// The same by the staircases of an entry, with the memory for what a stage has in flight.
class SliceLengths {
 public:
  /// Of slices that may be stages of so many chunks. O(signatures).
  SliceLengths(const ShapePlans& entry, const SignatureTable& signatures, std::int64_t slowest, int chunks);

  /// Segments of the longest slice that holds so many microbatches: of any place in the model.
  [[nodiscard]] double longest(std::int64_t in_flight) const { return longest_of(anywhere_, in_flight); }
  /// Those of its segments that are alike (SignatureTable::alike), of the slice that has most of them.
  [[nodiscard]] double longest_alike(std::int64_t in_flight) const { return longest_of(alike_, in_flight); }

 private:
  [[nodiscard]] static double longest_of(const std::vector<std::int64_t>& most, std::int64_t in_flight);

  std::vector<std::int64_t> anywhere_;  // [segments] microbatches that the fast ones hold at most; 0: none is
  std::vector<std::int64_t> alike_;
};

/// Of stages of plans that take no longer than `time` (ns): the first microbatch is through all stages in `latency`
/// (ns) at least, and the slowest stage then works on the M - 1 others. A stage is on one of its chunks at a time.
[[nodiscard]] std::int64_t slowest_stage(std::int64_t time, std::int64_t latency, std::int64_t microbatches,
                                         int chunks);

/// Microbatches whose activations the depth-th stage from the end holds at least, of M in all.
[[nodiscard]] std::int64_t least_in_flight(std::int64_t depth, std::int64_t microbatches, int chunks);

/// At least the blocks that the stages of a pipeline hold, no more than `stages`: the linear relaxation of filling
/// units with stages, bounded by weak duality. Infinite where nothing bounds it. O(options x stages).
[[nodiscard]] double most_blocks(const std::vector<ClassShare>& shares,
                                 const std::vector<std::vector<OptionPart>>& options, int stages,
                                 const HeldBlocks& held);

/// Microbatch sizes of which screening leaves no program of several model chunks, found before these are searched: the
/// slices of their stages are those of one chunk. Thread-safe.
class ScreenedSizes {
 public:
  /// None that is faster than `incumbent` (ns).
  void note(std::int64_t microbatch, std::int64_t incumbent);
  [[nodiscard]] bool has(std::int64_t microbatch, std::int64_t incumbent) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::int64_t, std::int64_t> incumbents_;
};

}  // namespace tangram::compose
