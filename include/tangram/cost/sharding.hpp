// Over which ranks of a stage ZeRO shards: what the job says of it (model::ShardingGroup), in terms of degrees.
#pragma once

#include <optional>

#include "tangram/cluster/islands.hpp"
#include "tangram/cost/strategy.hpp"
#include "tangram/model/model.hpp"

namespace tangram::cost {

/// Whether ZeRO shards anything: over dp_shard x cp, of `experts` over the replicas of an expert in one group.
[[nodiscard]] bool has_shards(const Degrees& degrees, bool experts);

/// dp_replicate of the degrees, whose own is not looked at, with groups of the data-parallel ranks of a node; 1: they
/// are all in one. nullopt: tp x cp reaches beyond a node or does not divide it.
[[nodiscard]] std::optional<int> replicate_of_nodes(const Degrees& degrees, const cluster::DeviceShape& shape);

/// dp_replicate as the job wants it under ZeRO: 1 with all of dp, and where dp is no more than the ranks wanted.
/// nullopt: dp cannot be divided into such groups, so that there is no ZeRO at these degrees. Of a job that leaves it
/// free 1.
[[nodiscard]] std::optional<int> replicate_of(const model::ShardingGroup& wanted, const Degrees& degrees,
                                              const cluster::DeviceShape& shape);

}  // namespace tangram::cost
