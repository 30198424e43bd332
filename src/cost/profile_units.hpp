// Which units of a profile are of a block type, or of an end of a model.
#pragma once

#include <vector>

#include "tangram/cost/profile.hpp"

namespace tangram::cost {

/// What a unit must be equal to.
struct WantedUnit {
  ProfileKind kind;
  const model::BlockType* block;  ///< kBlock; must outlive it
  std::int64_t vocabulary;
  std::int64_t hidden;
  std::int64_t tokens;
  DType precision;
  bool flash_attention;
};

[[nodiscard]] WantedUnit wanted_block(const model::BlockType& block, const model::Job& job);
/// kEmbedding or kHead.
[[nodiscard]] WantedUnit wanted_edge(ProfileKind kind, const model::Model& model);

/// By position; whatever their sequence length.
[[nodiscard]] std::vector<std::size_t> units_of(const Profile& profile, const WantedUnit& wanted,
                                                const cluster::GpuType& device);

}  // namespace tangram::cost
