// Access to a Hugging Face config.json: keys nobody needs are passed over, null counts as absent.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "blueprint.hpp"

namespace tangram::model {

class HfConfig {
 public:
  explicit HfConfig(io::ObjectReader reader) : reader_(std::move(reader)) {}

  [[nodiscard]] bool has(std::string_view key) const;  ///< there, and not null
  std::int64_t integer(std::string_view key, io::IntegerRange range) { return reader_.integer(key, range); }
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, io::IntegerRange range);
  bool boolean_or(std::string_view key, bool fallback);
  std::string string_or(std::string_view key, std::string fallback);
  const io::Node* array(std::string_view key);  ///< null when absent or not an array (reported)

  io::ObjectReader& reader() { return reader_; }
  [[nodiscard]] bool clean() const { return reader_.sink().empty(); }

 private:
  io::ObjectReader reader_;
};

/// What the model class of a family takes where the file is silent.
struct HfDefaults {
  int kv_heads = 0;  ///< 0: as many as heads
  int head_dim = 0;  ///< 0: hidden / heads
  bool tied = false;
};

/// Keys under which a family keeps the common dimensions.
struct HfKeys {
  std::string_view hidden = "hidden_size";
  std::string_view layers = "num_hidden_layers";
  std::string_view heads = "num_attention_heads";
  std::string_view kv_heads = "num_key_value_heads";
  std::string_view inner = "intermediate_size";
  std::string_view positions = "max_position_embeddings";
  std::string_view activation = "hidden_act";
};

/// Vocabulary, hidden size, tied embeddings, final norm, longest sequence.
Blueprint hf_frame(HfConfig& config, const HfKeys& keys, bool tied_default);

/// Heads and their sizes; `kv_heads` empty in `keys`: all heads have their own keys and values.
Attention hf_attention(HfConfig& config, const HfKeys& keys, std::int64_t hidden, const HfDefaults& defaults);

/// As many blocks as the config has layers, all alike.
void hf_repeat(HfConfig& config, Blueprint& out, const BlockType& block, const HfKeys& keys = {});

/// Reports an activation function that is not one of the known.
void hf_check_activation(HfConfig& config, std::string_view key);

/// The families, by model_type: each reads its config into a blueprint.
using HfImport = Blueprint (*)(HfConfig& config);
struct HfFamily {
  std::string_view model_type;
  HfImport import;
};
[[nodiscard]] std::span<const HfFamily> hf_dense_families();
[[nodiscard]] std::span<const HfFamily>
hf_classic_families();  ///< LayerNorm and biases: GPT-2, GPT-Neo(X), OPT, Falcon
[[nodiscard]] std::span<const HfFamily> hf_expert_families();

}  // namespace tangram::model
