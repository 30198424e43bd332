// Programs whose stages hold too few blocks, however these are cut. Goes in: options, and what the store knows of each:
// the time of one block, then which slices fit. Comes out: how many blocks stages of no more than a given time can
// hold. It takes a question per shape, or a few, where a relaxation takes one per slice and bounds that are made of
// them.
#pragma once

#include <cstdint>
#include <functional>
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

/// The same by the staircases of an entry, with the memory for what a stage has in flight.
class SliceLengths {
 public:
  /// Of slices of any place in the model that may be stages of so many chunks. O(signatures).
  SliceLengths(const ShapePlans& entry, const SignatureTable& signatures, std::int64_t slowest, int chunks);

  /// Segments of the longest slice that holds so many microbatches.
  [[nodiscard]] double longest(std::int64_t in_flight) const;

 private:
  std::vector<std::int64_t> most_in_flight_;  // [segments] of the fast ones; 0: none is
};

/// Microbatches whose activations the depth-th stage from the end holds at least, of M in all.
[[nodiscard]] std::int64_t least_in_flight(std::int64_t depth, std::int64_t microbatches, int chunks);

/// At least the blocks that the stages of a pipeline hold, no more than `stages`: the linear relaxation of filling
/// units with stages, bounded by weak duality. Infinite where nothing bounds it. O(options x stages).
[[nodiscard]] double most_blocks(const std::vector<ClassShare>& shares,
                                 const std::vector<std::vector<OptionPart>>& options, int stages,
                                 const HeldBlocks& held);

}  // namespace tangram::compose
