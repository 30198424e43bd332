#include "tangram/cost/sharding.hpp"

namespace tangram::cost {

bool has_shards(const Degrees& degrees, bool experts) {
  return degrees.dp_shard() * degrees.cp > 1 || (experts && degrees.edp() > degrees.expert_replicate());
}

std::optional<int> replicate_of_nodes(const Degrees& degrees, const cluster::DeviceShape& shape) {
  if (shape.nodes == 1) return 1;
  if (shape.per_node % (degrees.tp * degrees.cp) != 0) return std::nullopt;
  return shape.nodes;
}

std::optional<int> replicate_of(const model::ShardingGroup& wanted, const Degrees& degrees,
                                const cluster::DeviceShape& shape) {
  switch (wanted.kind) {
    case model::ShardingGroup::Kind::kAny:
    case model::ShardingGroup::Kind::kAll: return 1;
    case model::ShardingGroup::Kind::kNode: return replicate_of_nodes(degrees, shape);
    case model::ShardingGroup::Kind::kRanks: break;
  }
  if (degrees.dp <= wanted.ranks) return 1;
  return degrees.dp % wanted.ranks == 0 ? std::optional(degrees.dp / wanted.ranks) : std::nullopt;
}

}  // namespace tangram::cost
