// How a block of a model file mixes tokens: the keys of attention, "mla", "mamba2" and "gated_delta".
#pragma once

#include <initializer_list>
#include <string_view>

#include "tangram/io/reader.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

/// Which parts a block has: "only".
enum class BlockParts { kBoth, kMixer, kFeedForward };

/// `both_ways`: in a section whose blocks attend both ways; those have both parts.
[[nodiscard]] BlockParts read_parts(io::ObjectReader& reader, bool both_ways);

/// Attention or a recurrence, as wide as the block; nothing of either for `kFeedForward`. `causal`: what attention is
/// where nothing is said.
void read_mixer(io::ObjectReader& reader, BlockParts parts, bool causal, BlockType& block);

/// Reports those of `keys` that are there: they have no meaning with `with`, which is a key or one with its value.
void refuse_keys(io::ObjectReader& reader, std::initializer_list<std::string_view> keys, std::string_view with);

}  // namespace tangram::model
