// One block's dimensions as JSON, for formats that speak of blocks without a model around them. The keys are those of a
// type in tangram.model/1, without its name and tokens. Goes in: an object. Comes out: the block, and back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tangram/io/reader.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

/// Mistakes go to the reader's sink. Name and tokens of the result are empty.
[[nodiscard]] BlockType read_block_dimensions(io::ObjectReader& reader);

/// Every dimension written out: read_block_dimensions of it gives the same block.
[[nodiscard]] nlohmann::ordered_json block_dimensions(const BlockType& block);

}  // namespace tangram::model
