// Which degrees the built-in parallelizer considers for one stage. Goes in: a shape, samples, what of the slice limits
// the degrees, the techniques allowed. Comes out: every combination of the named space, in a fixed order.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/strategy.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::parallelizer {

/// Context parallelism cuts a sample into 2 cp chunks (each rank gets an early and a late one, which balances causal
/// attention: Llama 3, arXiv 2407.21783, section 3.3.2). Shorter chunks than this are considered only where every
/// replica works on one sample, so that data parallelism has no more to give.
inline constexpr std::int64_t kMinChunkTokens = 1024;

/// What of a slice limits its degrees.
struct SliceTraits {
  int experts = 0;          ///< greatest common divisor over the MoE block types of the slice; 0: no MoE block
  std::int64_t tokens = 0;  ///< of one sample, fewest over the block types of the slice

  bool operator==(const SliceTraits&) const = default;
};

[[nodiscard]] SliceTraits traits_of(const model::Model& model, const model::SliceSignature& slice);

/// All degrees with tp x cp x dp = GPUs of the shape, ascending:
///   tp   divides the GPUs of a member, so that tensor parallelism never leaves the fast link
///   sp   off, and on where tp > 1
///   cp   a power of two with tokens / (2 cp) >= kMinChunkTokens, or tokens >= 2 cp where dp = samples
///   dp   the rest; no more than samples
///   etp  1 or tp, and ep a common divisor of the experts and of the GPUs / etp; both 1 without MoE blocks
/// A technique that is not allowed keeps its degree at 1. What the model's dimensions forbid (heads, hidden sizes) is
/// not looked at here: cost::unit_costs refuses it with the reason.
[[nodiscard]] std::vector<cost::Degrees> enumerate_degrees(const cluster::DeviceShape& shape, int samples,
                                                           const SliceTraits& traits, const model::Techniques& allow);

/// Adds degrees whose ZeRO shards inside groups, and sorts: the groups that the job wants (cost/sharding.hpp) or, where
/// it leaves them free and ZeRO-3 is allowed, those inside nodes. Groups that have nothing to shard are left out.
[[nodiscard]] std::vector<cost::Degrees> with_sharding_groups(std::vector<cost::Degrees> degrees,
                                                              const cluster::DeviceShape& shape,
                                                              const SliceTraits& traits, const model::Techniques& allow,
                                                              const model::ShardingGroup& wanted);

/// The ZeRO stages of such degrees, ascending: 0 without groups, the others where ZeRO shards as the job wants it.
/// Where it leaves the groups free, they are for ZeRO-3 alone, whose gathers they keep inside a node: under ZeRO-1 they
/// move no fewer bytes between nodes, where the groups' all-reduce sends as much as a reduce-scatter and a gather of
/// all, and keep more in memory.
[[nodiscard]] std::vector<int> zero_stages(const cost::Degrees& degrees, const cluster::DeviceShape& shape,
                                           const SliceTraits& traits, const model::Techniques& allow,
                                           const model::ShardingGroup& wanted);

}  // namespace tangram::parallelizer
