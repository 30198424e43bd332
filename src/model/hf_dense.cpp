// Dense decoders with RMSNorm and a gated feed-forward. Defaults are those of the configuration classes in
// huggingface/transformers (src/transformers/models/<type>/configuration_<type>.py).
#include <fmt/format.h>

#include <array>
#include <ranges>
#include <span>

#include "hf_config.hpp"

namespace tangram::model {

namespace {

BlockType gated_block(HfConfig& config, Blueprint& out, const HfKeys& keys, const HfDefaults& defaults) {
  BlockType block;
  block.hidden = out.frame.hidden;
  block.attention = hf_attention(config, keys, block.hidden, defaults);
  block.feed_forward.hidden = config.integer(keys.inner, kInner);
  hf_check_activation(config, keys.activation);
  return block;
}

Blueprint import_llama_with(HfConfig& config, bool tied_default) {
  Blueprint out = hf_frame(config, {}, tied_default);
  BlockType block = gated_block(config, out, {}, {});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  block.feed_forward.bias = config.boolean_or("mlp_bias", false);
  hf_repeat(config, out, block);
  return out;
}

Blueprint import_llama(HfConfig& config) { return import_llama_with(config, false); }
// Llama's, as far as sizes go: SmolLM3 leaves positions out of every fourth layer, Granite scales what it adds.
Blueprint import_tied_llama(HfConfig& config) { return import_llama_with(config, true); }

Blueprint import_mistral(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = gated_block(config, out, {}, {.kv_heads = 8});
  // Absent means the class default of 4096; null means none.
  const bool absent = config.reader().node().find("sliding_window") == nullptr;
  block.attention.sliding_window = config.integer_or("sliding_window", absent ? 4096 : 0, kOptionalTokens);
  hf_repeat(config, out, block);
  return out;
}

// Llama's layers with their matrices stored in fewer pieces; its class reads no bias, and absent means no window.
Blueprint import_phi3(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = gated_block(config, out, {}, {});
  block.attention.sliding_window = config.integer_or("sliding_window", 0, kOptionalTokens);
  hf_repeat(config, out, block);
  return out;
}

// Turns pairs of values that are beside each other.
Blueprint import_ernie(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, true);
  BlockType block = gated_block(config, out, {}, {.kv_heads = 2, .head_dim = 128});
  const bool bias = config.boolean_or("use_bias", false);
  block.attention.qkv_bias = block.attention.output_bias = block.feed_forward.bias = bias;
  hf_repeat(config, out, block);
  return out;
}

Blueprint import_seed_oss(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = gated_block(config, out, {}, {.kv_heads = 8, .head_dim = 128});
  block.attention.qkv_bias = config.boolean_or("attention_bias", true);
  block.attention.output_bias = config.boolean_or("attention_out_bias", false);
  block.feed_forward.bias = config.boolean_or("mlp_bias", false);
  hf_repeat(config, out, block);
  return out;
}

// GLM-4 of 2024 as Llama, that of 2025 with norms behind attention and feed-forward as well; the output has no bias.
Blueprint import_glm_with(HfConfig& config, int norms) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = gated_block(config, out, {}, {.kv_heads = 2, .head_dim = 128});
  block.attention.qkv_bias = config.boolean_or("attention_bias", false);
  block.norms = norms;
  hf_repeat(config, out, block);
  return out;
}
Blueprint import_glm(HfConfig& config) { return import_glm_with(config, 2); }
Blueprint import_glm4(HfConfig& config) { return import_glm_with(config, 4); }

// LayerNorm, which has biases here and none in Command R.
Blueprint import_stablelm(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = gated_block(config, out, {}, {});
  block.attention.qkv_bias = config.boolean_or("use_qkv_bias", false);
  block.parallel_attention = config.boolean_or("use_parallel_residual", false);
  block.norms = block.parallel_attention ? 1 : 2;
  block.norm_bias = out.frame.final_norm_bias = true;
  if (config.boolean_or("qk_layernorm", false))
    hf_refuse(config, "has norms of each head's queries and keys, each its own");
  hf_repeat(config, out, block);
  return out;
}

// One norm before attention and feed-forward, which run side by side.
Blueprint import_cohere(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, true);
  BlockType block = gated_block(config, out, {}, {});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  block.parallel_attention = true;
  block.norms = 1;
  if (config.boolean_or("use_qk_norm", false))
    hf_refuse(config, "has norms of each head's queries and keys, each its own");
  hf_repeat(config, out, block);
  return out;
}

// Three layers of four have a window.
Blueprint import_cohere2(HfConfig& config) {
  Blueprint out = import_cohere(config);
  const std::int64_t window = config.integer_or("sliding_window", 4096, kOptionalTokens);
  const std::int64_t period = config.integer_or("sliding_window_pattern", 4, kLayers);
  for (std::size_t i = 0; i < out.chain.size(); ++i) {
    if ((static_cast<std::int64_t>(i) + 1) % period != 0) out.chain[i].attention.sliding_window = window;
  }
  return out;
}

// Qwen2 and Qwen3 use the window, when they use it at all, from layer max_window_layers on.
void repeat_with_window(HfConfig& config, Blueprint& out, const BlockType& block) {
  const bool used = config.boolean_or("use_sliding_window", false);
  const std::int64_t window = config.integer_or("sliding_window", 4096, kOptionalTokens);
  const std::int64_t first = config.integer_or("max_window_layers", 28, {0, kLayers.max});
  hf_repeat(config, out, block);
  if (!used) return;
  for (BlockType& type : out.chain | std::views::drop(first)) type.attention.sliding_window = window;
}

Blueprint import_qwen2(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = gated_block(config, out, {}, {.kv_heads = 32});
  block.attention.qkv_bias = true;
  repeat_with_window(config, out, block);
  return out;
}

Blueprint import_qwen3(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = gated_block(config, out, {}, {.kv_heads = 32, .head_dim = 128});
  block.attention.qk_norm = true;
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  repeat_with_window(config, out, block);
  return out;
}

// The activation is called hidden_activation in newer files and hidden_act in older ones.
HfKeys gemma_keys(const HfConfig& config) {
  HfKeys keys;
  if (config.has("hidden_activation")) keys.activation = "hidden_activation";
  return keys;
}

Blueprint import_gemma(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, true);
  BlockType block = gated_block(config, out, gemma_keys(config), {.kv_heads = 16, .head_dim = 256});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  hf_repeat(config, out, block);
  return out;
}

Blueprint import_gemma2(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, true);
  BlockType block = gated_block(config, out, gemma_keys(config), {.kv_heads = 4, .head_dim = 256});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  block.norms = 4;  // before and after both attention and feed-forward
  hf_repeat(config, out, block);
  const std::int64_t window = config.integer_or("sliding_window", 4096, kOptionalTokens);
  for (std::size_t i = 0; i < out.chain.size(); i += 2) out.chain[i].attention.sliding_window = window;
  return out;
}

// Of six layers the last sees everything; newer files list the layers instead of their period.
void set_gemma3_windows(HfConfig& config, std::vector<BlockType>& chain) {
  const std::int64_t window = config.integer_or("sliding_window", 4096, kOptionalTokens);
  const std::int64_t period = config.integer_or("sliding_window_pattern", 6, kLayers);
  const io::Node* listed = config.array("layer_types");
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const bool is_listed = listed != nullptr && i < listed->items.size();
    const bool full =
        is_listed ? listed->items[i].text == "full_attention" : (static_cast<std::int64_t>(i) + 1) % period == 0;
    if (!full) chain[i].attention.sliding_window = window;
  }
}

Blueprint import_gemma3_text(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, true);
  BlockType block = gated_block(config, out, gemma_keys(config), {.kv_heads = 4, .head_dim = 256});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  block.attention.qk_norm = true;
  block.norms = 4;  // as in Gemma 2
  hf_repeat(config, out, block);
  set_gemma3_windows(config, out.chain);
  return out;
}

constexpr std::array<HfFamily, 20> kDenseFamilies{{{"llama", import_llama},
                                                   {"smollm3", import_tied_llama},
                                                   {"granite", import_tied_llama},
                                                   {"ernie4_5", import_ernie},
                                                   {"seed_oss", import_seed_oss},
                                                   {"glm", import_glm},
                                                   {"glm4", import_glm4},
                                                   {"stablelm", import_stablelm},
                                                   {"cohere", import_cohere},
                                                   {"cohere2", import_cohere2},
                                                   {"mistral", import_mistral},
                                                   {"phi3", import_phi3},
                                                   {"qwen2", import_qwen2},
                                                   {"qwen3", import_qwen3},
                                                   {"gemma", import_gemma},
                                                   {"gemma2", import_gemma2},
                                                   {"gemma3_text", import_gemma3_text},
                                                   {"qwen2_5_vl_text", import_qwen2},
                                                   {"qwen2_5_omni_text", import_qwen2},
                                                   {"qwen3_vl_text", import_qwen3}}};

}  // namespace

std::span<const HfFamily> hf_dense_families() { return kDenseFamilies; }

}  // namespace tangram::model
