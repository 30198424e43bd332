#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "infer.hpp"
#include "reason.hpp"
#include "words.hpp"

namespace tangram::accuracy {

/// Generated from configs/models: Hugging Face configs and model files that stand by themselves.
std::vector<std::pair<std::string_view, std::string_view>> known_models();

namespace {

/// "LLAMA3.1_405B" and "llama-3.1-405b.json" are one.
std::string key_of(std::string_view name) {
  for (const std::string_view ending : {".json", ".yaml"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  std::string key;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return key;
}

model::JobOverrides job_of(const Measurement& m) {
  model::JobOverrides job;
  job.sequence_length = m.sequence;
  job.global_batch = m.global_batch;
  return job;
}

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

bool is_gated(const ModelFacts& facts) {
  if (facts.gated) return *facts.gated;
  if (names_gated_family(facts.name) || facts.kv_heads > 0) return true;
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

/// GPT as GPT-2 has it, or Llama. Positions are left out: a table costs no time and few parameters. The name is not
/// written into the text, whatever it holds.
std::string description(const Measurement& m) {
  const ModelFacts& facts = m.model;
  const bool gated = is_gated(facts);
  const int heads = head_count(facts);
  const bool biased = !gated && !names_any(facts.name, {"mpt"});
  const std::string encoder = m.encoder ? encoder_description(*m.encoder, facts.hidden) : "";
  const std::string data =
      m.encoder ? fmt::format(R"("data": {{"{}": {{"mean": {}}}}}, )", kEncoderName, described_items(*m.encoder)) : "";
  return fmt::format(
      R"({{"schema": "tangram.model/1", "name": "published", {}"architecture": {{{}"vocabulary": {}, "hidden": {}, "layers": {},
      "heads": {}, "kv_heads": {}, "ffn_hidden": {}, "gated": {}, "norm": "{}", "qkv_bias": {}, "output_bias": {},
      "ffn_bias": {}, "tied_embeddings": {}}}, "training": {{"sequence_length": 1, "global_batch_samples": 1}}}})",
      data, encoder, facts.vocabulary > 0 ? facts.vocabulary : (gated ? 32000 : 50304), facts.hidden, facts.layers,
      heads, facts.kv_heads > 0 ? facts.kv_heads : heads, inner_width(facts, gated), gated,
      biased ? "layernorm" : "rmsnorm", biased, biased, biased, !gated);
}

Expected<model::Model> described_model(const Measurement& m) {
  auto model = model::read_model(description(m), m.id, job_of(m));
  if (!model) return fail(reason("the printed dimensions make no model: " + model.error().front().message));
  model->name = m.model.name;
  return model;
}

Expected<model::Model> known_model(const Measurement& m) {
  const std::string key = key_of(m.model.name);
  for (const auto& [file, text] : known_models()) {
    if (key_of(file) != key) continue;
    auto model = model::read_any_model(std::string(text), std::string(file), job_of(m));
    if (!model) return fail(reason(model.error().front().message));
    if (auto agrees = check_printed_dims(m.model, *model); !agrees) return tl::unexpected(agrees.error());
    return model;
  }
  return fail(reason(fmt::format("no dimensions are printed, and configs/models knows no \"{}\"", m.model.name)));
}

bool fuses_accumulation(const Measurement& m, const cluster::GpuType& device) {
  const bool younger = m.sequence_parallel.value_or(false) || (zero_stage(m) >= 2 && !shards_eagerly(m, device));
  return is_recent(device) || younger;
}

/// Low-rank adapters: the weights of blocks are frozen. The adapters' own products are below a hundredth and left out.
void freeze_weights(model::Model& model) {
  for (model::BlockType& block : model.types) block.gradients = {false, true};
}

}  // namespace

DType find_precision(const Measurement& m, const cluster::GpuType& device) {
  const std::string printed = lower(m.precision.empty() ? m.notes : m.precision);
  // NVIDIA's containers compute fp32 products as tf32 where the matrix units can.
  const DType single = device.peak_of(DType::kTf32).value() > 0 ? DType::kTf32 : DType::kFp32;
  const std::pair<const char*, DType> names[] = {{"fp4", DType::kFp4},   {"fp8", DType::kFp8},   {"bf16", DType::kBf16},
                                                 {"fp16", DType::kFp16}, {"tf32", DType::kTf32}, {"fp32", single}};
  std::size_t first = std::string::npos;
  std::optional<DType> precision;
  for (const auto& [name, type] : names) {
    const std::size_t at = printed.find(name);
    if (at >= first) continue;
    first = at;
    precision = type;
  }
  if (precision) return *precision;
  return device.peak_of(DType::kBf16).value() > 0 ? DType::kBf16 : DType::kFp16;
}

bool uses_fused_attention(const Measurement& m, const cluster::GpuType& device) {
  if (m.flash_attention) return *m.flash_attention;
  // As long as the precision allows it: find_model.
  return is_recent(device) || (zero_stage(m) >= 2 && !shards_eagerly(m, device));
}

bool uses_sequence_parallelism(const Measurement& m, const cluster::GpuType& device) {
  if (m.sequence_parallel) return *m.sequence_parallel;
  return is_recent(device) && m.stage_replicas.empty();
}

void set_printed(model::Job& job, const KernelFacts& printed) {
  job.dropout = printed.dropout.value_or(job.dropout);
  job.fused_kernels = printed.fused.value_or(job.fused_kernels);
  job.fused_loss = printed.fused_loss.value_or(job.fused_loss);
  job.fused_accumulation = printed.fused_accumulation.value_or(job.fused_accumulation);
}

model::RecomputeMode find_recompute(const Measurement& m) {
  if (m.recompute.starts_with("full")) return model::RecomputeMode::kFull;
  if (m.recompute.starts_with("selective") || !m.recompute_modules.empty()) return model::RecomputeMode::kSelective;
  return model::RecomputeMode::kNone;
}

/// Megatron-Core's default is the core of attention.
model::RecomputeModules find_modules(const Measurement& m) {
  model::RecomputeModules modules;
  for (const auto& [name, module] : model::kRecomputeModules) {
    if (std::ranges::count(m.recompute_modules, name) > 0) modules.add(module);
  }
  if (m.recompute == "selective" && m.recompute_modules.empty()) modules.add(model::RecomputeModule::kCoreAttention);
  return modules;
}

namespace {

/// All of Megatron-Bridge's recipes (use_distributed_optimizer = True in src/megatron/bridge/recipes).
bool shards_optimizer(const Measurement& m) { return names_any(m.source, {"megatron bridge", "megatron-bridge"}); }

}  // namespace

int zero_stage(const Measurement& m) {
  const int usual = shards_optimizer(m) ? 1 : 0;
  return m.zero.value_or(m.sharding_group ? 3 : usual);
}

bool keeps_both_gradients(const Measurement& m, const model::Job& job) {
  return m.framework == kMegatronDeepSpeed && job.gradient_bytes > job.parameter_bytes && zero_stage(m) < 2;
}

bool shards_eagerly(const Measurement& m, const cluster::GpuType& device) {
  const bool could_take_bf16 = device.peak_of(DType::kBf16).value() > 0;
  return m.zero == 3 && names_any(m.precision, {"fp16"}) && could_take_bf16 && !is_recent(device);
}

namespace {

/// Megatron-Bridge's recipes for performance, which its summary, items of its cards and its pages on performance are of
/// (grad_reduce_in_fp32 = False in scripts/performance/configs and src/megatron/bridge/perf_recipes, v0.2.0 and later).
bool reduces_in_16_bits(const Measurement& m) {
  return names_any(m.source, {"bridge performance summary", "pretrain_performance", "pretrain_weak_scaling",
                              "nemo-mbridge-perf"});
}

/// As printed first of all.
std::int64_t find_gradient_bytes(const Measurement& m, std::int64_t usual) {
  if (!m.gradient_dtype.empty()) return m.gradient_dtype == "fp32" ? 4 : 2;
  return reduces_in_16_bits(m) ? 2 : usual;
}

}  // namespace

Expected<model::Model> find_model(const Measurement& m, const cluster::GpuType& device) {
  const bool described = m.model.hidden > 0 && m.model.layers > 0;
  if (m.encoder && !described) return fail(reason("the dimensions of the language model are not printed"));
  auto model = described ? described_model(m) : known_model(m);
  if (!model) return model;
  model::set_precision(model->job, find_precision(m, device));
  model->job.gradient_bytes = find_gradient_bytes(m, model->job.gradient_bytes);
  model->job.fused_accumulation = fuses_accumulation(m, device);
  model->job.blocking_launches = m.launch_blocking;
  model->job.flash_attention = uses_fused_attention(m, device) && model->job.parameter_bytes == 2;
  set_kernels(model->job, m, device);
  model->job.recompute_modules = find_modules(m);
  model->job.dropout = !is_recent(device);
  set_printed(model->job, m.kernels);
  if (m.task.find("LoRA") != std::string::npos) freeze_weights(*model);
  return model;
}

}  // namespace tangram::accuracy
