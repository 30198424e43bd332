// Mixtures of experts. Defaults are those of the configuration classes in huggingface/transformers
// (src/transformers/models/<type>/configuration_<type>.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "hf_config.hpp"
#include "tangram/base/at.hpp"

namespace tangram::model {

namespace {

void check_choice_of_experts(HfConfig& config, const FeedForward& f, std::string_view per_token, std::string_view all) {
  if (!config.clean() || f.experts_per_token <= f.experts) return;
  config.reader().error_at(
      per_token, "inconsistent-value",
      fmt::format("\"{}\" ({}) is more than \"{}\" ({})", per_token, f.experts_per_token, all, f.experts));
}

}  // namespace

void hf_routed_experts(HfConfig& config, std::string_view count_key, std::string_view hidden_key, FeedForward& out) {
  constexpr std::string_view kPerToken = "num_experts_per_tok";
  out.hidden = 0;
  out.experts = static_cast<int>(config.integer(count_key, kExperts));
  out.experts_per_token = static_cast<int>(config.integer(kPerToken, kExperts));
  out.expert_hidden = config.integer(hidden_key, kInner);
  check_choice_of_experts(config, out, kPerToken, count_key);
}

std::vector<bool> hf_listed_layers(HfConfig& config, std::string_view key, std::int64_t layers) {
  std::vector<bool> listed(static_cast<std::size_t>(layers), false);
  const io::Node* list = config.array(key);
  for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
    const io::Node& item = list->items[i];
    const bool valid = item.kind == io::NodeKind::kInteger && item.integer >= 0 && item.integer < layers;
    if (valid) {
      at(listed, item.integer) = true;
    } else {
      config.reader().error_at(item, fmt::format("/{}/{}", key, i), "out-of-range",
                               fmt::format("\"{}\" must list layers between 0 and {}", key, layers - 1));
    }
  }
  return listed;
}

namespace {

BlockType attention_block(HfConfig& config, const Blueprint& out, const HfDefaults& defaults) {
  BlockType block;
  block.hidden = out.frame.hidden;
  block.attention = hf_attention(config, {}, block.hidden, defaults);
  hf_check_activation(config, "hidden_act");
  return block;
}

Blueprint import_mixtral(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = attention_block(config, out, {.kv_heads = 8});
  block.attention.sliding_window = config.integer_or("sliding_window", 0, kOptionalTokens);
  hf_routed_experts(config, "num_local_experts", "intermediate_size", block.feed_forward);
  hf_repeat(config, out, block);
  return out;
}

Blueprint import_granitemoe(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, true);
  BlockType block = attention_block(config, out, {});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  hf_routed_experts(config, "num_local_experts", "intermediate_size", block.feed_forward);
  hf_repeat(config, out, block);
  return out;
}

// Mixtral with LayerNorm and biases; that of the head is counted with the embedding.
Blueprint import_phimoe(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = attention_block(config, out, {.kv_heads = 8});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  block.attention.sliding_window = config.integer_or("sliding_window", 0, kOptionalTokens);
  block.norm_bias = out.frame.final_norm_bias = true;
  if (config.boolean_or("lm_head_bias", false)) out.frame.extra_embedding_parameters = out.frame.vocabulary;
  hf_routed_experts(config, "num_local_experts", "intermediate_size", block.feed_forward);
  hf_repeat(config, out, block);
  return out;
}

// Qwen: layer i is a mixture of experts unless mlp_only_layers lists it or decoder_sparse_step does not divide i + 1.
Blueprint import_qwen_experts(HfConfig& config, BlockType block, Blueprint out) {
  BlockType dense = block;
  hf_routed_experts(config, "num_experts", "moe_intermediate_size", block.feed_forward);
  const std::int64_t layers = config.integer("num_hidden_layers", kLayers);
  const std::int64_t step = config.integer_or("decoder_sparse_step", 1, kLayers);
  std::vector<bool> is_dense = hf_listed_layers(config, "mlp_only_layers", layers);
  for (std::int64_t i = 0; i < layers; ++i) {
    if ((i + 1) % step != 0) at(is_dense, i) = true;
  }
  dense.feed_forward = FeedForward{};
  if (std::find(is_dense.begin(), is_dense.end(), true) != is_dense.end()) {
    dense.feed_forward.hidden = config.integer("intermediate_size", kInner);
  }
  for (const bool dense_here : is_dense) out.chain.push_back(dense_here ? dense : block);
  return out;
}

Blueprint import_qwen2_moe(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = attention_block(config, out, {.kv_heads = 16});
  block.attention.qkv_bias = config.boolean_or("qkv_bias", true);
  block.feed_forward.shared_hidden = config.integer("shared_expert_intermediate_size", kInner);
  block.feed_forward.shared_gate = true;
  return import_qwen_experts(config, block, std::move(out));
}

Blueprint import_qwen3_moe(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = attention_block(config, out, {.kv_heads = 4});
  block.attention.qk_norm = true;
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  return import_qwen_experts(config, block, std::move(out));
}

// As listed, or every full_attention_interval-th (4), counted from 1.
bool qwen3_next_attends(const io::Node* listed, std::int64_t interval, std::int64_t layer) {
  if (listed == nullptr || layer >= std::ssize(listed->items)) return (layer + 1) % interval == 0;
  return at(listed->items, layer).text == "full_attention";
}

// Three layers of four have the gated delta rule in place of attention, whose output is gated in the others.
Blueprint import_qwen3_next(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = attention_block(config, out, {.kv_heads = 2, .head_dim = 256});
  block.attention.qk_norm = block.attention.output_gate = true;
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", false);
  block.feed_forward.shared_hidden = config.integer("shared_expert_intermediate_size", kInner);
  block.feed_forward.shared_gate = true;
  Recurrence delta;
  delta.kind = RecurrenceKind::kGatedDelta;
  delta.heads = static_cast<int>(config.integer_or("linear_num_value_heads", 32, kHeads));
  delta.head_dim = static_cast<int>(config.integer_or("linear_value_head_dim", 128, kHeadDim));
  delta.groups = static_cast<int>(config.integer_or("linear_num_key_heads", 16, kHeads));
  delta.key_dim = static_cast<int>(config.integer_or("linear_key_head_dim", 128, kHeadDim));
  delta.convolution =
      static_cast<int>(config.integer_or("linear_conv_kernel_dim", 4, io::integer_limit("convolution")));
  delta.chunk = 64;  // of the class's kernels
  delta.convolution_bias = false;
  if (config.clean()) {
    require_multiple(config.reader(), "linear_num_value_heads", delta.heads, "linear_num_key_heads", delta.groups);
  }
  out = import_qwen_experts(config, block, std::move(out));
  const io::Node* listed = config.array("layer_types");
  const std::int64_t interval = config.integer_or("full_attention_interval", 4, kLayers);
  for (std::int64_t i = 0; i < std::ssize(out.chain); ++i) {
    if (qwen3_next_attends(listed, interval, i)) continue;
    at(out.chain, i).attention = {};
    at(out.chain, i).recurrence = delta;
  }
  return out;
}

Attention latent_attention(HfConfig& config) {
  Attention out;
  out.kind = AttentionKind::kLatent;
  out.heads = static_cast<int>(config.integer("num_attention_heads", kHeads));
  out.kv_heads = out.heads;
  out.q_lora_rank = static_cast<int>(config.integer_or("q_lora_rank", 0, {0, kWidth.max}));
  out.kv_lora_rank = static_cast<int>(config.integer("kv_lora_rank", kWidth));
  out.qk_nope_head_dim = static_cast<int>(config.integer("qk_nope_head_dim", kHeadDim));
  out.qk_rope_head_dim = static_cast<int>(config.integer("qk_rope_head_dim", kHeadDim));
  out.v_head_dim = static_cast<int>(config.integer("v_head_dim", kHeadDim));
  out.head_dim = out.qk_nope_head_dim + out.qk_rope_head_dim;
  out.qkv_bias = out.output_bias = config.boolean_or("attention_bias", false);
  return out;
}

/// Groups that a token's experts are in; of version 3 as the configuration class has them where nothing is said.
void hf_expert_groups(HfConfig& config, bool has_groups, FeedForward& out) {
  constexpr GroupKeys kKeys{"n_group", "topk_group"};
  const auto groups = static_cast<int>(config.integer_or(kKeys.groups, has_groups ? 8 : 1, kExperts));
  const auto chosen = static_cast<int>(config.integer_or(kKeys.chosen, has_groups ? 4 : 1, kExperts));
  if (!has_groups) return;
  out.expert_groups = groups;
  out.groups_per_token = std::min(groups, chosen);
  if (config.clean()) check_expert_groups(config.reader(), kKeys, out);
}

/// How experts are chosen (topk_method).
struct ExpertChoice {
  bool corrected = false;  // with a correction of the load
  bool grouped = false;
};

// DeepSeek: layer i is a mixture of experts from first_k_dense_replace on where moe_layer_freq divides i. Multi-token
// prediction layers (num_nextn_predict_layers) are not part of the main model.
Blueprint import_with_dense_first(HfConfig& config, Blueprint out, BlockType dense, const ExpertChoice& choice) {
  const std::int64_t layers = config.integer("num_hidden_layers", kLayers);
  const std::int64_t first = config.integer_or("first_k_dense_replace", 0, {0, kLayers.max});
  const std::int64_t step = config.integer_or("moe_layer_freq", 1, kLayers);
  const bool has_experts = config.has("n_routed_experts");
  BlockType expert = dense;
  if (has_experts) {
    hf_routed_experts(config, "n_routed_experts", "moe_intermediate_size", expert.feed_forward);
    const std::int64_t shared = config.integer_or("n_shared_experts", 0, {0, 64});
    expert.feed_forward.shared_hidden = shared * expert.feed_forward.expert_hidden;
    expert.feed_forward.router_bias = choice.corrected;
    hf_expert_groups(config, choice.grouped, expert.feed_forward);
  }
  const auto is_expert = [&](std::int64_t i) { return has_experts && i >= first && i % step == 0; };
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool expert_here = is_expert(i);
    if (!expert_here && dense.feed_forward.hidden == 0) {
      dense.feed_forward.hidden = config.integer("intermediate_size", kInner);
    }
    out.chain.push_back(expert_here ? expert : dense);
  }
  return out;
}

Blueprint import_deepseek(HfConfig& config, const ExpertChoice& choice) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType dense;
  dense.hidden = out.frame.hidden;
  dense.attention = latent_attention(config);
  hf_check_activation(config, "hidden_act");
  return import_with_dense_first(config, std::move(out), dense, choice);
}

// GLM-4.5 and 4.6: DeepSeek-V3's experts beside attention with groups of heads, whose output has no bias.
Blueprint import_glm4_moe(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType dense = attention_block(config, out, {.kv_heads = 8, .head_dim = 128});
  dense.attention.qkv_bias = config.boolean_or("attention_bias", false);
  dense.attention.qk_norm = config.boolean_or("use_qk_norm", false);
  return import_with_dense_first(config, std::move(out), dense, {true, false});
}

Blueprint import_deepseek_v2(HfConfig& config) {
  return import_deepseek(config, {false, config.string_or("topk_method", "greedy") == "group_limited_greedy"});
}

Blueprint import_deepseek_v3(HfConfig& config) {
  return import_deepseek(config, {config.string_or("topk_method", "noaux_tc") == "noaux_tc", true});
}

// Layer i has experts where interleave_moe_layer_step divides i + 1, or where moe_layers lists it.
std::vector<bool> llama4_expert_layers(HfConfig& config, std::int64_t layers) {
  if (config.has("moe_layers")) return hf_listed_layers(config, "moe_layers", layers);
  const std::int64_t step = config.integer_or("interleave_moe_layer_step", 1, kLayers);
  std::vector<bool> experts(static_cast<std::size_t>(layers), false);
  for (std::int64_t i = step - 1; i < layers; i += step) at(experts, i) = true;
  return experts;
}

// Layers with positions attend within chunks, which a window of the same size covers; those without see everything.
void set_llama4_chunks(HfConfig& config, std::vector<BlockType>& chain) {
  const std::int64_t chunk = config.integer_or("attention_chunk_size", 0, kOptionalTokens);
  const std::int64_t interval = config.integer_or("no_rope_layer_interval", 4, kLayers);
  for (std::int64_t i = 0; i < std::ssize(chain); ++i) {
    if ((i + 1) % interval != 0) at(chain, i).attention.sliding_window = chunk;
  }
}

// A shared expert beside the routed ones, both of intermediate_size; norms of queries and keys have no parameters.
Blueprint import_llama4_text(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType expert = attention_block(config, out, {.kv_heads = 8});
  expert.attention.qkv_bias = expert.attention.output_bias = config.boolean_or("attention_bias", false);
  BlockType dense = expert;
  hf_routed_experts(config, "num_local_experts", "intermediate_size", expert.feed_forward);
  expert.feed_forward.shared_hidden = expert.feed_forward.expert_hidden;
  const std::int64_t layers = config.integer("num_hidden_layers", kLayers);
  for (const bool is_expert : llama4_expert_layers(config, layers)) {
    if (!is_expert && dense.feed_forward.hidden == 0) {
      dense.feed_forward.hidden = config.integer("intermediate_size_mlp", kInner);
    }
    out.chain.push_back(is_expert ? expert : dense);
  }
  set_llama4_chunks(config, out.chain);
  return out;
}

// As listed, or every second layer from the first on.
bool gpt_oss_windows(const io::Node* listed, std::int64_t layer) {
  if (listed == nullptr || layer >= std::ssize(listed->items)) return layer % 2 == 0;
  return at(listed->items, layer).text == "sliding_attention";
}

// All products have biases. The sinks, a value for each head that softmax sums with its scores, are left out.
Blueprint import_gpt_oss(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = attention_block(config, out, {.kv_heads = 8, .head_dim = 64});
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", true);
  hf_routed_experts(config, "num_local_experts", "intermediate_size", block.feed_forward);
  block.feed_forward.bias = block.feed_forward.router_bias = true;
  hf_repeat(config, out, block);
  const std::int64_t window = config.integer_or("sliding_window", 128, kOptionalTokens);
  const io::Node* listed = config.array("layer_types");
  for (std::int64_t i = 0; i < std::ssize(out.chain); ++i) {
    if (gpt_oss_windows(listed, i)) at(out.chain, i).attention.sliding_window = window;
  }
  return out;
}

constexpr std::array<HfFamily, 13> kExpertFamilies{{{"mixtral", import_mixtral},
                                                    {"granitemoe", import_granitemoe},
                                                    {"phimoe", import_phimoe},
                                                    {"glm4_moe", import_glm4_moe},
                                                    {"qwen2_moe", import_qwen2_moe},
                                                    {"qwen3_moe", import_qwen3_moe},
                                                    {"qwen3_next", import_qwen3_next},
                                                    {"qwen3_vl_moe_text", import_qwen3_moe},
                                                    {"llama4_text", import_llama4_text},
                                                    {"deepseek_v2", import_deepseek_v2},
                                                    {"deepseek_v3", import_deepseek_v3},
                                                    {"kimi_k2", import_deepseek_v3},
                                                    {"gpt_oss", import_gpt_oss}}};

}  // namespace

std::span<const HfFamily> hf_expert_families() { return kExpertFamilies; }

}  // namespace tangram::model
