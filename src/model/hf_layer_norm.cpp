// Decoders with LayerNorm and an ungated feed-forward. Defaults are those of the configuration classes in
// huggingface/transformers (src/transformers/models/<type>/configuration_<type>.py).
#include <fmt/format.h>

#include <array>
#include <span>

#include "hf_config.hpp"

namespace tangram::model {

namespace {

BlockType classic_block(HfConfig& config, Blueprint& out, const HfKeys& keys, std::int64_t inner) {
  BlockType block;
  block.hidden = out.frame.hidden;
  block.attention = hf_attention(config, keys, block.hidden, {});
  block.attention.qkv_bias = block.attention.output_bias = true;
  block.feed_forward.hidden = inner;
  block.feed_forward.gated = false;
  block.feed_forward.bias = true;
  block.norm_bias = true;
  out.frame.final_norm_bias = true;
  hf_check_activation(config, keys.activation);
  return block;
}

// A learned position table needs its size.
void learn_positions(HfConfig& config, Blueprint& out, const HfKeys& keys, std::int64_t offset) {
  out.frame.learned_positions = config.integer(keys.positions, kTokens) + offset;
}

/// Of GPT-2, and of what took them from it.
constexpr HfKeys kGpt2Keys{.hidden = "n_embd",
                           .layers = "n_layer",
                           .heads = "n_head",
                           .kv_heads = "",
                           .inner = "n_inner",
                           .positions = "n_positions",
                           .activation = "activation_function"};

Blueprint import_gpt2(HfConfig& config) {
  Blueprint out = hf_frame(config, kGpt2Keys, true);
  learn_positions(config, out, kGpt2Keys, 0);
  const std::int64_t inner = config.integer_or(kGpt2Keys.inner, 4 * out.frame.hidden, kInner);
  hf_repeat(config, out, classic_block(config, out, kGpt2Keys, inner), kGpt2Keys);
  return out;
}

Blueprint import_gpt_neox(HfConfig& config) {
  constexpr HfKeys kKeys{.kv_heads = ""};
  Blueprint out = hf_frame(config, kKeys, false);
  BlockType block = classic_block(config, out, kKeys, config.integer(kKeys.inner, kInner));
  block.attention.qkv_bias = block.attention.output_bias = config.boolean_or("attention_bias", true);
  block.parallel_attention = config.boolean_or("use_parallel_residual", true);
  hf_repeat(config, out, block);
  return out;
}

// OPT keeps two extra rows in its position table (OPTLearnedPositionalEmbedding: offset 2). The 350M model normalizes
// after its sublayers, has therefore no final norm, and a token table of width 512 with projections.
Blueprint import_opt(HfConfig& config) {
  constexpr HfKeys kKeys{.kv_heads = "", .inner = "ffn_dim", .activation = "activation_function"};
  Blueprint out = hf_frame(config, kKeys, true);
  learn_positions(config, out, kKeys, 2);
  const std::int64_t width = config.integer_or("word_embed_proj_dim", out.frame.hidden, kWidth);
  if (width != out.frame.hidden) out.frame.embedding_projection = width;
  BlockType block = classic_block(config, out, kKeys, config.integer(kKeys.inner, kInner));
  const bool bias = config.boolean_or("enable_bias", true);
  block.attention.qkv_bias = block.attention.output_bias = block.feed_forward.bias = bias;
  const bool affine = config.boolean_or("layer_norm_elementwise_affine", true);
  block.norm_bias = affine;
  if (!affine) block.norms = 0;  // norms without parameters
  const bool norm_first = config.boolean_or("do_layer_norm_before", true);
  out.frame.final_norm = affine && norm_first && !config.boolean_or("_remove_final_layer_norm", false);
  out.frame.final_norm_bias = out.frame.final_norm;
  hf_repeat(config, out, block);
  return out;
}

// attention_types: [[["global", "local"], 12]] repeats the pattern twelve times.
std::vector<bool> neo_local_layers(HfConfig& config, std::size_t layers) {
  std::vector<bool> local;
  const io::Node* groups = config.array("attention_types");
  bool valid = true;
  for (std::size_t g = 0; groups != nullptr && g < groups->items.size(); ++g) {
    const std::vector<io::Node>& group = groups->items[g].items;
    valid = valid && group.size() == 2 && group[0].kind == io::NodeKind::kArray &&
            group[1].kind == io::NodeKind::kInteger && group[1].integer >= 0 && group[1].integer <= kLayers.max;
    for (std::int64_t i = 0; valid && i < group[1].integer && local.size() <= layers; ++i) {
      for (const io::Node& kind : group[0].items) local.push_back(kind.text == "local");
    }
  }
  if (groups == nullptr) {
    for (std::size_t i = 0; i < layers; ++i) local.push_back(i % 2 == 1);
  }
  if (!valid || local.size() != layers) {
    config.reader().error_at("attention_types", "inconsistent-value",
                             fmt::format("\"attention_types\" does not describe {} layers", layers),
                             "expected [[[\"global\", \"local\"], layers / 2]]");
    local.assign(layers, false);
  }
  return local;
}

Blueprint import_gpt_neo(HfConfig& config) {
  constexpr HfKeys kKeys{
      .layers = "num_layers", .heads = "num_heads", .kv_heads = "", .activation = "activation_function"};
  Blueprint out = hf_frame(config, kKeys, true);
  learn_positions(config, out, kKeys, 0);
  const std::int64_t inner = config.integer_or(kKeys.inner, 4 * out.frame.hidden, kInner);
  BlockType block = classic_block(config, out, kKeys, inner);
  block.attention.qkv_bias = false;
  hf_repeat(config, out, block, kKeys);
  const std::int64_t window = config.integer_or("window_size", 256, kOptionalTokens);
  const std::vector<bool> local = neo_local_layers(config, out.chain.size());
  for (std::size_t i = 0; i < local.size(); ++i) out.chain[i].attention.sliding_window = local[i] ? window : 0;
  return out;
}

// Falcon-7B: one key-value head, one norm for both branches. Falcon-40B ("new decoder architecture"): groups, two
// norms.
Blueprint import_falcon(HfConfig& config) {
  const bool grouped = config.boolean_or("new_decoder_architecture", false);
  const bool single = config.boolean_or("multi_query", true);
  HfKeys keys;
  keys.kv_heads = grouped ? "num_kv_heads" : "";
  keys.activation = "activation";
  Blueprint out = hf_frame(config, keys, true);
  const std::int64_t inner = config.integer_or("ffn_hidden_size", 4 * out.frame.hidden, kInner);
  BlockType block = classic_block(config, out, keys, inner);
  if (!grouped && single) block.attention.kv_heads = 1;
  const bool bias = config.boolean_or("bias", false);
  block.attention.qkv_bias = block.attention.output_bias = block.feed_forward.bias = bias;
  block.parallel_attention = grouped || config.boolean_or("parallel_attn", true);
  const std::int64_t branches = config.integer_or("num_ln_in_parallel_attn", grouped ? 2 : 1, {1, 2});
  block.norms = block.parallel_attention ? static_cast<int>(branches) : 2;
  hf_repeat(config, out, block);
  return out;
}

// No positions (ALiBi); a norm behind the embedding, which is counted with it.
Blueprint import_bloom(HfConfig& config) {
  HfKeys keys{.layers = "n_layer", .heads = "n_head", .kv_heads = "", .activation = ""};
  if (config.has("n_embed")) keys.hidden = "n_embed";
  if (config.has("num_attention_heads")) keys.heads = "num_attention_heads";
  Blueprint out = hf_frame(config, keys, true);
  out.frame.extra_embedding_parameters = 2 * out.frame.hidden;
  hf_repeat(config, out, classic_block(config, out, keys, 4 * out.frame.hidden), keys);
  return out;
}

// No positions (ALiBi), and no biases anywhere.
Blueprint import_mpt(HfConfig& config) {
  constexpr HfKeys kKeys{.hidden = "d_model",
                         .layers = "n_layers",
                         .heads = "n_heads",
                         .kv_heads = "",
                         .positions = "max_seq_len",
                         .activation = ""};
  Blueprint out = hf_frame(config, kKeys, true);
  const std::int64_t ratio = config.integer_or("expansion_ratio", 4, {1, 64});
  BlockType block = classic_block(config, out, kKeys, ratio * out.frame.hidden);
  block.attention.qkv_bias = block.attention.output_bias = block.feed_forward.bias = false;
  block.norm_bias = out.frame.final_norm_bias = false;
  hf_repeat(config, out, block, kKeys);
  return out;
}

/// A head with a bias, which is counted with the embedding.
void add_head_bias(Blueprint& out) {
  if (!out.frame.tied_embeddings) out.frame.extra_embedding_parameters += out.frame.vocabulary;
}

// Attention and feed-forward side by side behind one norm.
Blueprint import_phi(HfConfig& config) {
  Blueprint out = hf_frame(config, {}, false);
  BlockType block = classic_block(config, out, {}, config.integer("intermediate_size", kInner));
  block.parallel_attention = true;
  block.norms = 1;
  if (config.boolean_or("qk_layernorm", false)) hf_refuse(config, "has norms of queries and keys that have biases");
  add_head_bias(out);
  hf_repeat(config, out, block);
  return out;
}

Blueprint import_gptj(HfConfig& config) {
  Blueprint out = hf_frame(config, kGpt2Keys, false);
  BlockType block =
      classic_block(config, out, kGpt2Keys, config.integer_or(kGpt2Keys.inner, 4 * out.frame.hidden, kInner));
  block.attention.qkv_bias = block.attention.output_bias = false;
  block.parallel_attention = true;
  block.norms = 1;
  add_head_bias(out);
  hf_repeat(config, out, block, kGpt2Keys);
  return out;
}

// GPT-2 with one key-value head (multi_query).
Blueprint import_gpt_bigcode(HfConfig& config) {
  Blueprint out = import_gpt2(config);
  if (!config.boolean_or("multi_query", true)) return out;
  for (BlockType& type : out.chain) type.attention.kv_heads = 1;
  return out;
}

Blueprint import_starcoder2(HfConfig& config) {
  constexpr HfKeys kKeys{};
  Blueprint out = hf_frame(config, kKeys, true);
  BlockType block = classic_block(config, out, kKeys, config.integer(kKeys.inner, kInner));
  const bool bias = config.boolean_or("use_bias", true);
  block.attention.qkv_bias = block.attention.output_bias = block.feed_forward.bias = bias;
  block.attention.sliding_window = config.integer_or("sliding_window", 0, kOptionalTokens);
  hf_repeat(config, out, block);
  return out;
}

constexpr std::array<HfFamily, 11> kLayerNormFamilies{{{"gpt2", import_gpt2},
                                                       {"bloom", import_bloom},
                                                       {"mpt", import_mpt},
                                                       {"phi", import_phi},
                                                       {"gptj", import_gptj},
                                                       {"gpt_bigcode", import_gpt_bigcode},
                                                       {"starcoder2", import_starcoder2},
                                                       {"gpt_neox", import_gpt_neox},
                                                       {"opt", import_opt},
                                                       {"gpt_neo", import_gpt_neo},
                                                       {"falcon", import_falcon}}};

}  // namespace

std::span<const HfFamily> hf_layer_norm_families() { return kLayerNormFamilies; }

}  // namespace tangram::model
