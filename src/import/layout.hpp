// Layers of each pipeline stage and model chunk in Megatron-LM's words. Goes in: arguments. Comes out: layers in the
// order of the chain, and how microbatches are grouped where stages have several chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "arguments.hpp"

namespace tangram::importing {

inline constexpr const char* kLayout = "pipeline-model-parallel-layout";
inline constexpr const char* kNoOverlap = "no-overlap-p2p-communication";

/// Chunk c of stage s of S at c S + s; S of them where stages have one chunk.
/// --pipeline-model-parallel-layout where it is given, else the even split with what its flags change. Mistakes go to
/// the arguments' sink; the result is then of no use.
[[nodiscard]] std::vector<std::int64_t> layers_per_chunk(ArgumentMap& arguments, std::int64_t stages);

/// Microbatches that pass a chunk in a row: as many as there are stages where no flag says otherwise.
[[nodiscard]] std::int64_t microbatch_group(ArgumentMap& arguments, std::int64_t stages);

}  // namespace tangram::importing
