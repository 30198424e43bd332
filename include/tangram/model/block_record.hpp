// One block's dimensions as JSON, for formats that speak of blocks without a model around them. The keys are those of a
// type in tangram.model/1, without its name and tokens. Goes in: an object. Comes out: the block, and back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tangram/io/reader.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

/// Mistakes go to the reader's sink. Name and tokens of the result are empty.
[[nodiscard]] BlockType read_block_dimensions(io::ObjectReader& reader);

/// The same of an entry of `types` in tangram.model/1, with its name and its tokens (0: not given). `hidden`: the
/// model's, where the entry has none of its own.
[[nodiscard]] BlockType read_block_type(io::ObjectReader& reader, std::int64_t hidden);

/// Every dimension written out: read_block_dimensions of it gives the same block.
[[nodiscard]] nlohmann::ordered_json block_dimensions(const BlockType& block);

}  // namespace tangram::model
