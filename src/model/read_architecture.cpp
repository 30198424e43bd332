// The `architecture` section of tangram.model/1; its keys are described in read_model.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "blueprint.hpp"
#include "graph.hpp"
#include "read_mixer.hpp"
#include "read_modules.hpp"
#include "tangram/base/at.hpp"
#include "tangram/model/block_record.hpp"

namespace tangram::model {

namespace {

constexpr io::IntegerRange kParameters = io::integer_limit("extra_embedding_parameters");

/// As Hugging Face, GPT-2 and Megatron-LM call the same.
void name_aliases(io::ObjectReader& reader) {
  reader.also_called("vocabulary", {"vocab_size", "vocab", "padded_vocab_size"});
  reader.also_called("hidden", {"hidden_size", "d_model", "n_embd", "dim", "embed_dim"});
  reader.also_called("layers", {"num_hidden_layers", "num_layers", "n_layers", "n_layer", "depth"});
  reader.also_called("heads", {"num_attention_heads", "num_heads", "n_heads", "n_head"});
  reader.also_called("kv_heads", {"num_key_value_heads", "num_kv_heads", "n_kv_heads", "num_query_groups"});
  reader.also_called("ffn_hidden", {"intermediate_size", "ffn_hidden_size", "d_ff", "ffn_dim", "n_inner"});
  reader.also_called("tied_embeddings", {"tie_word_embeddings", "tie_embeddings"});
  reader.also_called("moe", {"experts", "mixture_of_experts"});
}

// True: LayerNorm, whose norms have a bias.
bool read_norm(io::ObjectReader& reader, bool fallback) {
  return reader.choice_or<bool>("norm", fallback, {{"rmsnorm", false}, {"layernorm", true}});
}

// 0 after a mistake, so that nothing else is found wrong because of it.
std::int64_t read_width(io::ObjectReader& reader) {
  const std::size_t before = reader.sink().size();
  const std::int64_t width = reader.integer("hidden", kWidth);
  return reader.sink().size() == before ? width : 0;
}

bool clean(const io::ObjectReader& reader, std::size_t before) { return reader.sink().size() == before; }

void read_experts(io::ObjectReader& moe, FeedForward& out) {
  const std::size_t before = moe.sink().size();
  out.experts = static_cast<int>(moe.integer("experts", kExperts));
  out.experts_per_token = static_cast<int>(moe.integer("experts_per_token", kExperts));
  out.expert_hidden = moe.integer("expert_hidden", kInner);
  out.latent_hidden = moe.integer_or("latent_hidden", 0, io::integer_limit("latent_hidden"));
  out.shared_hidden = moe.integer_or("shared_hidden", 0, io::integer_limit("shared_hidden"));
  out.shared_gate = moe.boolean_or("shared_gate", false);
  out.router_bias = moe.boolean_or("router_bias", false);
  out.expert_groups = static_cast<int>(moe.integer_or("expert_groups", 1, kExperts));
  out.groups_per_token = static_cast<int>(moe.integer_or("groups_per_token", out.expert_groups, kExperts));
  if (!clean(moe, before)) return;
  if (out.experts_per_token > out.experts) {
    moe.error_at("experts_per_token", "inconsistent-value",
                 fmt::format("a token goes to {} experts, but there are only {}", out.experts_per_token, out.experts),
                 fmt::format("use at most {}", out.experts));
  } else {
    check_expert_groups(moe, {"expert_groups", "groups_per_token"}, out);
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
  bool norm_given = false;  ///< the section's own "norm" has been read already
};

void read_feed_forward(io::ObjectReader& reader, Prototype& out) {
  FeedForward& f = out.block.feed_forward;
  out.moe = reader.object_if("moe");
  const bool dense_needed = !reader.has("moe") || reader.has("ffn_hidden");
  f.hidden = dense_needed ? reader.integer("ffn_hidden", kInner) : 0;
  f.gated = reader.boolean_or("gated", true);
  f.bias = reader.boolean_or("ffn_bias", false);
  if (out.moe) read_experts(*out.moe, f);
}

// Does not finish the `moe` section: a chain has more keys there than a single type.
Prototype read_block(io::ObjectReader& reader, const BlockDefaults& defaults) {
  Prototype out;
  BlockType& block = out.block;
  block.hidden = defaults.hidden;
  const BlockParts parts = read_parts(reader, !defaults.causal);
  read_mixer(reader, parts, defaults.causal, block);
  if (parts == BlockParts::kMixer) {
    refuse_keys(reader, {"ffn_hidden", "gated", "ffn_bias", "moe"}, "\"only: mixer\"");
  } else {
    read_feed_forward(reader, out);
  }
  const int norms = parts == BlockParts::kBoth ? 2 : 1;
  block.norms = static_cast<int>(reader.integer_or("norms_per_block", norms, io::integer_limit("norms_per_block")));
  block.norm_bias = defaults.norm_given ? defaults.norm_bias : read_norm(reader, defaults.norm_bias);
  if (parts != BlockParts::kBoth) refuse_keys(reader, {"parallel_attention"}, "\"only\"");
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

void check_dense_use(io::ObjectReader& reader, std::int64_t ffn_hidden, std::int64_t layers, std::int64_t expert) {
  if (expert < layers && ffn_hidden == 0) {
    reader.error_at("ffn_hidden", "missing-key",
                    fmt::format("missing key \"ffn_hidden\": {} of the {} layers are dense", layers - expert, layers));
  }
  if (expert == layers && ffn_hidden > 0) {
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
  const std::int64_t first_dense = moe.integer_or("first_dense_layers", 0, io::integer_limit("first_dense_layers"));
  const std::int64_t every = moe.integer_or("every", 1, kLayers);
  moe.finish();
  std::vector<bool> out(static_cast<std::size_t>(layers), false);
  if (!clean(moe, before)) return out;
  std::int64_t count = 0;
  for (std::int64_t i = first_dense; i < layers; ++i) {
    if ((i + 1) % every != 0) continue;
    at(out, i) = true;
    ++count;
  }
  if (count == 0) {
    const std::string_view key = first_dense >= layers ? "first_dense_layers" : "every";
    moe.error_at(key, "inconsistent-value", fmt::format("none of the {} layers is a mixture of experts", layers));
  } else {
    check_dense_use(reader, ffn_hidden, layers, count);
  }
  return out;
}

/// `layers` blocks of one section (the decoder or an encoder), with their dense and MoE, windowed and full variants.
std::vector<BlockType> read_chain(io::ObjectReader& reader, const BlockDefaults& defaults) {
  const std::size_t before = reader.sink().size();
  const std::int64_t layers = reader.integer("layers", kLayers);
  Prototype prototype = read_block(reader, defaults);
  const std::int64_t full_every =
      reader.integer_or("full_attention_every", 0, io::integer_limit("full_attention_every"));
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
    const bool is_expert = at(expert, i);
    chain.push_back(is_expert ? expert_variant(prototype.block) : dense_variant(prototype.block));
    if (full_every > 0 && (i + 1) % full_every == 0) chain.back().attention.sliding_window = 0;
  }
  return chain;
}

// False, and reported, when a model would get too many blocks; nothing is appended then.
bool append(io::ObjectReader& reader, std::vector<BlockType>& to, const BlockType& type, std::int64_t count) {
  if (static_cast<std::int64_t>(to.size()) + count > kLayers.max) {
    reader.error_at("", "out-of-range", fmt::format("more than {} blocks in all", kLayers.max));
    return false;
  }
  to.insert(to.end(), static_cast<std::size_t>(count), type);
  return true;
}

bool append(io::ObjectReader& reader, std::vector<BlockType>& to, const std::vector<BlockType>& from) {
  for (const BlockType& block : from) {
    if (!append(reader, to, block, 1)) return false;
  }
  return true;
}

// Tokens of an item, or, where no more is said, of a sample.
void read_encoder_tokens(io::ObjectReader& reader, Module& module) {
  if (!reader.has("tokens_in") && !reader.has("tokens_out")) {
    module.tokens_in = module.tokens_out = reader.integer("tokens_per_sample", kTokens);
    return;
  }
  module.tokens_in = reader.integer("tokens_in", kTokens);
  module.tokens_out = reader.integer_or("tokens_out", module.tokens_in, kTokens);
  if (!reader.has("tokens_per_sample")) return;
  reader.ignore("tokens_per_sample");
  reader.error_at("tokens_per_sample", "conflicting-keys", "\"tokens_per_sample\" has no meaning with \"tokens_in\"",
                  "\"tokens_in\" are those of an item, of which \"data\" says how many a sample has");
}

void read_encoder_ends(io::ObjectReader& reader, Module& module, std::int64_t& extra) {
  module.patch_parameters = reader.integer_or("patch_parameters", 0, kParameters);
  module.connector = read_connector(reader);
  module.trainable = reader.boolean_or("trainable", true);
  extra += module.patch_parameters + reader.integer_or("projector_parameters", 0, kParameters);
  if (!module.connector || !reader.has("projector_parameters")) return;
  reader.error_at("projector_parameters", "conflicting-keys",
                  "\"projector_parameters\" has no meaning with \"connector\"", "the connector counts its own");
}

// An encoder's blocks; the module is told apart from the chain by name.
std::vector<BlockType> read_encoder(io::ObjectReader& reader, std::vector<Module>& modules, std::int64_t& extra) {
  Module module;
  module.kind = ModuleKind::kEncoder;
  module.name = reader.string("name");
  if (!module.name.empty() && std::ranges::find(modules, module.name, &Module::name) != modules.end()) {
    reader.error_at("name", "duplicate-name", fmt::format("two encoders are called \"{}\"", module.name));
  }
  name_aliases(reader);
  BlockDefaults defaults;
  defaults.hidden = read_width(reader);
  defaults.causal = false;
  std::vector<BlockType> chain = read_chain(reader, defaults);
  read_encoder_tokens(reader, module);
  read_encoder_ends(reader, module, extra);
  reader.finish();
  for (BlockType& block : chain) {
    block.name = module.name;
    block.tokens = module.tokens_in;
  }
  modules.push_back(std::move(module));
  return chain;
}

// The form with encoders in front of one decoder.
void read_encoders_and_decoder(io::ObjectReader& reader, BlockDefaults defaults, Blueprint& out) {
  const std::size_t before = reader.sink().size();
  ModuleGraph& graph = out.frame.graph;
  std::vector<ModuleSection> sections;
  const auto end = [&] { return static_cast<int>(out.chain.size()); };
  for (io::ObjectReader& encoder : reader.objects_if("encoders")) {
    const int first = end();
    if (!append(encoder, out.chain, read_encoder(encoder, graph.modules, out.frame.extra_embedding_parameters))) break;
    graph.modules.back().blocks = {first, end()};
    sections.push_back({encoder, static_cast<int>(sections.size())});
  }
  defaults.norm_given = true;
  const int first = end();
  append(reader, out.chain, read_chain(reader, defaults));
  if (graph.modules.empty() || !clean(reader, before)) {
    reader.ignore("edges");
    graph = {};
    return;
  }
  Module language;
  language.name = "language";
  language.blocks = {first, end()};
  graph.modules.push_back(std::move(language));
  read_edges(reader, graph);
  if (clean(reader, before)) check_connectors(sections, out);
}

BlockType read_type(io::ObjectReader& reader, const BlockDefaults& defaults) {
  name_aliases(reader);
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

const BlockType* find_type(const std::vector<BlockType>& types, std::string_view name) {
  const auto found = std::find_if(types.begin(), types.end(), [&](const BlockType& t) { return t.name == name; });
  return found == types.end() ? nullptr : &*found;
}

std::vector<BlockType> read_types(std::vector<io::ObjectReader>& items, const BlockDefaults& defaults) {
  std::vector<BlockType> types;
  for (io::ObjectReader& item : items) {
    BlockType type = read_type(item, defaults);
    if (!type.name.empty() && find_type(types, type.name) != nullptr) {
      item.error_at("name", "duplicate-name", fmt::format("two block types are called \"{}\"", type.name));
    }
    types.push_back(std::move(type));
  }
  return types;
}

void report_unknown_type(io::ObjectReader& run, const std::string& name, const std::vector<BlockType>& types) {
  std::vector<std::string> names;
  for (const BlockType& type : types) {
    if (std::find(names.begin(), names.end(), type.name) == names.end()) names.push_back(type.name);
  }
  run.error_at("type", "unknown-name", fmt::format("there is no block type \"{}\"", name),
               fmt::format("types are {}", fmt::join(names, ", ")));
}

// The explicit form: `types` and `blocks` [{type, count}].
std::vector<BlockType> read_explicit_chain(io::ObjectReader& reader, const BlockDefaults& defaults) {
  const std::size_t before = reader.sink().size();
  std::vector<io::ObjectReader> items = reader.objects("types");
  const std::vector<BlockType> types = read_types(items, defaults);
  std::vector<BlockType> chain;
  std::set<std::string> used;
  for (io::ObjectReader& run : reader.objects("blocks")) {
    const std::string name = run.string("type");
    const std::int64_t count = run.integer_or("count", 1, kLayers);
    run.finish();
    const BlockType* type = find_type(types, name);
    if (type == nullptr && !name.empty()) report_unknown_type(run, name, types);
    if (type == nullptr) continue;
    used.insert(name);
    if (!append(run, chain, *type, count)) break;
  }
  for (std::size_t i = 0; clean(reader, before) && i < types.size(); ++i) {
    if (used.contains(types[i].name)) continue;
    items[i].error_at("name", "unused-name", fmt::format("no block is of type \"{}\"", types[i].name),
                      "remove the type");
    break;
  }
  return chain;
}

}  // namespace

BlockType read_block_dimensions(io::ObjectReader& reader) {
  BlockDefaults own;
  own.hidden = read_width(reader);
  Prototype prototype = read_block(reader, own);
  if (prototype.moe) prototype.moe->finish();
  reader.finish();
  return prototype.block;
}

BlockType read_block_type(io::ObjectReader& reader, std::int64_t hidden) {
  BlockDefaults defaults;
  defaults.hidden = hidden;
  return read_type(reader, defaults);
}

Blueprint read_architecture(io::ObjectReader& reader) {
  name_aliases(reader);
  Blueprint out;
  Model& frame = out.frame;
  frame.vocabulary = reader.integer("vocabulary", io::integer_limit("vocabulary"));
  frame.hidden = read_width(reader);
  frame.tied_embeddings = reader.boolean_or("tied_embeddings", false);
  frame.learned_positions = reader.integer_or("learned_positions", 0, kOptionalTokens);
  frame.embedding_projection = reader.integer_or("embedding_projection", 0, io::integer_limit("embedding_projection"));
  frame.final_norm = reader.boolean_or("final_norm", true);
  frame.final_norm_bias = read_norm(reader, false);
  frame.extra_embedding_parameters = reader.integer_or("extra_embedding_parameters", 0, kParameters);

  BlockDefaults defaults{frame.hidden, frame.final_norm_bias, true, false};
  if (reader.has("types") || reader.has("blocks")) {
    out.chain = read_explicit_chain(reader, defaults);
    read_modules(reader, out);
  } else {
    read_encoders_and_decoder(reader, defaults, out);
  }
  frame.final_norm_bias = frame.final_norm && frame.final_norm_bias;
  reader.finish();
  return out;
}

}  // namespace tangram::model
