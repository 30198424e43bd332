// How blocks are counted where covers are: all alike, or those of one kind alone. Goes in: a program. Comes out:
// weights of its slices.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

inline constexpr std::int64_t kBlockWeight = 1024;  ///< of a block that counts: mixed stages count in parts of it

/// Weights of blocks under which a cover is counted. The same for all periods.
struct BlockWeights {
  std::vector<std::int64_t> of_signature;  ///< weight of the heaviest slice with the signature
  std::vector<std::int64_t> of_first;      ///< [n] weight of blocks [0, n)
};

/// Of every block, and of every kind of block that makes up a part of so many of the program.
[[nodiscard]] std::vector<BlockWeights> block_weights(const Program& program, int least_share_of_kind);

}  // namespace tangram::chain
