#include <algorithm>

#include "tangram/base/enum_names.hpp"

#include "infer.hpp"
#include "words.hpp"

namespace tangram::accuracy {

std::string software_of(const Measurement& m) { return m.framework + " " + m.source; }

bool names_megatron_bridge(std::string_view software) {
  return names_any(software, {"megatron bridge", "megatron-bridge"});
}

bool is_compiled(const Measurement& m) { return names_any(software_of(m), {"maxtext", "paxml", "jax"}); }

bool is_on_pytorch(const Measurement& m) {
  return names_any(software_of(m), {"torchtitan", "pytorch fsdp", "fms-fsdp", "automodel"});
}

bool runs_nvidia_trainer(const Measurement& m) {
  return names_any(software_of(m), {"nemo", "megatron bridge", "megatron-bridge", "dgx cloud"}) && !is_on_pytorch(m);
}

namespace {

/// As printed.
bool overlaps(const Measurement& m, std::string_view exchange) {
  return m.overlap && std::ranges::count(*m.overlap, exchange) > 0;
}

/// Blocks of Transformer Engine, as NVIDIA's and AMD's trainers and what is made of them have them, or of a compiler.
bool has_vendor_kernels(const Measurement& m, const cluster::GpuType& device) {
  if (!is_recent(device) || is_on_pytorch(m)) return false;
  return runs_nvidia_trainer(m) ||
         names_any(software_of(m) + " " + m.precision, {"megatron", "dgxc-benchmarking", "mlperf", "maxtext", "paxml",
                                                        "primus", "transformer engine", "(te"});
}

/// To MLPerf.
bool is_nvidia_submission(const Measurement& m, const cluster::GpuType& device) {
  return names_any(m.source, {"mlperf"}) && device.vendor == "nvidia";
}

/// Submissions to MLPerf on NVIDIA's GPUs run NeMo.
bool follows_recipes(const Measurement& m, const cluster::GpuType& device) {
  return is_nvidia_submission(m, device) || runs_nvidia_trainer(m);
}

/// MXFP8 in Megatron-Bridge's recipes of 2025 (v0.2.0 to v0.2.2, scripts/performance/configs: overlap_param_gather =
/// False, which "causes NaN grad norm").
bool gathers_apart(const Measurement& m) {
  return names_any(m.source, {"bridge performance summary, 25."}) && names_any(m.precision, {"mx"});
}

/// The recipes gather parameters beside the next forward pass wherever there is data parallelism
/// (CommOverlapConfig._get_optimizer_overlap_cfgs). An empty list says that nothing overlaps.
bool overlaps_gather(const Measurement& m, const cluster::GpuType& device) {
  if ((m.overlap && m.overlap->empty()) || gathers_apart(m)) return false;
  return overlaps(m, "param_gather") || follows_recipes(m, device);
}

/// Of their recipes with data parallelism (CommOverlapConfig._get_optimizer_overlap_cfgs).
constexpr std::int64_t kRecipeBucket = 128LL << 20;

/// NeMo's and Megatron-Bridge's recipes overlap the exchanges of tp wherever there are any (CommOverlapConfig with
/// tp_comm_overlap = tp > 1 in scripts/performance).
bool overlaps_tensor_exchange(const Measurement& m, const cluster::GpuType& device) {
  return names_any(m.variant, {"async tp", "asynctp"}) || overlaps(m, "tp_comm") || follows_recipes(m, device);
}

/// As printed. Submissions to MLPerf capture the iteration where NVIDIA's kernels run (its reference of v5.0 and
/// later).
model::CudaGraphs find_graphs(const Measurement& m, const cluster::GpuType& device) {
  const GraphFacts& facts = m.graphs;
  if (facts.captured_by.empty() && is_nvidia_submission(m, device) && is_recent(device)) return model::kGraphOfStep;
  if (facts.captured_by.empty() || facts.captured_by == "none") return model::kNoGraphs;
  if (std::ranges::count(facts.scope, "layer") > 0) return model::kGraphsOfBlocks;
  if (facts.captured_by != "transformer_engine") return model::kGraphOfStep;
  return facts.scope.empty() ? model::kGraphsOfBlocks : members_called(model::kGraphModuleNames, facts.scope);
}

/// Trainers younger than FlashAttention-2, which they take from its authors' package or from PyTorch.
bool is_young(const Measurement& m) {
  return names_any(software_of(m), {"xtuner", "torchtune", "axolotl", "llama-factory", "llamafactory", "unsloth",
                                    "prime-rl", "verl", "huggingface/trl"});
}

/// Models written in a framework's operators: of trainers on PyTorch, of Hugging Face's transformers and what trains
/// them, and of Paddle.
bool runs_operators(const Measurement& m) {
  return is_on_pytorch(m) ||
         names_any(software_of(m), {"hugging face", "huggingface", "transformers", "litgpt", "torchtune", "axolotl",
                                    "llama-factory", "llamafactory", "paddlenlp"});
}

/// As printed. Megatron-Bridge's summary calls tensorwise FP8 what it later calls FP8-CS; a scale of each row takes one
/// pass, as those of blocks do; else Megatron-Core's default.
model::Fp8Recipe find_fp8_recipe(const Measurement& m) {
  using model::Fp8Recipe;
  if (names_any(m.precision, {"delayed"})) return Fp8Recipe::kDelayed;
  if (names_any(m.precision, {"mx"})) return Fp8Recipe::kMxfp8;
  if (names_any(m.precision, {"block", "subchannel", "rowwise", "deepgemm"})) return Fp8Recipe::kBlockwise;
  if (names_megatron_bridge(software_of(m)) || names_any(m.precision, {"-cs", "current", "tensorwise"}))
    return Fp8Recipe::kTensorwise;
  return Fp8Recipe::kDelayed;
}

/// NeMo's and Megatron-Bridge's recipes keep parameters in 8 and 4 bits (fp8_params, fp8_param_gather and
/// fp4_param_gather in their mixed precision), but for scales of blocks. So do AMD's submissions to MLPerf, which are
/// made of NeMo. FSDP2 gathers them so where a tensor has one scale (torchao's enable_fsdp_float8_all_gather, which
/// sources print); compilers gather two bytes.
bool keeps_narrow_parameters(const Measurement& m, const cluster::GpuType& device, model::Fp8Recipe recipe) {
  if (is_compiled(m)) return false;
  if (names_any(software_of(m), {"torchtitan", "fsdp2"})) return recipe == model::Fp8Recipe::kTensorwise;
  const bool narrow = follows_recipes(m, device) || names_any(m.source, {"mlperf training"});
  return narrow && recipe != model::Fp8Recipe::kBlockwise;
}

/// Submissions to MLPerf fine-tune without, those on AMD's GPUs train without as well:
/// disable_parameter_transpose_cache and ENABLE_TRANSPOSE_CACHE=0 in their configurations (training_results_v5.1,
/// llama2_70b_lora and llama31_8b). On Blackwell fp8 has one copy either way.
bool keeps_transposes(const Measurement& m, const cluster::GpuType& device) {
  if (!names_any(m.source, {"mlperf training"})) return true;
  return device.vendor != "amd" && m.adapters.rank == 0;
}

/// One kernel for the products of all experts: torch._grouped_mm in torchtitan, in prime-rl, which is made of it, and
/// in GeodesicResearch's campaigns (docs/investigations/nano30b-pretrain-perf-campaign); what Primus-Turbo has (Primus,
/// MoE training deep-dive).
bool has_grouped_gemm(const Measurement& m) {
  const bool geodesic = names_any(m.dataset, {"geodesic"}) && names_any(m.source, {"campaign"});
  return geodesic || names_any(software_of(m), {"torchtitan", "prime-rl", "turbo", "automodel"});
}

model::ExpertDispatch find_dispatch(const ExpertFacts& facts) {
  if (facts.dispatcher == "hybridep") return model::ExpertDispatch::kHybridEp;
  return facts.dispatcher == "deepep" || facts.dispatcher == "flex" ? model::ExpertDispatch::kDeepEp
                                                                    : model::ExpertDispatch::kAllToAll;
}

/// As printed; XTuner's sequence parallelism is Ulysses' (its docs, acceleration/train_extreme_long_sequence).
model::ContextExchange find_context_exchange(const Measurement& m) {
  if (m.context_exchange == "all_gather") return model::ContextExchange::kAllGather;
  const bool heads = m.context_exchange.empty() ? names_any(software_of(m), {"xtuner"}) : m.context_exchange == "a2a";
  return heads ? model::ContextExchange::kAllToAll : model::ContextExchange::kRing;
}

/// Forced: tokens are spread evenly whatever the router says; dropped beyond a capacity of 1: no rank has more.
/// Natural: the busiest rank of a run without either.
double find_imbalance(const ExpertFacts& facts, double usual) {
  constexpr double kNatural = 1.4;
  if (names_any(facts.balance, {"forced", "auxiliary loss"})) return 1;
  return facts.balance == "natural" ? kNatural : usual;
}

/// Megatron-Bridge's models and NVIDIA's submissions have Transformer Engine's (GPTModelProvider), but for hybrid ones,
/// which have the compiled one (HybridModelProvider, perf_recipes/nemotronh); so have NeMo's (cross_entropy_loss_fusion
/// of its models and of the files in v24.11 and v25.02), until its scripts of April 2025 took Transformer Engine's.
/// MosaicML's have FlashAttention's, one kernel as well (ComposerMPTCausalLM), and so may XLA's.
model::FusedLoss find_loss(const Measurement& m, const cluster::GpuType& device) {
  using model::FusedLoss;
  if (names_any(m.source, {"llm-foundry"})) return FusedLoss::kTransformerEngine;
  if (!has_vendor_kernels(m, device) || !follows_recipes(m, device)) return FusedLoss::kNone;
  if (is_compiled(m)) return FusedLoss::kTransformerEngine;
  const bool hybrid = names_any(m.model.name, {"nemotron_3", "nemotron-h"});
  return hybrid || names_any(m.source, {"recipes v24.", "recipes v25.02", "recipes v25.04", "summary, 24.",
                                        "summary, 25.02", "summary, 25.04"})
             ? FusedLoss::kNative
             : FusedLoss::kTransformerEngine;
}

/// NVIDIA's containers of 2025 had cuDNN 9.8 to 9.15, submissions to MLPerf v5.0 and v5.1 are made of them.
bool runs_early_kernels(const Measurement& m) {
  return names_any(m.source, {"performance summary, 25.", "recipes v25.", "mlperf training v5."});
}

void take_early_kernels(cluster::NativeAttention& native) {
  if (native.early_forward_extra_keys > 0) native.forward_extra_keys = native.early_forward_extra_keys;
  if (native.early_backward_extra_keys > 0) native.backward_extra_keys = native.early_backward_extra_keys;
}

}  // namespace

std::vector<cluster::GpuType> devices_of_the_time(const Measurement& m, std::span<const cluster::GpuType> devices) {
  std::vector<cluster::GpuType> own(devices.begin(), devices.end());
  if (!runs_early_kernels(m)) return own;
  for (cluster::GpuType& device : own) {
    if (device.compute.native_attention) take_early_kernels(*device.compute.native_attention);
  }
  return own;
}

bool overlaps_reduction(const Measurement& m) {
  return overlaps(m, "grad_reduce") || overlaps(m, "overlap_grad_reduce");
}

void set_kernels(model::Job& job, const Measurement& m, const cluster::GpuType& device) {
  const bool vendor = has_vendor_kernels(m, device);
  const bool generation = vendor || (is_young(m) && !is_recent(device));
  const bool native = m.attention_kernel.empty() ? generation : m.attention_kernel == "native";
  job.attention_kernel = native ? model::AttentionKernel::kNative : model::AttentionKernel::kFlash2;
  const bool compiled = names_any(m.variant, {"compile"});
  job.fused_kernels = vendor || compiled || (runs_operators(m) && is_recent(device));
  if (!compiled && runs_operators(m) && !m.kernels.fused.value_or(false)) job.eager_operators = model::kAllEager;
  job.fp8_recipe = find_fp8_recipe(m);
  job.narrow_parameters = keeps_narrow_parameters(m, device, job.fp8_recipe);
  job.transpose_cache = keeps_transposes(m, device) || !has_transposable_weights(job);
  job.narrow_gates = m.narrow_gates;
  // Float8Linear of torchao saves inputs in 2 bytes, its NVFP4 linear layers do not.
  job.narrow_inputs = vendor || job.precision == DType::kFp4;
  job.wide_experts = names_any(m.precision, {"bf16 experts"});
  job.in_place_loss = vendor;
  job.fused_loss = find_loss(m, device);
  job.cuda_graphs = find_graphs(m, device);
  job.overlap_tp = overlaps_tensor_exchange(m, device);
  if (follows_recipes(m, device)) job.gradient_bucket = kRecipeBucket;
  job.overlap_gather = overlaps_gather(m, device);
  job.grouped_gemm = has_grouped_gemm(m);
  job.expert_dispatch = find_dispatch(m.routing);
  job.context_exchange = find_context_exchange(m);
  job.overlap_experts = overlaps(m, "overlap_moe_expert_parallel_comm");
  job.routing_imbalance = find_imbalance(m.routing, job.routing_imbalance);
}

}  // namespace tangram::accuracy
