// Access to a Hugging Face config.json: keys nobody needs are passed over, null counts as absent.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "blueprint.hpp"

namespace tangram::model {

/// What a configuration class takes where a file is silent.
struct HfDefault {
  std::string_view key;
  std::int64_t value = 0;
};

/// Of a configuration class by its model_type; empty for those of which every dimension has to be said.
[[nodiscard]] std::span<const HfDefault> hf_class_defaults(std::string_view model_type);

class HfConfig {
 public:
  explicit HfConfig(io::ObjectReader reader) : reader_(std::move(reader)) {}
  /// A section whose integers have the defaults of a class; `name` for people.
  HfConfig(io::ObjectReader reader, std::string name, std::string_view model_type)
      : reader_(std::move(reader)),
        name_(std::move(name)),
        model_type_(model_type),
        defaults_(hf_class_defaults(model_type)) {}

  [[nodiscard]] bool has(std::string_view key) const;  ///< there, and not null
  std::int64_t integer(std::string_view key, io::IntegerRange range);
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, io::IntegerRange range);
  bool boolean_or(std::string_view key, bool fallback);
  std::string string_or(std::string_view key, std::string fallback);
  const io::Node* array(std::string_view key);  ///< null when absent or not an array (reported)

  io::ObjectReader& reader() { return reader_; }
  [[nodiscard]] bool clean() const { return reader_.sink().empty(); }

  /// The section under `key`, with the defaults of its own model_type, or of `model_type` where it names none. Reports
  /// a missing one.
  std::optional<HfConfig> section(std::string_view key, std::string_view model_type);
  [[nodiscard]] const std::string& model_type() const { return model_type_; }
  /// Which defaults were taken, for people; empty: none.
  [[nodiscard]] std::string assumed() const;

 private:
  std::optional<std::int64_t> class_default(std::string_view key);

  io::ObjectReader reader_;
  std::string name_;
  std::string model_type_;
  std::span<const HfDefault> defaults_;
  std::vector<HfDefault> taken_;
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

inline constexpr std::string_view kDescribedWithout = "a model.yaml can describe a model without";

/// Reports that the architecture is refused because it "has layers of ...".
void hf_refuse(HfConfig& config, std::string_view what, std::string_view hint = kDescribedWithout);

/// Reports an activation function that is not one of the known.
void hf_check_activation(HfConfig& config, std::string_view key);

/// Routed experts, their number and width under the given keys; no dense part.
void hf_routed_experts(HfConfig& config, std::string_view count_key, std::string_view hidden_key, FeedForward& out);

/// Which of so many layers the array under `key` lists, counted from 0; none without it.
std::vector<bool> hf_listed_layers(HfConfig& config, std::string_view key, std::int64_t layers);

/// The family of a model_type; null: there is none.
struct HfFamily;
[[nodiscard]] const HfFamily* find_hf_family(std::string_view model_type);

/// The families, by model_type: each reads its config into a blueprint.
using HfImport = Blueprint (*)(HfConfig& config);
struct HfFamily {
  std::string_view model_type;
  HfImport import;
};
[[nodiscard]] std::span<const HfFamily> hf_dense_families();
[[nodiscard]] std::span<const HfFamily> hf_layer_norm_families();  ///< with LayerNorm and biases, as GPT-2 has them
[[nodiscard]] std::span<const HfFamily> hf_expert_families();
[[nodiscard]] std::span<const HfFamily> hf_multimodal_families();
[[nodiscard]] std::span<const HfFamily> hf_hybrid_families();   ///< layers of recurrences, attention, feed-forwards
[[nodiscard]] std::span<const HfFamily> hf_refused_families();  ///< known, and why not

}  // namespace tangram::model
