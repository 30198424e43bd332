// The `architecture` section of tangram.model/1; its keys are described in read_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "blueprint.hpp"

namespace tangram::model {

namespace {

constexpr io::IntegerRange kHeadDim{1, 65'536};
constexpr io::IntegerRange kRank{0, 1'000'000};
constexpr io::IntegerRange kParameters{0, 1'000'000'000'000};

// True: LayerNorm, whose norms have a bias.
bool read_norm(io::ObjectReader& reader, bool fallback) {
  return reader.choice_or<bool>("norm", fallback, {{"rmsnorm", false}, {"layernorm", true}});
}

bool clean(const io::ObjectReader& reader, std::size_t before) { return reader.sink().size() == before; }

void read_latent_attention(io::ObjectReader& reader, io::ObjectReader& mla, Attention& out) {
  out.kind = AttentionKind::kLatent;
  out.q_lora_rank = static_cast<int>(mla.integer_or("q_lora_rank", 0, kRank));
  out.kv_lora_rank = static_cast<int>(mla.integer("kv_lora_rank", {1, kRank.max}));
  out.qk_nope_head_dim = static_cast<int>(mla.integer("qk_nope_head_dim", kHeadDim));
  out.qk_rope_head_dim = static_cast<int>(mla.integer("qk_rope_head_dim", kHeadDim));
  out.v_head_dim = static_cast<int>(mla.integer("v_head_dim", kHeadDim));
  mla.finish();
  out.kv_heads = out.heads;
  out.head_dim = out.qk_nope_head_dim + out.qk_rope_head_dim;
  for (const std::string_view key : {"kv_heads", "head_dim", "qk_norm"}) {
    if (!reader.has(key)) continue;
    reader.ignore(key);
    reader.error_at(key, "conflicting-keys", fmt::format("\"{}\" has no meaning with \"mla\"", key), "remove it");
  }
}

void read_head_attention(io::ObjectReader& reader, std::int64_t hidden, Attention& out) {
  const std::size_t before = reader.sink().size();
  out.kv_heads = static_cast<int>(reader.integer_or("kv_heads", out.heads, kHeads));
  out.head_dim = static_cast<int>(reader.integer_or("head_dim", 0, kHeadDim));
  out.qk_norm = reader.boolean_or("qk_norm", false);
  if (!clean(reader, before)) return;
  require_multiple(reader, "heads", out.heads, "kv_heads", out.kv_heads,
                   "every key-value head serves equally many heads");
  if (out.head_dim > 0) return;
  require_multiple(reader, "hidden", hidden, "heads", out.heads, "give \"head_dim\" when heads do not span hidden");
  out.head_dim = static_cast<int>(std::max<std::int64_t>(1, hidden / out.heads));
}

Attention read_attention(io::ObjectReader& reader, std::int64_t hidden, bool causal) {
  Attention out;
  out.heads = static_cast<int>(reader.integer("heads", kHeads));
  if (auto mla = reader.object_if("mla")) {
    read_latent_attention(reader, *mla, out);
  } else {
    read_head_attention(reader, hidden, out);
  }
  out.sliding_window = reader.integer_or("sliding_window", 0, kOptionalTokens);
  out.causal = reader.boolean_or("causal", causal);
  out.qkv_bias = reader.boolean_or("qkv_bias", false);
  out.output_bias = reader.boolean_or("output_bias", false);
  return out;
}

void read_experts(io::ObjectReader& moe, FeedForward& out) {
  const std::size_t before = moe.sink().size();
  out.experts = static_cast<int>(moe.integer("experts", kExperts));
  out.experts_per_token = static_cast<int>(moe.integer("experts_per_token", kExperts));
  out.expert_hidden = moe.integer("expert_hidden", kInner);
  out.shared_hidden = moe.integer_or("shared_hidden", 0, {0, kInner.max});
  out.shared_gate = moe.boolean_or("shared_gate", false);
  out.router_bias = moe.boolean_or("router_bias", false);
  if (!clean(moe, before)) return;
  if (out.experts_per_token > out.experts) {
    moe.error_at("experts_per_token", "inconsistent-value",
                 fmt::format("a token goes to {} experts, but there are only {}", out.experts_per_token, out.experts),
                 fmt::format("use at most {}", out.experts));
  }
  if (out.shared_gate && out.shared_hidden == 0) {
    moe.error_at("shared_gate", "inconsistent-value", "\"shared_gate\" without a shared expert",
                 "give \"shared_hidden\"");
  }
}

/// What a block looks like where it is dense and where it is a mixture of experts.
struct Prototype {
  BlockType block;  ///< with both feed-forwards; hidden 0: no dense one was given
  std::optional<io::ObjectReader> moe;
};

struct BlockDefaults {
  std::int64_t hidden = 0;
  bool norm_bias = false;
  bool causal = true;
};

// Does not finish the `moe` section: a chain has more keys there than a single type.
Prototype read_block(io::ObjectReader& reader, const BlockDefaults& defaults) {
  Prototype out;
  BlockType& block = out.block;
  block.hidden = defaults.hidden;
  block.attention = read_attention(reader, block.hidden, defaults.causal);
  FeedForward& f = block.feed_forward;
  out.moe = reader.object_if("moe");
  const bool dense_needed = !reader.has("moe") || reader.has("ffn_hidden");
  f.hidden = dense_needed ? reader.integer("ffn_hidden", kInner) : 0;
  f.gated = reader.boolean_or("gated", true);
  f.bias = reader.boolean_or("ffn_bias", false);
  if (out.moe) read_experts(*out.moe, f);
  block.norms = static_cast<int>(reader.integer_or("norms_per_block", 2, {0, 8}));
  block.norm_bias = read_norm(reader, defaults.norm_bias);
  block.parallel_attention = reader.boolean_or("parallel_attention", false);
  return out;
}

BlockType dense_variant(BlockType block) {
  FeedForward dense;
  dense.hidden = block.feed_forward.hidden;
  dense.gated = block.feed_forward.gated;
  dense.bias = block.feed_forward.bias;
  block.feed_forward = dense;
  return block;
}

BlockType expert_variant(BlockType block) {
  block.feed_forward.hidden = 0;
  return block;
}

void check_dense_use(io::ObjectReader& reader, std::int64_t ffn_hidden, std::int64_t dense_layers) {
  if (dense_layers > 0 && ffn_hidden == 0) {
    reader.error_at("ffn_hidden", "missing-key",
                    fmt::format("missing \"ffn_hidden\" of the {} dense layers", dense_layers));
  }
  if (dense_layers == 0 && ffn_hidden > 0) {
    reader.error_at("ffn_hidden", "inconsistent-value",
                    "\"ffn_hidden\" has no use: every layer is a mixture of experts",
                    "a shared expert is \"shared_hidden\" in \"moe\"");
  }
}

// Which layers are mixtures of experts. Layer i is, when it lies behind the first dense ones and `every` divides i + 1
// (the convention of Qwen's decoder_sparse_step).
std::vector<bool> expert_layers(io::ObjectReader& reader, io::ObjectReader& moe, std::int64_t layers,
                                std::int64_t ffn_hidden) {
  const std::size_t before = moe.sink().size();
  const std::int64_t first_dense = moe.integer_or("first_dense_layers", 0, {0, kLayers.max});
  const std::int64_t every = moe.integer_or("every", 1, kLayers);
  moe.finish();
  std::vector<bool> out(static_cast<std::size_t>(layers), false);
  if (!clean(moe, before)) return out;
  std::int64_t count = 0;
  for (std::int64_t i = first_dense; i < layers; ++i) {
    if ((i + 1) % every != 0) continue;
    out[static_cast<std::size_t>(i)] = true;
    ++count;
  }
  if (count == 0) {
    const std::string_view key = first_dense >= layers ? "first_dense_layers" : "every";
    moe.error_at(key, "inconsistent-value", fmt::format("none of the {} layers is a mixture of experts", layers));
  } else {
    check_dense_use(reader, ffn_hidden, layers - count);
  }
  return out;
}

/// `layers` blocks of one section (the decoder or an encoder), with their dense and MoE, windowed and full variants.
std::vector<BlockType> read_chain(io::ObjectReader& reader, const BlockDefaults& defaults) {
  const std::size_t before = reader.sink().size();
  const std::int64_t layers = reader.integer("layers", kLayers);
  Prototype prototype = read_block(reader, defaults);
  const std::int64_t full_every = reader.integer_or("full_attention_every", 0, {0, kLayers.max});
  const bool windowed = prototype.block.attention.sliding_window > 0;
  if (full_every > 0 && !windowed) {
    reader.error_at("full_attention_every", "inconsistent-value", "\"full_attention_every\" without \"sliding_window\"",
                    "without a window every layer attends to the whole sequence");
  }
  std::vector<bool> expert(static_cast<std::size_t>(layers), false);
  if (prototype.moe) expert = expert_layers(reader, *prototype.moe, layers, prototype.block.feed_forward.hidden);
  std::vector<BlockType> chain;
  if (!clean(reader, before)) return chain;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_expert = expert[static_cast<std::size_t>(i)];
    chain.push_back(is_expert ? expert_variant(prototype.block) : dense_variant(prototype.block));
    if (full_every > 0 && (i + 1) % full_every == 0) chain.back().attention.sliding_window = 0;
  }
  return chain;
}

void append(std::vector<BlockType>& to, std::vector<BlockType> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

std::vector<BlockType> read_encoder(io::ObjectReader& reader, std::set<std::string>& names, std::int64_t& extra) {
  const std::string name = reader.string("name");
  if (!name.empty() && !names.insert(name).second) {
    reader.error_at("name", "duplicate-name", fmt::format("two encoders are called \"{}\"", name));
  }
  BlockDefaults defaults;
  defaults.hidden = reader.integer("hidden", kWidth);
  defaults.causal = false;
  std::vector<BlockType> chain = read_chain(reader, defaults);
  const std::int64_t tokens = reader.integer("tokens_per_sample", kTokens);
  extra += reader.integer_or("patch_parameters", 0, kParameters);
  extra += reader.integer_or("projector_parameters", 0, kParameters);
  reader.finish();
  for (BlockType& block : chain) {
    block.name = name;
    block.tokens = tokens;
  }
  return chain;
}

BlockType read_type(io::ObjectReader& reader, const BlockDefaults& defaults) {
  BlockDefaults own = defaults;
  own.hidden = reader.integer_or("hidden", defaults.hidden, kWidth);
  const std::string name = reader.string("name");
  Prototype prototype = read_block(reader, own);
  prototype.block.name = name;
  prototype.block.tokens = reader.integer_or("tokens", 0, kTokens);
  if (prototype.moe) prototype.moe->finish();
  reader.finish();
  return prototype.block;
}

std::vector<BlockType> read_types(io::ObjectReader& reader, const BlockDefaults& defaults) {
  std::vector<BlockType> types;
  for (io::ObjectReader& item : reader.objects("types")) {
    BlockType type = read_type(item, defaults);
    const bool known = std::any_of(types.begin(), types.end(), [&](const BlockType& t) { return t.name == type.name; });
    if (known && !type.name.empty()) {
      item.error_at("name", "duplicate-name", fmt::format("two block types are called \"{}\"", type.name));
    }
    types.push_back(std::move(type));
  }
  return types;
}

void report_unknown_type(io::ObjectReader& run, const std::string& name, const std::vector<BlockType>& types) {
  std::vector<std::string> names;
  for (const BlockType& type : types) names.push_back(type.name);
  run.error_at("type", "unknown-name", fmt::format("there is no block type \"{}\"", name),
               fmt::format("types are {}", fmt::join(names, ", ")));
}

// The explicit form: `types` and `blocks` [{type, count}].
std::vector<BlockType> read_explicit_chain(io::ObjectReader& reader, const BlockDefaults& defaults) {
  const std::vector<BlockType> types = read_types(reader, defaults);
  std::vector<BlockType> chain;
  std::set<std::string> used;
  for (io::ObjectReader& run : reader.objects("blocks")) {
    const std::string name = run.string("type");
    const std::int64_t count = run.integer_or("count", 1, kLayers);
    run.finish();
    const auto type = std::find_if(types.begin(), types.end(), [&](const BlockType& t) { return t.name == name; });
    if (type == types.end()) {
      if (!name.empty()) report_unknown_type(run, name, types);
      continue;
    }
    used.insert(name);
    chain.insert(chain.end(), static_cast<std::size_t>(count), *type);
  }
  for (const BlockType& type : types) {
    if (chain.empty() || type.name.empty() || used.contains(type.name)) continue;
    reader.error_at("types", "unused-name", fmt::format("no block is of type \"{}\"", type.name), "remove the type");
  }
  return chain;
}

}  // namespace

Blueprint read_architecture(io::ObjectReader& reader) {
  Blueprint out;
  Model& frame = out.frame;
  frame.vocabulary = reader.integer("vocabulary", io::kCount);
  frame.hidden = reader.integer("hidden", kWidth);
  frame.tied_embeddings = reader.boolean_or("tied_embeddings", false);
  frame.learned_positions = reader.integer_or("learned_positions", 0, kOptionalTokens);
  frame.embedding_projection = reader.integer_or("embedding_projection", 0, {0, kWidth.max});
  frame.final_norm = reader.boolean_or("final_norm", true);
  frame.final_norm_bias = read_norm(reader, false);
  frame.extra_embedding_parameters = reader.integer_or("extra_embedding_parameters", 0, kParameters);

  const BlockDefaults defaults{frame.hidden, frame.final_norm_bias, true};
  if (reader.has("types") || reader.has("blocks")) {
    out.chain = read_explicit_chain(reader, defaults);
  } else {
    std::set<std::string> names;
    for (io::ObjectReader& encoder : reader.objects_if("encoders")) {
      append(out.chain, read_encoder(encoder, names, frame.extra_embedding_parameters));
    }
    append(out.chain, read_chain(reader, defaults));
  }
  frame.final_norm_bias = frame.final_norm && frame.final_norm_bias;
  reader.finish();
  return out;
}

}  // namespace tangram::model
