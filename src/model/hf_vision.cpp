// Vision and audio encoders, after the classes of huggingface/transformers and, of InternViT and MoonViT, those beside
// the weights. A layer scale is a vector of the hidden width, as a norm without a bias is: it counts as one.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hf_multimodal.hpp"
#include "tangram/base/at.hpp"

namespace tangram::model {

namespace {

constexpr std::int64_t kColors = 3;
constexpr HfKeys kVitKeys{.kv_heads = ""};
constexpr HfKeys kQwenVisionKeys{.layers = "depth", .heads = "num_heads", .kv_heads = ""};
constexpr HfKeys kAudioKeys{.hidden = "d_model",
                            .layers = "encoder_layers",
                            .heads = "encoder_attention_heads",
                            .kv_heads = "",
                            .inner = "encoder_ffn_dim"};

/// Encoders that take any resolution are taken to see images of so many patches: 896 pixels square where a patch is 14.
constexpr std::int64_t kNativePatches = 64 * 64;

/// Layers with LayerNorm and biases, without gates.
BlockType vit_block(HfConfig& config, const HfKeys& keys) {
  BlockType block;
  block.hidden = config.integer(keys.hidden, kWidth);
  block.attention = hf_attention(config, keys, block.hidden, {});
  block.attention.causal = false;
  block.attention.qkv_bias = block.attention.output_bias = true;
  block.feed_forward.hidden = config.integer(keys.inner, kInner);
  block.feed_forward.gated = false;
  block.feed_forward.bias = true;
  block.norm_bias = true;
  return block;
}

HfEncoder make_encoder(HfConfig& config, const HfKeys& keys, const BlockType& block) {
  HfEncoder out;
  out.module.kind = ModuleKind::kEncoder;
  out.module.name = "vision";
  out.chain.assign(static_cast<std::size_t>(config.integer(keys.layers, kLayers)), block);
  return out;
}

/// Patches of square images of one size, and a class token where the encoder has one.
void see_images(HfConfig& config, HfEncoder& out, bool class_token) {
  const std::int64_t side = hf_side(config, "image_size") / std::max<std::int64_t>(1, hf_side(config, "patch_size"));
  out.patches = std::max<std::int64_t>(1, side * side);
  out.module.tokens_in = out.module.tokens_out = out.patches + (class_token ? 1 : 0);
}

void see_any_resolution(HfEncoder& out) {
  out.patches = kNativePatches;
  out.module.tokens_in = out.module.tokens_out = kNativePatches;
}

/// Weights of the convolution that makes patches of `frames` images each.
std::int64_t patch_weights(HfConfig& config, std::int64_t hidden, std::int64_t frames = 1) {
  const std::int64_t side = hf_side(config, "patch_size");
  return kColors * frames * side * side * hidden;
}

// No bias in the convolution; class token, positions, a norm in front of the layers and one behind.
HfEncoder read_clip(HfConfig& config) {
  HfEncoder out = make_encoder(config, kVitKeys, vit_block(config, kVitKeys));
  see_images(config, out, true);
  const std::int64_t h = out.hidden();
  out.module.patch_parameters = patch_weights(config, h) + h + out.module.tokens_in * h + 4 * h;
  return out;
}

// A bias in the convolution, positions, a norm behind the layers.
HfEncoder read_siglip(HfConfig& config) {
  HfEncoder out = make_encoder(config, kVitKeys, vit_block(config, kVitKeys));
  see_images(config, out, false);
  const std::int64_t h = out.hidden();
  out.module.patch_parameters = patch_weights(config, h) + h + out.module.tokens_in * h + 2 * h;
  return out;
}

// Llama 4: rotary and learned positions, a norm on either side, no bias in front.
HfEncoder read_llama4_vision(HfConfig& config) { return read_clip(config); }

/// Which layers see all of an image, where the others attend in windows.
std::vector<bool> full_layers(HfConfig& config, std::size_t layers) {
  std::vector<bool> full(layers, false);
  const io::Node* listed = config.array("fullatt_block_indexes");
  if (listed == nullptr) {
    for (std::size_t i = 7; i < layers; i += 8) full[i] = true;  // 7, 15, 23, 31: the class default
    return full;
  }
  for (const io::Node& item : listed->items) {
    const bool known = item.kind == io::NodeKind::kInteger && item.integer >= 0 && item.integer < std::ssize(full);
    if (known) at(full, item.integer) = true;
  }
  return full;
}

// Qwen2.5-VL (arXiv 2502.13923): RMSNorm, gated, rotary positions; most layers attend in windows.
HfEncoder read_qwen25_vision(HfConfig& config) {
  BlockType block = vit_block(config, kQwenVisionKeys);
  block.norm_bias = false;
  block.feed_forward.gated = true;
  HfEncoder out = make_encoder(config, kQwenVisionKeys, block);
  see_any_resolution(out);
  const std::int64_t side =
      config.integer("window_size", kTokens) / std::max<std::int64_t>(1, hf_side(config, "patch_size"));
  const std::vector<bool> full = full_layers(config, out.chain.size());
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (!full[i]) out.chain[i].attention.sliding_window = side * side;
  }
  out.module.patch_parameters = patch_weights(config, out.hidden(), config.integer("temporal_patch_size", kTokens));
  return out;
}

// Qwen3-VL: learned positions, and layers whose output goes further into the language model.
HfEncoder read_qwen3_vision(HfConfig& config) {
  HfEncoder out = make_encoder(config, kQwenVisionKeys, vit_block(config, kQwenVisionKeys));
  see_any_resolution(out);
  const std::int64_t h = out.hidden();
  out.module.patch_parameters = patch_weights(config, h, config.integer("temporal_patch_size", kTokens)) + h +
                                config.integer("num_position_embeddings", kTokens) * h;
  const io::Node* taps = config.array("deepstack_visual_indexes");
  if (taps == nullptr) {
    out.from_layers = {8, 16, 24};  // the class default
    return out;
  }
  for (std::size_t i = 0; i < taps->items.size(); ++i) {
    const io::Node& item = taps->items[i];
    if (item.kind == io::NodeKind::kInteger && item.integer >= 0 && item.integer < std::ssize(out.chain)) {
      out.from_layers.push_back(static_cast<int>(item.integer));
    } else {
      config.reader().error_at(
          item, fmt::format("{}/deepstack_visual_indexes/{}", config.reader().pointer(), i), "out-of-range",
          fmt::format("\"deepstack_visual_indexes\" must list layers between 0 and {}", std::ssize(out.chain) - 1));
    }
  }
  return out;
}

// InternViT (arXiv 2404.16821): two layer scales; the norms of queries and of keys are as wide as the layer.
HfEncoder read_intern_vit(HfConfig& config, std::string_view norm_key, std::string_view bias_key, bool large) {
  BlockType block = vit_block(config, kVitKeys);
  block.norm_bias = config.string_or("norm_type", large ? "rms_norm" : "layer_norm") == "layer_norm";
  block.attention.qkv_bias = config.boolean_or(bias_key, false);
  const int query_key = config.boolean_or(norm_key, large) ? 2 : 0;
  block.norms = block.norm_bias ? 2 + (2 + query_key) / 2 : 4 + query_key;
  HfEncoder out = make_encoder(config, kVitKeys, block);
  see_images(config, out, true);
  const std::int64_t h = out.hidden();
  out.module.patch_parameters = patch_weights(config, h) + 2 * h + out.module.tokens_in * h;
  out.module.items.of = "tile";
  return out;
}

HfEncoder read_intern_vit_6b(HfConfig& config) { return read_intern_vit(config, "qk_normalization", "qkv_bias", true); }
HfEncoder read_internvl_vision(HfConfig& config) {
  return read_intern_vit(config, "use_qk_norm", "attention_bias", false);
}

// MoonViT (Kimi-VL, arXiv 2504.07491): learned positions that are stretched to any resolution, a norm behind.
HfEncoder read_moonvit(HfConfig& config) {
  HfEncoder out = make_encoder(config, kVitKeys, vit_block(config, kVitKeys));
  see_any_resolution(out);
  const std::int64_t h = out.hidden();
  const std::int64_t positions =
      config.integer("init_pos_emb_height", kTokens) * config.integer("init_pos_emb_width", kTokens);
  out.module.patch_parameters = patch_weights(config, h) + h + positions * h + 2 * h;
  return out;
}

// The encoder of Whisper (arXiv 2212.04356): two convolutions of width 3, the second of stride 2, over spectra of 10
// ms; Qwen2.5-Omni attends in chunks. Its keys have no bias; they are counted with one, 0.006 % too much.
HfEncoder read_qwen25_audio(HfConfig& config) {
  constexpr std::int64_t kTaps = 3;
  HfEncoder out = make_encoder(config, kAudioKeys, vit_block(config, kAudioKeys));
  const std::int64_t h = out.hidden();
  out.module.name = "audio";
  out.module.items.of = "audio of 30 s";
  out.patches = config.integer("max_source_positions", kTokens);
  out.module.tokens_in = out.module.tokens_out = out.patches;
  const std::int64_t chunk = config.integer("n_window", kTokens);
  for (BlockType& block : out.chain) block.attention.sliding_window = chunk;
  out.module.patch_parameters = kTaps * config.integer("num_mel_bins", kTokens) * h + h + kTaps * h * h + h;
  return out;
}

struct EncoderClass {
  std::string_view model_type;
  HfEncoder (*read)(HfConfig& config);
};

constexpr std::array kEncoders{EncoderClass{"clip_vision_model", read_clip},
                               EncoderClass{"siglip_vision_model", read_siglip},
                               EncoderClass{"qwen2_5_vl", read_qwen25_vision},
                               EncoderClass{"qwen2_5_omni_vision_encoder", read_qwen25_vision},
                               EncoderClass{"qwen3_vl", read_qwen3_vision},
                               EncoderClass{"qwen3_vl_moe", read_qwen3_vision},
                               EncoderClass{"intern_vit_6b", read_intern_vit_6b},
                               EncoderClass{"internvl_vision", read_internvl_vision},
                               EncoderClass{"llama4_vision_model", read_llama4_vision},
                               EncoderClass{"moonvit", read_moonvit},
                               EncoderClass{"qwen2_5_omni_audio_encoder", read_qwen25_audio}};

}  // namespace

std::int64_t hf_side(HfConfig& config, std::string_view key) {
  const io::Node* value = config.reader().node().find(key);
  if (value == nullptr || value->kind != io::NodeKind::kArray) return config.integer(key, kTokens);
  const bool valid =
      !value->items.empty() && value->items.front().kind == io::NodeKind::kInteger && value->items.front().integer > 0;
  if (valid) return value->items.front().integer;
  config.reader().error_at(key, "wrong-type", fmt::format("\"{}\" must be a number or [height, width]", key));
  return 1;
}

HfEncoder read_hf_encoder(HfConfig& section) {
  const auto known = std::ranges::find(kEncoders, section.model_type(), &EncoderClass::model_type);
  if (known != kEncoders.end()) return known->read(section);
  std::vector<std::string_view> names;
  for (const EncoderClass& encoder : kEncoders) names.push_back(encoder.model_type);
  section.reader().error_at("model_type", "unknown-name",
                            fmt::format("unsupported encoder \"{}\"", section.model_type()),
                            fmt::format("supported are {}; a model.yaml can describe others", fmt::join(names, ", ")));
  return {};
}

}  // namespace tangram::model
