#include "read_mixer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "blueprint.hpp"

namespace tangram::model {

namespace {

constexpr std::string_view kMamba2Key = "mamba2";
constexpr std::string_view kGatedDeltaKey = "gated_delta";

bool nothing_wrong(const io::ObjectReader& reader, std::size_t before) { return reader.sink().size() == before; }

/// A key and what its value may be.
struct Dimension {
  std::string_view key;
  io::IntegerRange range;
};
consteval Dimension dimension(std::string_view key) { return {key, io::integer_limit(key)}; }

int small(io::ObjectReader& reader, const Dimension& dimension) {
  return static_cast<int>(reader.integer(dimension.key, dimension.range));
}

void read_latent_attention(io::ObjectReader& reader, io::ObjectReader& mla, Attention& out) {
  out.kind = AttentionKind::kLatent;
  out.q_lora_rank = static_cast<int>(mla.integer_or("q_lora_rank", 0, io::integer_limit("q_lora_rank")));
  out.kv_lora_rank = static_cast<int>(mla.integer("kv_lora_rank", io::integer_limit("kv_lora_rank")));
  out.qk_nope_head_dim = static_cast<int>(mla.integer("qk_nope_head_dim", kHeadDim));
  out.qk_rope_head_dim = static_cast<int>(mla.integer("qk_rope_head_dim", kHeadDim));
  out.v_head_dim = static_cast<int>(mla.integer("v_head_dim", kHeadDim));
  mla.finish();
  out.kv_heads = out.heads;
  out.head_dim = out.qk_nope_head_dim + out.qk_rope_head_dim;
  refuse_keys(reader, {"kv_heads", "head_dim", "qk_norm", "output_gate"}, "\"mla\"");
}

void read_head_attention(io::ObjectReader& reader, std::int64_t hidden, Attention& out) {
  const std::size_t before = reader.sink().size();
  out.kv_heads = static_cast<int>(reader.integer_or("kv_heads", out.heads, kHeads));
  out.head_dim = static_cast<int>(reader.integer_or("head_dim", 0, kHeadDim));
  out.qk_norm = reader.boolean_or("qk_norm", false);
  out.output_gate = reader.boolean_or("output_gate", false);
  if (!nothing_wrong(reader, before)) return;
  require_multiple(reader, "heads", out.heads, "kv_heads", out.kv_heads,
                   "every key-value head serves equally many heads");
  if (out.head_dim > 0 || hidden == 0) return;
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

/// Keys under which the two recurrences have the same dimensions, and what they take where nothing is said.
struct RecurrenceKeys {
  Dimension heads, head_dim, groups, key_dim;
  std::int64_t chunk;  ///< of the authors' own kernels: state-spaces/mamba, fla-org/flash-linear-attention
  bool convolution_bias;
};
constexpr RecurrenceKeys kMamba2Keys{
    dimension("heads"), dimension("head_dim"), dimension("groups"), dimension("state"), 256, true};
constexpr RecurrenceKeys kGatedDeltaKeys{dimension("value_heads"),
                                         dimension("value_head_dim"),
                                         dimension("key_heads"),
                                         dimension("key_head_dim"),
                                         64,
                                         false};

Recurrence read_recurrence(io::ObjectReader& reader, RecurrenceKind kind) {
  const std::size_t before = reader.sink().size();
  const RecurrenceKeys& keys = kind == RecurrenceKind::kMamba2 ? kMamba2Keys : kGatedDeltaKeys;
  Recurrence out;
  out.kind = kind;
  out.heads = small(reader, keys.heads);
  out.head_dim = small(reader, keys.head_dim);
  out.groups = small(reader, keys.groups);
  out.key_dim = small(reader, keys.key_dim);
  out.convolution =
      static_cast<int>(reader.integer_or("convolution", out.convolution, io::integer_limit("convolution")));
  out.chunk = reader.integer_or("chunk", keys.chunk, io::integer_limit("chunk"));
  out.convolution_bias = reader.boolean_or("convolution_bias", keys.convolution_bias);
  out.projection_bias = reader.boolean_or("projection_bias", false);
  reader.finish();
  if (!nothing_wrong(reader, before)) return out;
  require_multiple(reader, keys.heads.key, out.heads, keys.groups.key, out.groups,
                   "keys and queries serve equally many heads");
  return out;
}

}  // namespace

void refuse_keys(io::ObjectReader& reader, std::initializer_list<std::string_view> keys, std::string_view with) {
  for (const std::string_view key : keys) {
    if (!reader.has(key)) continue;
    reader.ignore(key);
    reader.error_at(key, "conflicting-keys", fmt::format("\"{}\" has no meaning with {}", key, with), "remove it");
  }
}

BlockParts read_parts(io::ObjectReader& reader, bool both_ways) {
  constexpr std::string_view kKey = "only";
  if (!both_ways || !reader.has(kKey)) {
    return reader.choice_or<BlockParts>(kKey, BlockParts::kBoth,
                                        {{"mixer", BlockParts::kMixer}, {"feed_forward", BlockParts::kFeedForward}});
  }
  refuse_keys(reader, {kKey}, "layers that attend both ways");
  return BlockParts::kBoth;
}

void read_mixer(io::ObjectReader& reader, BlockParts parts, bool causal, BlockType& block) {
  const auto refuse_attention = [&](std::string_view with) {
    refuse_keys(reader,
                {"heads", "kv_heads", "head_dim", "mla", "qk_norm", "output_gate", "sliding_window", "causal",
                 "qkv_bias", "output_bias"},
                with);
  };
  if (parts == BlockParts::kFeedForward) {
    refuse_attention("\"only: feed_forward\"");
    refuse_keys(reader, {kMamba2Key, kGatedDeltaKey}, "\"only: feed_forward\"");
    return;
  }
  for (const RecurrenceKind kind : {RecurrenceKind::kMamba2, RecurrenceKind::kGatedDelta}) {
    const std::string_view key = to_string(kind);
    auto section = reader.object_if(key);
    if (!section) continue;
    block.recurrence = read_recurrence(*section, kind);
    if (!causal) refuse_keys(reader, {key}, "layers that attend both ways");
    refuse_attention(fmt::format("\"{}\"", key));
    if (kind == RecurrenceKind::kMamba2) refuse_keys(reader, {kGatedDeltaKey}, "\"mamba2\"");
    return;
  }
  if (reader.has(kMamba2Key) || reader.has(kGatedDeltaKey)) return;  // not an object: reported
  block.attention = read_attention(reader, block.hidden, causal);
}

}  // namespace tangram::model
