// What the layers of a stage can choose, as lists of trade-offs. Goes in: unit costs. Comes out: for so many blocks of
// a type, or for a whole slice, the ways to recompute and the ways to shard that no other beats.
#pragma once

#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "strategy_space.hpp"
#include "tradeoff.hpp"

namespace tangram::parallelizer {

/// How many blocks of each type a slice has, in the order in which they first appear.
using TypeCounts = std::vector<std::pair<int, int>>;
[[nodiscard]] TypeCounts type_counts(const model::SliceSignature& slice);

/// How often a block is recomputed: `chosen` is {in full, selectively}.
///   time    of recompute, added to backward
///   memory  activations of a microbatch
///   peaks   the largest working set with what recompute brings back: alone, beside the block's own buffers of ZeRO-2,
///           of ZeRO-3
using RecomputeList = std::vector<Tradeoff>;

/// The lists of 0, 1, 2, ... blocks of one type, in one sweep: each from the one before.
[[nodiscard]] std::vector<RecomputeList> recompute_lists(const cost::UnitCosts& units, int type, int most,
                                                         std::span<const cost::RecomputeMode> modes);

/// Lists that many queries share. Made when they are first asked for. Thread-safe.
class RecomputeLists {
 public:
  /// `most` by block type: the most blocks that will be asked for.
  RecomputeLists(const StrategySpace& space, const TypeCounts& most, std::span<const cost::RecomputeMode> modes);

  /// `units`: index into the space's.
  [[nodiscard]] const RecomputeList& of(std::size_t units, int type, int blocks) const;

 private:
  struct Sweep {
    std::once_flag once;
    std::vector<RecomputeList> lists;
  };
  const StrategySpace& space_;
  TypeCounts most_;
  std::vector<cost::RecomputeMode> modes_;
  mutable std::deque<Sweep> sweeps_;  ///< [units][position in most_]
};

/// A slice's ways to recompute: `steps` of them, the first of the ends alone, then one more type each.
using Steps = std::vector<std::vector<Tradeoff>>;
[[nodiscard]] Steps recompute_steps(const RecomputeLists& lists, const cost::UnitCosts& units, std::size_t index,
                                    const model::SliceSignature& slice);

/// A slice's ways to shard some of its layers with ZeRO-3 while the others have the stage `zero`: `chosen` is {sharded,
/// 0}, of the first step {1, 0} where the ends are. Embedding and head go together.
///   time     of gathers and scatters, added to forward and backward
///   memory   parameters, gradients and optimizer state
///   peaks[0] ZeRO's largest buffers
[[nodiscard]] Steps sharding_steps(const cost::UnitCosts& units, const model::SliceSignature& slice, int zero);

/// What an entry of the last step chose, step by step.
[[nodiscard]] std::vector<std::array<std::int32_t, 2>> choices(const Steps& steps, std::size_t entry);

}  // namespace tangram::parallelizer
