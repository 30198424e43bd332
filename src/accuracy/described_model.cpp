#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer.hpp"
#include "reason.hpp"
#include "words.hpp"

namespace tangram::accuracy {
namespace {

/// Families after Llama: RMSNorm, gated feed-forward, rotary positions, no biases, an output matrix of its own.
bool names_gated_family(std::string_view name) {
  return names_any(name, {"llama", "mistral", "qwen", "gemma", "internlm", "yi-", "baichuan", "deepseek", "olmo"});
}

std::int64_t inner_width(const ModelFacts& facts, bool gated) {
  if (facts.ffn > 0) return facts.ffn;
  if (!gated) return 4 * facts.hidden;
  return (8 * facts.hidden / 3 + 255) / 256 * 256;
}

int head_count(const ModelFacts& facts) {
  if (facts.heads > 0) return facts.heads;
  const std::int64_t dim = facts.hidden <= 2048 ? 64 : 128;
  return static_cast<int>(std::max<std::int64_t>(1, facts.hidden / dim));
}

double parameter_estimate(const ModelFacts& facts, bool gated) {
  const double h = static_cast<double>(facts.hidden);
  const double kv = facts.kv_heads > 0 ? static_cast<double>(facts.kv_heads) / head_count(facts) : 1;
  const double attention = h * h * (2 + 2 * kv);
  return facts.layers * (attention + (gated ? 3 : 2) * h * static_cast<double>(inner_width(facts, gated))) +
         h * static_cast<double>(facts.vocabulary);
}

/// Grouped queries are younger than Llama.
bool is_surely_gated(std::string_view name, int kv_heads) { return names_gated_family(name) || kv_heads > 0; }

bool is_gated(const ModelFacts& facts) {
  if (facts.gated) return *facts.gated;
  if (is_surely_gated(facts.name, facts.kv_heads)) return true;
  if (facts.ffn == 0 || facts.parameters <= 0) return false;
  const auto miss = [&](bool gated) { return std::abs(std::log(parameter_estimate(facts, gated) / facts.parameters)); };
  return miss(true) < miss(false);
}

/// Layers as those of GPT-2, each item a sample of its own, and two products behind them, as wide as the language
/// model.
std::string encoder_description(const EncoderFacts& facts, std::int64_t target) {
  const std::int64_t tokens_out = facts.tokens_out > 0 ? facts.tokens_out : facts.tokens_in;
  return fmt::format(
      R"("encoders": [{{"name": "{}", "hidden": {}, "layers": {}, "heads": {}, "ffn_hidden": {}, "gated": false,
      "norm": "layernorm", "qkv_bias": true, "output_bias": true, "ffn_bias": true, "tokens_in": {}, "tokens_out": {},
      "connector": {{"widths": [{}, {}, {}]}}}}], )",
      kEncoderName, facts.hidden, facts.layers, facts.heads, facts.ffn > 0 ? facts.ffn : 4 * facts.hidden,
      facts.tokens_in, tokens_out, facts.hidden, target, target);
}

/// Replicas of an encoder with degrees of its own share samples item by item.
std::int64_t described_items(const EncoderFacts& facts) {
  return facts.placement == Placement::kHomogeneous ? facts.items : 1;
}

/// What a model file has to say of a language model. Positions are left out: a table costs no time and few parameters.
struct Sizes {
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;  ///< 0: hidden / heads
  bool gated = false;
  bool biased = false;
  std::string feed_forward;  ///< its keys
};

/// GPT as GPT-2 has it, or Llama.
Sizes dense_sizes(const ModelFacts& facts) {
  const bool gated = is_gated(facts);
  const int heads = head_count(facts);
  Sizes sizes;
  sizes.vocabulary = facts.vocabulary > 0 ? facts.vocabulary : (gated ? 32000 : 50304);
  sizes.hidden = facts.hidden;
  sizes.layers = facts.layers;
  sizes.heads = heads;
  sizes.kv_heads = facts.kv_heads > 0 ? facts.kv_heads : heads;
  sizes.gated = gated;
  sizes.biased = !gated && !names_any(facts.name, {"mpt"});
  sizes.feed_forward = fmt::format(R"("ffn_hidden": {})", inner_width(facts, gated));
  return sizes;
}

std::string expert_keys(const PrintedDims& dims) {
  const std::int64_t shared =
      dims.shared_expert_ffn > 0 ? dims.shared_expert_ffn : dims.shared_experts * dims.expert_ffn;
  const std::string dense = dims.dense_layers > 0 ? fmt::format(R"("ffn_hidden": {}, )", dims.dense_ffn) : "";
  return fmt::format(
      R"({}"moe": {{"experts": {}, "experts_per_token": {}, "expert_hidden": {}, "shared_hidden": {},
      "first_dense_layers": {}}})",
      dense, dims.experts, dims.experts_per_token, dims.expert_ffn, shared, dims.dense_layers);
}

Sizes expert_sizes(const PrintedDims& dims, bool gated) {
  Sizes sizes;
  sizes.vocabulary = dims.vocabulary;
  sizes.hidden = dims.hidden;
  sizes.layers = dims.layers;
  sizes.heads = dims.heads;
  sizes.kv_heads = dims.kv_heads > 0 ? dims.kv_heads : dims.heads;
  sizes.head_dim = dims.head_dim;
  sizes.gated = gated;
  sizes.biased = dims.biased.value_or(!gated);
  sizes.feed_forward = expert_keys(dims);
  return sizes;
}

/// The name is not written into the text, whatever it holds.
std::string description(const Sizes& sizes, const std::optional<EncoderFacts>& encoder_facts) {
  const std::string encoder = encoder_facts ? encoder_description(*encoder_facts, sizes.hidden) : "";
  const std::string data = encoder_facts ? fmt::format(R"("data": {{"{}": {{"mean": {}}}}}, )", kEncoderName,
                                                       described_items(*encoder_facts))
                                         : "";
  const std::string head_dim = sizes.head_dim > 0 ? fmt::format(R"("head_dim": {}, )", sizes.head_dim) : "";
  return fmt::format(
      R"({{"schema": "tangram.model/1", "name": "published", {}"architecture": {{{}"vocabulary": {}, "hidden": {}, "layers": {},
      "heads": {}, "kv_heads": {}, {}{}, "gated": {}, "norm": "{}", "qkv_bias": {}, "output_bias": {},
      "ffn_bias": {}, "tied_embeddings": {}}}, "training": {{"sequence_length": 1, "global_batch_samples": 1}}}})",
      data, encoder, sizes.vocabulary, sizes.hidden, sizes.layers, sizes.heads, sizes.kv_heads, head_dim,
      sizes.feed_forward, sizes.gated, sizes.gated || !sizes.biased ? "rmsnorm" : "layernorm", sizes.biased,
      sizes.biased, sizes.biased, !sizes.gated);
}

Expected<model::Model> model_of(const Sizes& sizes, const Measurement& m) {
  auto model = model::read_model(description(sizes, m.encoder), m.id, job_of(m));
  if (!model) return fail(reason("the printed dimensions make no model: " + model.error().front().message));
  model->name = m.model.name;
  return model;
}

/// Keys of `dims` without which a model of experts is not described.
std::vector<std::string_view> missing_keys(const PrintedDims& dims) {
  const std::pair<std::string_view, std::int64_t> needed[] = {
      {"hidden", dims.hidden},           {"layers", dims.layers},         {"heads", dims.heads},
      {"top_k", dims.experts_per_token}, {"expert_ffn", dims.expert_ffn}, {"vocab", dims.vocabulary}};
  std::vector<std::string_view> missing;
  for (const auto& [key, value] : needed) {
    if (value == 0) missing.push_back(key);
  }
  if (dims.dense_layers > 0 && dims.dense_ffn == 0) missing.push_back("dense_ffn");
  return missing;
}

/// What the sizes cannot say; empty: nothing.
std::string why_not_described(const ModelFacts& facts) {
  const PrintedDims& dims = facts.dims;
  if (!dims.pattern.empty()) return fmt::format("its layers are printed as \"{}\", not one by one", dims.pattern);
  if (!dims.attention.empty()) return fmt::format("its attention is printed as \"{}\" alone", dims.attention);
  if (dims.prediction_layers > 0) return "its layers for multi-token prediction are not modelled";
  if (const auto missing = missing_keys(dims); !missing.empty()) {
    return fmt::format("{} {} not printed", fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are");
  }
  const bool told = dims.gated || is_surely_gated(facts.name, dims.kv_heads);
  return told ? "" : "whether its experts are gated is not printed";
}

/// Publications count with or without embeddings, and round or cut off. A proxy's count is that of the whole model.
bool agrees_with_count(const ModelFacts& facts, const model::Model& model) {
  const PrintedDims& dims = facts.dims;
  if (dims.parameters == 0 || names_any(facts.name, {"proxy"})) return true;
  const auto all = static_cast<double>(model.total_parameters());
  const double ends = static_cast<double>(model.embedding_parameters() + model.head_parameters());
  return dims.parameters > all - ends - dims.parameters_unit && dims.parameters < all + dims.parameters_unit;
}

}  // namespace

Expected<model::Model> described_dense(const Measurement& m) { return model_of(dense_sizes(m.model), m); }

Expected<model::Model> described_experts(const Measurement& m) {
  const ModelFacts& facts = m.model;
  if (const std::string why = why_not_described(facts); !why.empty()) {
    return fail(reason(fmt::format("configs/models knows no \"{}\": {}", facts.name, why)));
  }
  const bool gated = facts.dims.gated.value_or(is_surely_gated(facts.name, facts.dims.kv_heads));
  auto model = model_of(expert_sizes(facts.dims, gated), m);
  if (!model || agrees_with_count(facts, *model)) return model;
  return fail(
      reason(fmt::format("the sizes printed of \"{}\" make {:.1f} billion parameters, but {:g} are printed", facts.name,
                         static_cast<double>(model->total_parameters()) / 1e9, facts.dims.parameters / 1e9)));
}

}  // namespace tangram::accuracy
