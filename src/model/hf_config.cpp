#include "hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tangram/base/spelling.hpp"

namespace tangram::model {

namespace {

std::vector<HfFamily> all_families() {
  std::vector<HfFamily> all;
  for (const auto families : {hf_dense_families(), hf_layer_norm_families(), hf_expert_families(), hf_hybrid_families(),
                              hf_multimodal_families()}) {
    all.insert(all.end(), families.begin(), families.end());
  }
  std::sort(all.begin(), all.end(), [](const HfFamily& a, const HfFamily& b) { return a.model_type < b.model_type; });
  return all;
}

std::string family_hint(std::string_view model_type, const std::vector<HfFamily>& families) {
  std::vector<std::string> names;
  names.reserve(families.size());
  for (const HfFamily& family : families) names.emplace_back(family.model_type);
  std::string hint = fmt::format("supported are {}; a model.yaml can describe others", fmt::join(names, ", "));
  if (const auto near = closest(model_type, names)) hint = fmt::format("did you mean \"{}\"? {}", *near, hint);
  return hint;
}

}  // namespace

bool HfConfig::has(std::string_view key) const {
  const io::Node* value = reader_.node().find(key);
  return value != nullptr && value->kind != io::NodeKind::kNull;
}

std::int64_t HfConfig::integer(std::string_view key, io::IntegerRange range) {
  const auto fallback = has(key) ? std::nullopt : class_default(key);
  return fallback ? *fallback : reader_.integer(key, range);
}

std::int64_t HfConfig::integer_or(std::string_view key, std::int64_t fallback, io::IntegerRange range) {
  return has(key) ? reader_.integer(key, range) : class_default(key).value_or(fallback);
}

std::optional<std::int64_t> HfConfig::class_default(std::string_view key) {
  const auto found = std::ranges::find(defaults_, key, &HfDefault::key);
  if (found == defaults_.end()) return std::nullopt;
  if (std::ranges::find(taken_, key, &HfDefault::key) == taken_.end()) taken_.push_back(*found);
  return found->value;
}

std::string HfConfig::assumed() const {
  if (taken_.empty()) return "";
  std::vector<std::string> values;
  values.reserve(taken_.size());
  for (const HfDefault& value : taken_) values.push_back(fmt::format("{} {}", value.key, value.value));
  return fmt::format("{} leaves out what class {} has as {}", name_, model_type_, fmt::join(values, ", "));
}

std::optional<HfConfig> HfConfig::section(std::string_view key, std::string_view model_type) {
  auto inner = reader_.object(key);
  if (!inner) return std::nullopt;
  std::string type = inner->has("model_type") ? inner->string("model_type") : std::string(model_type);
  return HfConfig(std::move(*inner), std::string(key), type);
}

bool HfConfig::boolean_or(std::string_view key, bool fallback) { return has(key) ? reader_.boolean(key) : fallback; }

std::string HfConfig::string_or(std::string_view key, std::string fallback) {
  return has(key) ? reader_.string(key) : std::move(fallback);
}

const io::Node* HfConfig::array(std::string_view key) {
  if (!has(key)) return nullptr;
  const io::Node* value = reader_.raw(key);
  if (value->kind == io::NodeKind::kArray) return value;
  reader_.error_at(key, "wrong-type", fmt::format("\"{}\" must be an array, not {}", key, io::to_string(value->kind)));
  return nullptr;
}

const HfFamily* find_hf_family(std::string_view model_type) {
  for (const auto families : {hf_dense_families(), hf_layer_norm_families(), hf_expert_families(), hf_hybrid_families(),
                              hf_multimodal_families(), hf_refused_families()}) {
    const auto found = std::ranges::find(families, model_type, &HfFamily::model_type);
    if (found != families.end()) return &*found;
  }
  return nullptr;
}

Blueprint hf_frame(HfConfig& config, const HfKeys& keys, bool tied_default) {
  Blueprint out;
  out.frame.hidden = config.integer(keys.hidden, kWidth);
  out.frame.vocabulary = config.integer("vocab_size", io::kCount);
  out.frame.tied_embeddings = config.boolean_or("tie_word_embeddings", tied_default);
  out.max_positions = config.integer_or(keys.positions, 0, kTokens);
  return out;
}

Attention hf_attention(HfConfig& config, const HfKeys& keys, std::int64_t hidden, const HfDefaults& defaults) {
  Attention out;
  out.heads = static_cast<int>(config.integer(keys.heads, kHeads));
  out.kv_heads = out.heads;
  if (!keys.kv_heads.empty()) {
    const int fallback = defaults.kv_heads > 0 ? defaults.kv_heads : out.heads;
    out.kv_heads = static_cast<int>(config.integer_or(keys.kv_heads, fallback, kHeads));
  }
  out.head_dim = static_cast<int>(config.integer_or("head_dim", defaults.head_dim, kHeadDim));
  if (!config.clean()) return out;
  require_multiple(config.reader(), keys.heads, out.heads, keys.kv_heads, out.kv_heads);
  if (out.head_dim > 0) return out;
  require_multiple(config.reader(), keys.hidden, hidden, keys.heads, out.heads);
  out.head_dim = static_cast<int>(std::max<std::int64_t>(1, hidden / out.heads));
  return out;
}

void hf_repeat(HfConfig& config, Blueprint& out, const BlockType& block, const HfKeys& keys) {
  out.chain.assign(static_cast<std::size_t>(config.integer(keys.layers, kLayers)), block);
}

void hf_refuse(HfConfig& config, std::string_view what, std::string_view hint) {
  const std::string model_type = config.string_or("model_type", config.model_type());
  config.reader().error_at("model_type", "unsupported-model", fmt::format("\"{}\" {}", model_type, what),
                           std::string(hint));
}

void hf_check_activation(HfConfig& config, std::string_view key) {
  // None of them has parameters or changes a matrix; whether the feed-forward is gated belongs to the family.
  static constexpr std::array<std::string_view, 12> kKnown{
      "silu",      "swish", "gelu",  "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_python", "quick_gelu",
      "gelu_tanh", "relu",  "relu2", "mish"};
  const std::string name = config.string_or(key, "gelu");
  if (name.empty() || std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) return;
  config.reader().error_at(key, "unknown-name", fmt::format("unknown activation function \"{}\"", name),
                           fmt::format("known are {}", fmt::join(kKnown, ", ")));
}

Blueprint import_hf(const io::Document& document, Diagnostics& sink) {
  Diagnostics mistakes;
  HfConfig config(io::ObjectReader(document, document.root, "", mistakes));
  Blueprint out;
  if (config.reader().valid()) {
    const std::string model_type = config.reader().string("model_type");
    const HfFamily* family = find_hf_family(model_type);
    if (family != nullptr) {
      out = family->import(config);
    } else if (!model_type.empty()) {
      config.reader().error_at("model_type", "unknown-name", fmt::format("unsupported model_type \"{}\"", model_type),
                               family_hint(model_type, all_families()));
    }
  }
  sink.insert(sink.end(), mistakes.begin(), mistakes.end());
  return out;
}

}  // namespace tangram::model
