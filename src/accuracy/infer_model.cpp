#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "infer.hpp"
#include "reason.hpp"
#include "tangram/base/enum_names.hpp"
#include "words.hpp"

namespace tangram::accuracy {

namespace {

/// What is missing where no model is described.
Diagnostic no_model(const ModelFacts& facts) {
  if (facts.hidden > 0 || facts.layers > 0) {
    return reason(fmt::format("{} of \"{}\" {} not printed, and configs/models knows no model of that name",
                              facts.hidden > 0 ? "the layers" : "the width", facts.name,
                              facts.hidden > 0 ? "are" : "is"));
  }
  return reason(fmt::format("no dimensions are printed, and configs/models knows no \"{}\"", facts.name));
}

bool prints_experts(const PrintedDims& dims) { return dims.experts > 0 || !dims.pattern.empty(); }

/// As its dimensions describe it, where those of a model of experts are not of a known one; else of a known name.
Expected<model::Model> architecture_of(const Measurement& m) {
  const ModelFacts& facts = m.model;
  const bool dense = facts.hidden > 0 && facts.layers > 0;
  if (m.encoder && !dense) return fail(reason("the dimensions of the language model are not printed"));
  if (dense) return described_dense(m);
  if (auto known = known_model(m)) return std::move(*known);
  if (prints_experts(facts.dims)) return described_experts(m);
  return fail(no_model(facts));
}

bool fuses_accumulation(const Measurement& m, const cluster::GpuType& device) {
  const bool younger = m.sequence_parallel.value_or(false) || (zero_stage(m) >= 2 && !shards_eagerly(m, device));
  return is_recent(device) || younger;
}

/// With gates in feed-forwards: younger than FlashAttention, and trained without dropout (Llama, arXiv 2302.13971).
bool is_after_llama(const model::Model& model) {
  return std::ranges::any_of(model.types, [](const model::BlockType& block) { return block.feed_forward.gated; });
}

/// Not printed: of rank 16 beside all matrices.
void add_adapters(model::Model& model, const AdapterFacts& printed, bool quantized) {
  constexpr std::int64_t kUsualRank = 16;
  model::Adapters adapters;
  adapters.rank = adapters.alpha = printed.rank > 0 ? printed.rank : kUsualRank;
  for (const std::string& name : printed.targets) adapters.targets.add(*model::target_called(name));
  if (quantized) adapters.base = model::BaseQuantization::kNf4Double;
  model::set_adapters(model, adapters);
}

}  // namespace

model::JobOverrides job_of(const Measurement& m) {
  model::JobOverrides job;
  job.sequence_length = m.sequence;
  job.global_batch = m.global_batch;
  return job;
}

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

bool uses_fused_attention(const Measurement& m, const cluster::GpuType& device, const model::Model& model) {
  if (m.flash_attention) return *m.flash_attention;
  // As long as the precision allows it: find_model.
  return is_recent(device) || is_after_llama(model) || (zero_stage(m) >= 2 && !shards_eagerly(m, device));
}

bool uses_sequence_parallelism(const Measurement& m, const cluster::GpuType& device) {
  if (m.sequence_parallel) return *m.sequence_parallel;
  return is_recent(device) && m.stage_replicas.empty();
}

void set_printed(model::Job& job, const KernelFacts& printed) {
  job.dropout = printed.dropout.value_or(job.dropout);
  job.fused_kernels = printed.fused.value_or(job.fused_kernels);
  job.eager_operators = printed.eager.value_or(job.eager_operators);
  if (printed.fused_loss) {
    job.fused_loss = *printed.fused_loss ? model::FusedLoss::kTransformerEngine : model::FusedLoss::kNone;
  }
  job.fused_accumulation = printed.fused_accumulation.value_or(job.fused_accumulation);
}

model::RecomputeMode find_recompute(const Measurement& m) {
  if (m.recompute.starts_with("full")) return model::RecomputeMode::kFull;
  if (m.recompute.starts_with("selective") || !m.recompute_modules.empty()) return model::RecomputeMode::kSelective;
  return model::RecomputeMode::kNone;
}

/// Megatron-Core's default is the core of attention.
model::RecomputeModules find_modules(const Measurement& m) {
  model::RecomputeModules modules = members_called(model::kRecomputeModuleNames, m.recompute_modules);
  if (m.recompute == "selective" && m.recompute_modules.empty()) modules.add(model::RecomputeModule::kCoreAttention);
  return modules;
}

namespace {

/// Megatron-Bridge's recipes do not divide experts (expert_tensor_parallel_size = 1 in src/megatron/bridge/recipes and
/// perf_recipes).
bool keeps_experts_whole(const Measurement& m) { return names_megatron_bridge(m.source); }

bool divides_experts(const Measurement& m) {
  if (is_on_pytorch(m) || keeps_experts_whole(m)) return false;
  return runs_nvidia_trainer(m) || names_any(software_of(m), {"megatron", "mlperf"});
}

/// All of Megatron-Bridge's recipes (use_distributed_optimizer = True in src/megatron/bridge/recipes).
bool shards_optimizer(const Measurement& m) { return names_megatron_bridge(m.source); }

}  // namespace

int expert_tensor_parallelism(const Measurement& m) {
  const int usual = divides_experts(m) ? std::max(1, m.tp.value_or(1)) : 1;
  return std::max(1, m.expert_tp.value_or(usual));
}

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

/// Of recipes for performance: Megatron-Bridge's summary and its pages on performance, NeMo's summaries, DGX Cloud's
/// recipes.
bool is_of_recipes(const Measurement& m) {
  return names_any(m.source, {"bridge performance summary", "mbridge-perf", "nemo framework", "dgx cloud"});
}

/// So do recipes (grad_reduce_in_fp32 = False in Megatron-Bridge's scripts/performance/configs and
/// src/megatron/bridge/perf_recipes, v0.2.0 and later, which items of its cards are of as well, and in NeMo's
/// nemo/collections/llm/recipes, grad_sync_dtype: bf16 before), and all submissions to MLPerf's training of Llama (the
/// same in their pretrain.py and train.py).
bool reduces_in_16_bits(const Measurement& m) {
  if (is_compiled(m)) return false;
  return is_of_recipes(m) || names_any(m.source, {"pretrain_performance", "pretrain_weak_scaling", "mlperf training"});
}

/// As printed first of all.
std::int64_t find_gradient_bytes(const Measurement& m, std::int64_t usual) {
  if (!m.gradient_dtype.empty()) return m.gradient_dtype == "fp32" ? 4 : 2;
  return reduces_in_16_bits(m) ? 2 : usual;
}

/// As printed; in bf16 in Megatron-Bridge's recipes of DeepSeek-V3 and Moonlight (exp_avg_dtype in
/// src/megatron/bridge/recipes/deepseek and moonlight). Its bf16 runs say that fp8 would be tensorwise, too
/// (MixedPrecisionConfig): so its precision-aware optimizer, which its script for performance asks for, has master
/// copies and copies of gradients in fp32 (Megatron-Core, optimizer_config.py), as any other.
std::string_view find_moments(const Measurement& m) {
  if (!m.moment_dtype.empty() || !names_megatron_bridge(m.source)) return m.moment_dtype;
  return names_any(m.model.name, {"deepseek", "moonlight"}) ? "bf16" : "";
}

/// Of Adam's two moments.
std::int64_t bytes_below_fp32(std::string_view moments) {
  if (moments == "bf16") return 4;
  return moments == "fp8" ? 6 : 0;
}

/// As printed; NVIDIA's recipes for fine-tuning pack SQuAD (scripts/performance of NeMo 2.2 and Megatron-Bridge v0.2.0
/// to v0.5.0), whose passages, questions and answers have 117, 10 and 3 words (CoQA, arXiv 1808.07042, table 3), in
/// four tokens for three words with their headings.
model::Packing find_packing(const Measurement& m) {
  constexpr double kSquad = 180;
  if (m.packing.any()) return m.packing;
  const bool tunes = m.task.find("SFT") != std::string::npos || m.task.find("LoRA") != std::string::npos;
  return tunes && is_of_recipes(m) ? model::Packing{kSquad, 0, {}} : model::Packing{};
}

}  // namespace

Expected<model::Model> find_model(const Measurement& m, const cluster::GpuType& device) {
  auto model = architecture_of(m);
  if (!model) return model;
  model::set_precision(model->job, find_precision(m, device));
  model->job.gradient_bytes = find_gradient_bytes(m, model->job.gradient_bytes);
  model->job.fused_accumulation = fuses_accumulation(m, device);
  model->job.blocking_launches = m.launch_blocking;
  model->job.flash_attention = uses_fused_attention(m, device, *model) && model->job.parameter_bytes == 2;
  set_kernels(model->job, m, device);
  model->job.recompute_modules = find_modules(m);
  model->job.offload_modules = members_called(model::kOffloadModuleNames, m.offload_modules);
  model->job.dropout = !is_recent(device) && !is_after_llama(*model);
  model->job.wide_layers = {m.wide_first, m.wide_last};
  model::set_wide_layers(*model);
  set_printed(model->job, m.kernels);
  std::int64_t& state = model->job.optimizer.state_bytes_per_parameter;
  state = m.state_bytes > 0 ? m.state_bytes : state - bytes_below_fp32(find_moments(m));
  if (m.task.find("LoRA") != std::string::npos) {
    add_adapters(*model, m.adapters, m.task.find("QLoRA") != std::string::npos);
  }
  model->job.packing = find_packing(m);
  model::set_packing(*model);
  return model;
}

}  // namespace tangram::accuracy
