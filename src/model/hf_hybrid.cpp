// Hybrid models: layers of a recurrence, of attention, of a feed-forward. Defaults are those of the configuration
// classes in huggingface/transformers (src/transformers/models/<type>/configuration_<type>.py).
#include <fmt/format.h>

#include <array>
#include <span>

#include "hf_config.hpp"
#include "tangram/base/at.hpp"

namespace tangram::model {

namespace {

constexpr io::IntegerRange kStateSize = io::integer_limit("state");
constexpr io::IntegerRange kConvolution = io::integer_limit("convolution");
constexpr io::IntegerRange kChunk = io::integer_limit("chunk");

/// Keys under which a family keeps the dimensions of its Mamba-2 layers, and what its class takes for some.
struct Mamba2HfKeys {
  std::string_view heads, head_dim, groups, state, convolution, chunk, convolution_bias, projection_bias;
  std::int64_t default_groups, default_state, default_chunk;
};
constexpr Mamba2HfKeys kNemotronKeys{"mamba_num_heads",
                                     "mamba_head_dim",
                                     "n_groups",
                                     "ssm_state_size",
                                     "conv_kernel",
                                     "chunk_size",
                                     "use_conv_bias",
                                     "use_bias",
                                     8,
                                     128,
                                     128};
constexpr Mamba2HfKeys kMamba2HfKeys{
    "num_heads", "head_dim", "n_groups", "state_size", "conv_kernel", "chunk_size", "use_conv_bias",
    "use_bias",  8,          128,        256};
constexpr Mamba2HfKeys kBambaKeys{"mamba_n_heads",
                                  "mamba_d_head",
                                  "mamba_n_groups",
                                  "mamba_d_state",
                                  "mamba_d_conv",
                                  "mamba_chunk_size",
                                  "mamba_conv_bias",
                                  "mamba_proj_bias",
                                  1,
                                  256,
                                  256};

/// Width of a head: said, or what `expand` (2) times hidden leaves each ("auto").
int mamba2_head_dim(HfConfig& config, const Mamba2HfKeys& keys, std::int64_t hidden, int heads) {
  const io::Node* said = config.reader().node().find(keys.head_dim);
  const bool automatic = said != nullptr && said->kind == io::NodeKind::kString && said->text == "auto";
  if (config.has(keys.head_dim) && !automatic) return static_cast<int>(config.integer(keys.head_dim, kHeadDim));
  const std::int64_t expand =
      config.has("mamba_expand") ? config.integer("mamba_expand", {1, 64}) : config.integer_or("expand", 2, {1, 64});
  return static_cast<int>(std::max<std::int64_t>(1, expand * hidden / heads));
}

Recurrence hf_mamba2(HfConfig& config, const Mamba2HfKeys& keys, std::int64_t hidden) {
  Recurrence out;
  out.heads = static_cast<int>(config.integer(keys.heads, kHeads));
  out.head_dim = mamba2_head_dim(config, keys, hidden, out.heads);
  out.groups = static_cast<int>(config.integer_or(keys.groups, keys.default_groups, kHeads));
  out.key_dim = static_cast<int>(config.integer_or(keys.state, keys.default_state, kStateSize));
  out.convolution = static_cast<int>(config.integer_or(keys.convolution, 4, kConvolution));
  out.chunk = config.integer_or(keys.chunk, keys.default_chunk, kChunk);
  out.convolution_bias = config.boolean_or(keys.convolution_bias, true);
  out.projection_bias = config.boolean_or(keys.projection_bias, false);
  if (config.clean()) require_multiple(config.reader(), keys.heads, out.heads, keys.groups, out.groups);
  return out;
}

BlockType block_of_one_part(const Blueprint& out) {
  BlockType block;
  block.hidden = out.frame.hidden;
  block.norms = 1;
  return block;
}

/// What a list of layers under `key` says, layer by layer.
std::vector<std::string> listed_kinds(HfConfig& config, std::string_view key) {
  std::vector<std::string> kinds;
  const io::Node* list = config.array(key);
  for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) kinds.push_back(list->items[i].text);
  return kinds;
}

/// Of Nemotron-H, by the letters of "hybrid_override_pattern" or the words of newer files.
enum class NemotronLayer { kMamba2, kAttention, kDense, kExperts };

std::optional<NemotronLayer> nemotron_layer(std::string_view word) {
  if (word == "M" || word == "mamba" || word == "linear_attention") return NemotronLayer::kMamba2;
  if (word == "*" || word == "attention" || word == "full_attention") return NemotronLayer::kAttention;
  if (word == "-" || word == "mlp") return NemotronLayer::kDense;
  if (word == "E" || word == "moe") return NemotronLayer::kExperts;
  return std::nullopt;
}

std::vector<NemotronLayer> nemotron_layers(HfConfig& config) {
  const bool listed = config.has("layers_block_type");
  const std::string_view key = listed ? "layers_block_type" : "hybrid_override_pattern";
  std::vector<std::string> words;
  if (listed) {
    words = listed_kinds(config, key);
  } else {
    for (const char letter : config.reader().string(key)) words.emplace_back(1, letter);
  }
  std::vector<NemotronLayer> layers;
  for (const std::string& word : words) {
    const auto layer = nemotron_layer(word);
    if (!layer) {
      config.reader().error_at(key, "unknown-name", fmt::format("unknown kind of layer \"{}\"", word),
                               "known are M (mamba), * (attention), - (mlp) and E (moe)");
      return {};
    }
    layers.push_back(*layer);
  }
  const std::int64_t count = config.integer_or("num_hidden_layers", std::ssize(layers), kLayers);
  if (config.clean() && count != std::ssize(layers)) {
    config.reader().error_at("num_hidden_layers", "inconsistent-value",
                             fmt::format("\"num_hidden_layers\" is {}, but \"{}\" has {}", count, key, layers.size()));
  }
  return layers;
}

/// Makes each kind of layer where the pattern first has it: keys of the others need not be there.
class NemotronBlocks {
 public:
  NemotronBlocks(HfConfig& config, const Blueprint& out) : config_(config), one_part_(block_of_one_part(out)) {}

  const BlockType& of(NemotronLayer layer) {
    auto& block = at(made_, static_cast<int>(layer));
    if (!block) block = make(layer);
    return *block;
  }

 private:
  BlockType make(NemotronLayer layer) {
    BlockType block = one_part_;
    switch (layer) {
      case NemotronLayer::kMamba2: block.recurrence = hf_mamba2(config_, kNemotronKeys, block.hidden); return block;
      case NemotronLayer::kAttention: block.attention = attention(); return block;
      case NemotronLayer::kDense: block.feed_forward.hidden = config_.integer("intermediate_size", kInner); break;
      case NemotronLayer::kExperts: add_experts(block.feed_forward); break;
    }
    block.feed_forward.gated = false;
    block.feed_forward.bias = config_.boolean_or("mlp_bias", false);
    hf_check_activation(config_, "mlp_hidden_act");
    return block;
  }

  Attention attention() {
    const bool older = !config_.has("head_dim") && config_.has("attention_head_dim");
    const int head_dim = older ? static_cast<int>(config_.integer("attention_head_dim", kHeadDim)) : 128;
    Attention out = hf_attention(config_, {}, one_part_.hidden, {.kv_heads = 8, .head_dim = head_dim});
    out.qkv_bias = out.output_bias = config_.boolean_or("attention_bias", false);
    return out;
  }

  void add_experts(FeedForward& out) {
    hf_routed_experts(config_, "n_routed_experts", "moe_intermediate_size", out);
    out.latent_hidden = config_.integer_or("moe_latent_size", 0, io::integer_limit("latent_hidden"));
    const bool shared = config_.integer_or("n_shared_experts", 1, {0, 64}) > 0;
    if (shared) out.shared_hidden = config_.integer("moe_shared_expert_intermediate_size", kInner);
    out.router_bias = true;
  }

  HfConfig& config_;
  BlockType one_part_;
  std::array<std::optional<BlockType>, 4> made_;
};

// Layers of one part each. Multi-token prediction layers (num_nextn_predict_layers) are not part of the main model.
Blueprint import_nemotron_h(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  NemotronBlocks blocks(config, out);
  for (const NemotronLayer layer : nemotron_layers(config)) out.chain.push_back(blocks.of(layer));
  return out;
}

Blueprint import_mamba2(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = block_of_one_part(out);
  block.recurrence = hf_mamba2(config, kMamba2HfKeys, block.hidden);
  hf_repeat(config, out, block);
  return out;
}

/// `block` in each layer, with a recurrence in place of its attention where `attends` does not say so.
void repeat_hybrid(HfConfig& config, Blueprint& out, const BlockType& block, const std::vector<bool>& attends) {
  BlockType recurrent = block;
  recurrent.attention = {};
  recurrent.recurrence = hf_mamba2(config, kBambaKeys, block.hidden);
  for (const bool attention : attends) out.chain.push_back(attention ? block : recurrent);
}

Blueprint import_bamba(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block;
  block.hidden = out.frame.hidden;
  block.attention = hf_attention(config, {}, block.hidden, {.kv_heads = 8});
  block.feed_forward.hidden = config.integer("intermediate_size", kInner);
  hf_check_activation(config, "hidden_act");
  const std::int64_t layers = config.integer("num_hidden_layers", kLayers);
  repeat_hybrid(config, out, block, hf_listed_layers(config, "attn_layer_indices", layers));
  return out;
}

// Every layer has a shared feed-forward, and beside it experts where there are any.
Blueprint import_granite_hybrid(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block;
  block.hidden = out.frame.hidden;
  block.attention = hf_attention(config, {}, block.hidden, {});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  const std::int64_t shared = config.integer("shared_intermediate_size", kInner);
  if (config.integer_or("num_local_experts", 8, {0, kExperts.max}) == 0) {
    block.feed_forward.hidden = shared;
  } else {
    hf_routed_experts(config, "num_local_experts", "intermediate_size", block.feed_forward);
    block.feed_forward.shared_hidden = shared;
  }
  hf_check_activation(config, "hidden_act");
  const std::int64_t layers = config.integer("num_hidden_layers", kLayers);
  std::vector<bool> attends(static_cast<std::size_t>(layers), false);
  const std::vector<std::string> kinds = listed_kinds(config, "layer_types");
  for (std::size_t i = 0; i < std::min(attends.size(), kinds.size()); ++i) {
    attends[i] = kinds[i] == "attention" || kinds[i] == "full_attention";
  }
  repeat_hybrid(config, out, block, attends);
  return out;
}

constexpr std::array kHybridFamilies{HfFamily{"nemotron_h", import_nemotron_h}, HfFamily{"mamba2", import_mamba2},
                                     HfFamily{"bamba", import_bamba},
                                     HfFamily{"granitemoehybrid", import_granite_hybrid}};

}  // namespace

std::span<const HfFamily> hf_hybrid_families() { return kHybridFamilies; }

}  // namespace tangram::model
