// Multimodal models: encoders whose tokens become part of the language model's sequence. Each section of a config is
// read with the defaults of its own class, and what was taken is said.
#include "hf_multimodal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "graph.hpp"

namespace tangram::model {

namespace {

void note_defaults(const HfConfig& section, Blueprint& out) {
  if (std::string text = section.assumed(); !text.empty()) out.assumed.push_back(std::move(text));
}

/// The language model of a section; tied embeddings are said there or beside the sections.
Blueprint read_language(HfConfig& top, std::string_view key, std::string_view model_type) {
  auto section = top.section(key, model_type);
  if (!section) return {};
  const HfFamily* family = find_hf_family(section->model_type());
  if (family == nullptr) {
    section->reader().error_at("model_type", "unknown-name",
                               fmt::format("unsupported language model \"{}\"", section->model_type()),
                               "a model.yaml can describe it");
    return {};
  }
  Blueprint out = family->import(*section);
  if (!section->has("tie_word_embeddings")) {
    out.frame.tied_embeddings = top.boolean_or("tie_word_embeddings", out.frame.tied_embeddings);
  }
  note_defaults(*section, out);
  return out;
}

std::string tokens_text(const Module& module) {
  if (module.tokens_in == module.tokens_out) return fmt::format("{} tokens", module.tokens_in);
  return fmt::format("{} tokens, {} behind the connector", module.tokens_in, module.tokens_out);
}

/// Encoders in front of the language model; samples have one item of each.
Blueprint joined(Blueprint language, std::vector<HfEncoder> encoders) {
  Blueprint out = std::move(language);
  std::vector<BlockType> decoder = std::move(out.chain);
  out.chain.clear();
  ModuleGraph& graph = out.frame.graph;
  const auto end = [&] { return static_cast<int>(out.chain.size()); };
  for (HfEncoder& encoder : encoders) {
    const int first = end();
    for (BlockType& block : encoder.chain) block.name = encoder.module.name;
    out.chain.insert(out.chain.end(), encoder.chain.begin(), encoder.chain.end());
    encoder.module.blocks = {first, end()};
    out.frame.extra_embedding_parameters += encoder.module.patch_parameters;
    out.assumed_items.push_back(fmt::format("a sample has one {} in \"{}\": {}", encoder.module.items.of,
                                            encoder.module.name, tokens_text(encoder.module)));
    encoder.module.items.of = encoder.module.name == "audio" ? "audio" : encoder.module.items.of;
    graph.modules.push_back(std::move(encoder.module));
  }
  Module text;
  text.name = "language";
  text.blocks = {end(), end() + static_cast<int>(decoder.size())};
  graph.modules.push_back(std::move(text));
  out.chain.insert(out.chain.end(), decoder.begin(), decoder.end());
  graph.edges = usual_edges(graph.modules);
  for (std::size_t i = 0; i < encoders.size(); ++i) {
    graph.edges[i].from_layers = encoders[i].from_layers;
    for (int layer = 0; layer < std::ssize(encoders[i].from_layers); ++layer) {
      graph.edges[i].into_layers.push_back(layer);
    }
  }
  return out;
}

/// An encoder with its section, of which `connect` makes the connector.
template <class Connect>
std::optional<HfEncoder> connected(HfConfig& top, std::string_view key, std::string_view model_type,
                                   Blueprint& language, const Connect& connect) {
  auto section = top.section(key, model_type);
  if (!section) return std::nullopt;
  HfEncoder encoder = read_hf_encoder(*section);
  if (top.clean()) connect(*section, encoder);
  note_defaults(*section, language);
  return encoder;
}

Blueprint with_encoder(HfConfig& top, Blueprint language, std::optional<HfEncoder> encoder) {
  if (!encoder || !top.clean()) return language;
  return joined(std::move(language), {*std::move(encoder)});
}

/// Two linear layers as wide as the language model.
Connector two_layers(ConnectorKind kind, std::int64_t in, std::int64_t out, bool bias) {
  Connector connector;
  connector.kind = kind;
  connector.widths = {in, out, out};
  connector.bias = bias;
  return connector;
}

/// Mergers of Qwen: `side` x `side` neighbours, two linear layers, the inner one as wide as the input.
Connector qwen_merger(HfConfig& section, HfEncoder& encoder, std::int64_t out, bool norm_bias) {
  const std::int64_t side = section.integer("spatial_merge_size", kTokens);
  const std::int64_t in = encoder.hidden() * side * side;
  Connector connector;
  connector.kind = ConnectorKind::kMerger;
  connector.widths = {in, in, out};
  connector.norm = encoder.hidden();
  connector.norm_bias = norm_bias;
  encoder.module.tokens_out = encoder.patches / (side * side);
  return connector;
}

/// The width that the vision section names has to be that of the language model.
void check_output(HfConfig& section, std::string_view key, std::int64_t hidden) {
  if (!section.has(key)) return;
  const std::int64_t out = section.integer(key, kWidth);
  if (out == hidden || !section.clean()) return;
  section.reader().error_at(key, "inconsistent-value",
                            fmt::format("\"{}\" is {}, the language model is {} wide", key, out, hidden));
}

// Class tokens are dropped unless vision_feature_select_strategy is "full".
Blueprint import_llava(HfConfig& top) {
  Blueprint language = read_language(top, "text_config", "llama");
  auto encoder = connected(top, "vision_config", "clip_vision_model", language, [&](HfConfig&, HfEncoder& out) {
    if (top.string_or("vision_feature_select_strategy", "default") == "default") out.module.tokens_out = out.patches;
    out.module.connector = two_layers(ConnectorKind::kMlp, out.hidden(), language.frame.hidden,
                                      top.boolean_or("multimodal_projector_bias", true));
  });
  return with_encoder(top, std::move(language), std::move(encoder));
}

// An image is a number of crops; a learned token ends its lines.
Blueprint import_llava_onevision(HfConfig& top) {
  Blueprint language = read_language(top, "text_config", "qwen2");
  auto encoder = connected(top, "vision_config", "siglip_vision_model", language, [&](HfConfig&, HfEncoder& out) {
    out.module.items.of = "crop";
    out.module.connector = two_layers(ConnectorKind::kMlp, out.hidden(), language.frame.hidden,
                                      top.boolean_or("multimodal_projector_bias", true));
    out.module.connector->extra_parameters = language.frame.hidden;
  });
  return with_encoder(top, std::move(language), std::move(encoder));
}

// Older files have the language model's keys beside the vision section.
Blueprint read_qwen_language(HfConfig& top, std::string_view model_type) {
  if (top.has("text_config")) return read_language(top, "text_config", model_type);
  HfConfig flat(top.reader(), "the config", model_type);
  Blueprint out = find_hf_family(model_type)->import(flat);
  note_defaults(flat, out);
  return out;
}

Blueprint import_qwen25_vl(HfConfig& top) {
  Blueprint language = read_qwen_language(top, "qwen2_5_vl_text");
  auto encoder = connected(top, "vision_config", "qwen2_5_vl", language, [&](HfConfig& section, HfEncoder& out) {
    check_output(section, "out_hidden_size", language.frame.hidden);
    out.module.connector = qwen_merger(section, out, language.frame.hidden, false);
  });
  return with_encoder(top, std::move(language), std::move(encoder));
}

// Deepstack's mergers have their norm behind the merge: as wide as four tokens.
Blueprint import_qwen3(HfConfig& top, std::string_view text_type, std::string_view vision_type) {
  Blueprint language = read_language(top, "text_config", text_type);
  auto encoder = connected(top, "vision_config", vision_type, language, [&](HfConfig& section, HfEncoder& out) {
    check_output(section, "out_hidden_size", language.frame.hidden);
    Connector connector = qwen_merger(section, out, language.frame.hidden, true);
    const std::int64_t wider = connector.widths.front() - connector.norm;
    connector.extra_parameters = std::ssize(out.from_layers) * 2 * wider;
    out.module.connector = connector;
  });
  return with_encoder(top, std::move(language), std::move(encoder));
}

Blueprint import_qwen3_vl(HfConfig& top) { return import_qwen3(top, "qwen3_vl_text", "qwen3_vl"); }
Blueprint import_qwen3_vl_moe(HfConfig& top) { return import_qwen3(top, "qwen3_vl_moe_text", "qwen3_vl_moe"); }

/// Tokens that a pixel shuffle of this ratio makes one of.
std::int64_t shuffled(HfConfig& config, std::string_view key) {
  constexpr io::NumberRange kRatio{1.0 / 16, 1.0};
  const double ratio = config.has(key) ? config.reader().number(key, kRatio) : 0.5;
  const std::int64_t side = std::llround(1 / ratio);
  return side * side;
}

Blueprint import_intern(HfConfig& top, std::string_view text_key, std::string_view vision_type) {
  Blueprint language = read_language(top, text_key, "qwen2");
  auto encoder = connected(top, "vision_config", vision_type, language, [&](HfConfig&, HfEncoder& out) {
    const std::int64_t merged = shuffled(top, "downsample_ratio");
    out.module.tokens_out = out.patches / merged;
    out.module.connector = two_layers(ConnectorKind::kMerger, out.hidden() * merged, language.frame.hidden, true);
    out.module.connector->norm = out.hidden() * merged;
    out.module.connector->norm_bias = true;
  });
  return with_encoder(top, std::move(language), std::move(encoder));
}

Blueprint import_internvl_chat(HfConfig& top) { return import_intern(top, "llm_config", "intern_vit_6b"); }
Blueprint import_internvl(HfConfig& top) { return import_intern(top, "text_config", "internvl_vision"); }

// The adapter behind the pixel shuffle, then the projector.
Blueprint import_llama4(HfConfig& top) {
  Blueprint language = read_language(top, "text_config", "llama4_text");
  auto encoder =
      connected(top, "vision_config", "llama4_vision_model", language, [&](HfConfig& section, HfEncoder& out) {
        const std::int64_t merged = shuffled(section, "pixel_shuffle_ratio");
        out.module.tokens_out = out.patches / merged;
        out.module.items.of = "tile";
        Connector connector;
        connector.kind = ConnectorKind::kMerger;
        connector.widths = {out.hidden() * merged, section.integer("projector_input_dim", kWidth),
                            section.integer("projector_output_dim", kWidth), language.frame.hidden};
        connector.bias = false;
        out.module.connector = connector;
      });
  return with_encoder(top, std::move(language), std::move(encoder));
}

// An average over neighbours, a norm and one matrix.
Blueprint import_gemma3(HfConfig& top) {
  Blueprint language = read_language(top, "text_config", "gemma3_text");
  HfConfig own(top.reader(), "the config", "gemma3");
  auto encoder = connected(top, "vision_config", "siglip_vision_model", language, [&](HfConfig&, HfEncoder& out) {
    out.module.tokens_out = own.integer("mm_tokens_per_image", kTokens);
    Connector connector;
    connector.kind = ConnectorKind::kPool;
    connector.widths = {out.hidden(), language.frame.hidden};
    connector.bias = false;
    connector.norm = out.hidden();
    out.module.connector = connector;
  });
  note_defaults(own, language);
  return with_encoder(top, std::move(language), std::move(encoder));
}

/// Rows and columns of neighbours that become one token: [2, 2].
std::int64_t merge_kernel(HfConfig& section) {
  const io::Node* kernel = section.array("merge_kernel_size");
  std::int64_t merged = 1;
  if (kernel == nullptr) return 4;  // the class default
  for (const io::Node& item : kernel->items) {
    merged *= item.kind == io::NodeKind::kInteger ? std::clamp<std::int64_t>(item.integer, 1, 16) : 1;
  }
  return merged;
}

Blueprint import_kimi_vl(HfConfig& top) {
  Blueprint language = read_language(top, "text_config", "deepseek_v3");
  auto encoder = connected(top, "vision_config", "moonvit", language, [&](HfConfig& section, HfEncoder& out) {
    const std::int64_t in = out.hidden() * merge_kernel(section);
    out.module.tokens_out = out.patches * out.hidden() / in;
    Connector connector;
    connector.kind = ConnectorKind::kMerger;
    connector.widths = {in, in, language.frame.hidden};
    connector.norm = out.hidden();
    connector.norm_bias = true;
    out.module.connector = connector;
  });
  return with_encoder(top, std::move(language), std::move(encoder));
}

// Pairs of audio tokens are averaged; two learned tokens stand around them.
void connect_audio(HfConfig& section, HfEncoder& out, std::int64_t hidden) {
  check_output(section, "output_dim", hidden);
  out.module.tokens_out = std::max<std::int64_t>(1, out.patches / 2);
  Connector connector;
  connector.kind = ConnectorKind::kPool;
  connector.widths = {out.hidden(), hidden};
  connector.norm = out.hidden();
  connector.norm_bias = true;
  connector.extra_parameters = 2 * hidden;
  out.module.connector = connector;
}

// What is trained together is the thinker; the talker reads its hidden states and is trained after it (arXiv
// 2503.20215, section 4).
Blueprint import_qwen25_omni(HfConfig& top) {
  auto thinker = top.section("thinker_config", "qwen2_5_omni_thinker");
  if (!thinker) return {};
  Blueprint language = read_language(*thinker, "text_config", "qwen2_5_omni_text");
  const std::int64_t hidden = language.frame.hidden;
  auto vision = connected(*thinker, "vision_config", "qwen2_5_omni_vision_encoder", language,
                          [&](HfConfig& section, HfEncoder& out) {
                            check_output(section, "out_hidden_size", hidden);
                            out.module.connector = qwen_merger(section, out, hidden, false);
                          });
  auto audio = connected(*thinker, "audio_config", "qwen2_5_omni_audio_encoder", language,
                         [&](HfConfig& section, HfEncoder& out) { connect_audio(section, out, hidden); });
  if (!vision || !audio || !top.clean()) return language;
  language.assumed.emplace_back("the thinker alone is taken: talker and token2wav are trained after it");
  return joined(std::move(language), {*std::move(vision), *std::move(audio)});
}

constexpr std::array kMultimodalFamilies{HfFamily{"llava", import_llava},
                                         HfFamily{"llava_onevision", import_llava_onevision},
                                         HfFamily{"qwen2_5_vl", import_qwen25_vl},
                                         HfFamily{"qwen3_vl", import_qwen3_vl},
                                         HfFamily{"qwen3_vl_moe", import_qwen3_vl_moe},
                                         HfFamily{"internvl_chat", import_internvl_chat},
                                         HfFamily{"internvl", import_internvl},
                                         HfFamily{"llama4", import_llama4},
                                         HfFamily{"gemma3", import_gemma3},
                                         HfFamily{"kimi_vl", import_kimi_vl},
                                         HfFamily{"qwen2_5_omni", import_qwen25_omni}};

}  // namespace

std::span<const HfFamily> hf_multimodal_families() { return kMultimodalFamilies; }

}  // namespace tangram::model
