// Encoders of multimodal Hugging Face configs. Goes in: a section that describes one. Comes out: its blocks, what
// embeds its input, and the tokens of one item.
#pragma once

#include <optional>
#include <vector>

#include "hf_config.hpp"

namespace tangram::model {

struct HfEncoder {
  Module module;                 ///< without blocks; the connector belongs to the family
  std::vector<BlockType> chain;  ///< without tokens
  std::vector<int> from_layers;  ///< deepstack
  std::int64_t patches = 0;      ///< of an item, without a class token

  [[nodiscard]] std::int64_t hidden() const { return chain.empty() ? 0 : chain.front().hidden; }
};

/// The encoder of a section, by its model_type. Reports one that is not known at `model_type`.
[[nodiscard]] HfEncoder read_hf_encoder(HfConfig& section);

/// Pixels of one side, where a config has a number or [height, width].
[[nodiscard]] std::int64_t hf_side(HfConfig& config, std::string_view key);

}  // namespace tangram::model
