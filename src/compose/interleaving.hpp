// Stages of several model chunks. Goes in: a model, slices of it, groups of microbatches that a runtime takes. Comes
// out: which slices may be such stages, and where their chunks lie.
//
// The search gives every stage a slice of blocks in a row. Between blocks that are alike, it costs the same wherever
// its blocks lie: they are dealt out to its chunks afterwards. Blocks that are unlike the others, in front and at the
// end, stay where they are, in the first chunk of the first stage and in the last chunk of the last one.
#pragma once

#include <cstdint>
#include <vector>

#include "tangram/chain/interleaving.hpp"
#include "tangram/model/slice.hpp"

namespace tangram::compose {

/// Which slices of a model may be stages of several chunks.
class ChunkedSlices {
 public:
  explicit ChunkedSlices(const model::Model& model);

  /// Whether blocks [first, last) are enough for the chunks, and each chunk holds what has to stay in it.
  [[nodiscard]] bool has(int first, int last, int chunks) const;
  /// Bytes of one sample that any two places in a row hand over; 0: no slice may be such a stage.
  [[nodiscard]] std::int64_t cut_bytes() const { return cut_bytes_; }

 private:
  int blocks_;
  int alike_first_ = 0;  // blocks [first, last) are alike, and none outside is like them
  int alike_last_ = 0;
  std::int64_t cut_bytes_ = 0;
};

/// [stage][chunk] of stages that hold so many blocks each, dealt out as evenly as they go, the larger chunks last.
[[nodiscard]] std::vector<std::vector<model::BlockRange>> chunk_ranges(const std::vector<int>& blocks, int chunks);

/// All up to a number that is more than enough, beyond it powers of two: those that a pipeline of two stages or more
/// may have (runtime::interleaving_refusal), ascending.
[[nodiscard]] std::vector<chain::MicrobatchGroup> microbatch_groups(std::int64_t microbatches);

}  // namespace tangram::compose
