// A contiguous part of the model and what makes two parts cost the same. Goes in: a model and a block range.
// Comes out: the slice's signature; equal signatures share every query, frontier and cost.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tangram/model/block_range.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

struct SliceSignature {
  std::vector<std::pair<int, int>> runs;  ///< (block type, count), in order; neighbouring runs differ in type
  bool embedding = false;
  bool head = false;
  bool tied_elsewhere = false;   ///< holds one end of a tied embedding whose other end is in another stage
  std::int64_t entry_bytes = 0;  ///< activation of one sample at the lower cut; 0 with the embedding
  std::int64_t exit_bytes = 0;   ///< activation of one sample at the upper cut; 0 with the head

  auto operator<=>(const SliceSignature&) const = default;
  [[nodiscard]] int block_count() const;
};

/// Signature of blocks [first, last); 0 <= first < last <= block_count().
[[nodiscard]] SliceSignature signature(const Model& model, int first, int last);
[[nodiscard]] inline SliceSignature signature(const Model& model, const BlockRange& blocks) {
  return signature(model, blocks.first, blocks.last);
}

/// Bytes of one sample's activation between blocks cut-1 and cut, 0 < cut < block_count(). Values have the width of
/// parameters (2 bytes, 4 under fp32). Before the end of the encoders the token embeddings and the outputs of finished
/// encoders travel along, because the first stage holds the embedding and the decoder needs all of them. With a graph
/// of modules these outputs are what the connectors make of them: tokens out, as wide as their target; what deepstack
/// adds further in travels up to there, and the language model's output travels past the generators to the head.
[[nodiscard]] std::int64_t cut_bytes(const Model& model, int cut);

/// Parameters that a stage of this signature holds. A tied matrix whose ends are in two stages is held by both.
[[nodiscard]] std::int64_t slice_parameters(const Model& model, const SliceSignature& slice);
/// Those of full width that take as many bytes: fewer where some are quantized.
[[nodiscard]] double held_parameters(const Model& model, const SliceSignature& slice);

}  // namespace tangram::model
