// When the passes of a chain end under interleaved 1F1B (Program::interleaving). Goes in: a chain. Comes out: when each
// stage has run its last backward pass.
//
// Microbatches go through the chunks of a stage in groups of G: G of them through chunk 0, the same through chunk 1,
// and so on; gradients through the chunks from the last to the first. A stage s runs 2 (S-1-s) + (v-1) G forward
// passes, then a forward and a backward pass in turn, and the backward passes that are left. What leaves the last stage
// comes to the next chunk of the first one. Where sends block, a stage begins no pass before what it sent forward has
// arrived.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/program.hpp"

namespace tangram::chain {

/// What passes of a chunk take, ns.
struct ChunkTime {
  std::int64_t forward = 0;
  std::int64_t backward = 0;
};

/// By chunk of an interleaved stage, as Program::work_before says what its blocks take of the whole.
[[nodiscard]] std::vector<ChunkTime> chunk_times(const Program& program, const ChainStage& stage);

/// [stage] ns. `chain` is as evaluate() leaves it: its group counts. O(S M), M in passes.
[[nodiscard]] std::vector<std::int64_t> interleaved_ends(const Program& program, const Chain& chain);

}  // namespace tangram::chain
