// Megatron-LM, stock path (pretrain_gpt.py). Rules as in NVIDIA/Megatron-LM megatron/training/arguments.py,
// megatron/core/transformer/transformer_config.py and megatron/core/parallel_state.py (2026-08): degrees and recompute
// are one value for the whole world, layers per stage are free (--pipeline-model-parallel-layout).
#include <fmt/format.h>

#include <algorithm>

#include "findings.hpp"
#include "tangram/base/at.hpp"
#include "target_rules.hpp"

namespace tangram::plan {

namespace {

// get_pp_rank_microbatches and forward_backward_pipelining_with_interleaving (megatron/core/pipeline_parallel).
void refuse_interleaved(Rules& rules, const LaunchPlan& plan, const std::vector<const Stage*>& stages) {
  const auto& first = plan.pipelines.front();
  const auto depth = static_cast<std::int64_t>(first.stages.size());
  if (depth < 2) rules.refuse("MLM_INTERLEAVED_STAGES", {}, "an interleaved schedule needs more than one stage");
  const std::string why = runtime::interleaving_refusal(first.microbatches, depth, plan.group);
  if (!why.empty()) rules.refuse("MLM_GROUP", {}, why);
  rules.none(
      stages,
      [&](const Stage& s) {
        const auto& own = at(plan.pipelines, s.pipeline);
        const auto chunks = static_cast<std::int64_t>(s.chunks.size());
        const std::int64_t classic = interleaved_warmup(depth_of(plan, s), depth, chunks, plan.group, own.microbatches);
        return s.warmup != std::min(classic, own.microbatches * chunks - 1);
      },
      "MLM_WARMUP", "stage s of S starts with 2(S-1-s) + (v-1)G forward passes of its v chunks");
  // The search counts what chunks hold on average.
  rules.none(
      stages,
      [](const Stage& s) {
        return std::ranges::any_of(
            s.parts, [](const Part& part) { return part.predicted.peak_memory > part.predicted.usable_memory; });
      },
      "MLM_CHUNK_MEMORY", "the first chunks are held longest: what a stage holds of all its chunks fits its GPUs");
}

bool has_wide_layers_in_fp8(const model::Job& job) { return job.precision == DType::kFp8 && has_wide_layers(job); }

// --num-layers-at-start-in-bf16 and --num-layers-at-end-in-bf16 (TransformerConfig.__post_init__).
void refuse_wide_layers(Rules& rules, const LaunchPlan& plan) {
  const model::Job& job = plan.model.job;
  if (!has_wide_layers_in_fp8(job)) return;
  const auto depth = static_cast<int>(plan.pipelines.front().stages.size());
  const int most = plan.model.block_count() / depth;
  if (std::max(job.wide_layers.first, job.wide_layers.last) <= most) return;
  rules.refuse("MLM_WIDE_LAYERS", {},
               fmt::format("with {} stages {} layers from either end compute in 16 bits at most", depth, most));
}

// --overlap-moe-expert-parallel-comm and --cuda-graph-impl (TransformerConfig.__post_init__).
void refuse_megatron_stages(Rules& rules, const LaunchPlan& plan, const std::vector<const Stage*>& stages) {
  const model::Job& job = plan.model.job;
  const auto recomputes_layers = [](const Stage& s) { return policy_of(s).recompute == cost::RecomputeMode::kFull; };
  if (is_partial(job.cuda_graphs)) {
    rules.none(stages, recomputes_layers, "MLM_CUDA_GRAPHS_RECOMPUTE",
               "whole layers are recomputed with graphs of a step only, not of blocks");
  }
  if (const std::string_view conflict = model::recompute_conflict(plan.model); !conflict.empty()) {
    rules.none(
        stages, [](const Stage& s) { return policy_of(s).recompute == cost::RecomputeMode::kSelective; },
        "MLM_RECOMPUTE_MODULES", std::string(conflict));
  }
  if (!job.overlap_experts) return;
  const auto exchanging = [&](const Stage& s) { return degrees_of(s).ep > 1; };
  const bool plain = plan.pipelines.front().stages.size() > 1 && !plan.is_interleaved();
  const auto experts = stages_with_experts(plan, stages);
  rules.none(
      experts, [&](const Stage& s) { return plain && exchanging(s); }, "MLM_EXPERT_OVERLAP",
      "exchanges of experts run beside passes of interleaved chunks, or of one stage");
  rules.none(
      experts, [&](const Stage& s) { return exchanging(s) && recomputes_layers(s); }, "MLM_EXPERT_OVERLAP_RECOMPUTE",
      "whole layers are not recomputed where exchanges of experts run beside passes");
  rules.none(
      experts, [&](const Stage& s) { return exchanging(s) && model::has_graphs_of_dense_layers(plan.model); },
      "MLM_EXPERT_OVERLAP_GRAPHS", "exchanges of experts do not run beside passes where graphs hold dense layers");
}

// AttnFuncWithCPAndQKVOA2A (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, 2026-08).
void refuse_context_exchange(Rules& rules, const model::Model& model, const std::vector<const Stage*>& stages) {
  if (const std::string_view conflict = model::context_conflict(model); !conflict.empty()) {
    rules.none(
        stages, [](const Stage& s) { return degrees_of(s).cp > 1; }, "MLM_CONTEXT_WINDOWS", std::string(conflict));
  }
  rules.none(
      stages, [&](const Stage& s) { return cost::repeats_heads(model, degrees_of(s)); }, "MLM_CONTEXT_HEADS",
      "an all-to-all of context parallelism repeats no key-value heads: there are at least tp x cp of them");
}

}  // namespace

void refuse_megatron_options(Rules& rules, const model::Model& model) {
  refuse_options(rules, model, runtime::runtime_of(runtime::Target::kMegatron).options, "MLM");
  const model::Job& job = model.job;
  if (has_wide_layers_in_fp8(job) && job.fp8_recipe == model::Fp8Recipe::kDelayed) {
    rules.refuse("MLM_WIDE_LAYERS_DELAYED", {},
                 "delayed scaling has no layers in 16 bits: fp8_recipe is tensorwise, blockwise or mxfp8");
  }
  if (job.optimizer.offload_fraction > 0 && !job.optimizer.precision_aware) {
    rules.refuse("MLM_OPTIMIZER_OFFLOAD", {},
                 "the optimizer that the host shares in is the precision-aware one: precision_aware is true");
  }
  if (const std::string_view conflict = model::offload_conflict(model); !conflict.empty()) {
    rules.refuse("MLM_OFFLOAD_MODULES", {}, std::string(conflict));
  }
  if (!model.has_experts()) return;
  if (job.cuda_graphs == model::kGraphOfStep) {
    rules.refuse("MLM_CUDA_GRAPHS_EXPERTS", {},
                 "a graph of a whole step needs experts whose tokens are padded to a capacity: cuda_graphs is blocks");
  }
  if (job.overlap_experts && bytes_of(job.precision) > 2) {
    rules.refuse("MLM_EXPERT_OVERLAP_PRECISION", {}, "exchanges of experts run beside passes of 2-byte values alone");
  }
}

TargetVerdict megatron_verdict(const LaunchPlan& plan) {
  Rules rules("megatron");
  const auto stages = all_stages(plan);
  refuse_general(rules, plan, "MLM");
  if (plan.is_interleaved()) refuse_interleaved(rules, plan, stages);
  refuse_wide_layers(rules, plan);
  rules.none(
      stages, [](const Stage& s) { return has_uneven_replicas(s); }, "MLM_MICROBATCH_DP",
      "every replica has equally many samples of a microbatch: data parallelism must divide it");
  const std::string one_value = " is one value for all stages";
  rules.same(
      stages, [](const Stage& s) { return degrees_of(s).tp; }, "MLM_TP_VARIES", "tensor parallelism" + one_value);
  rules.same(
      stages, [](const Stage& s) { return degrees_of(s).cp; }, "MLM_CP_VARIES", "context parallelism" + one_value);
  rules.same(stages, [](const Stage& s) { return degrees_of(s).dp; }, "MLM_DP_VARIES", "data parallelism" + one_value);
  const auto experts = stages_with_experts(plan, stages);
  rules.same(
      experts, [](const Stage& s) { return degrees_of(s).ep; }, "MLM_EP_VARIES", "expert parallelism" + one_value);
  rules.same(
      experts, [](const Stage& s) { return degrees_of(s).etp; }, "MLM_ETP_VARIES",
      "expert tensor parallelism" + one_value);
  rules.same(
      stages, [](const Stage& s) { return degrees_of(s).gpus(); }, "MLM_GPUS_VARY",
      "every stage has the same number of GPUs");
  rules.same(
      stages, [](const Stage& s) { return degrees_of(s).sequence_parallel; }, "MLM_SP_VARIES",
      "sequence parallelism" + one_value);
  rules.none(
      stages,
      [](const Stage& s) {
        const auto& d = degrees_of(s);
        return d.ep > 1 && d.tp > 1 && !d.sequence_parallel;
      },
      "MLM_EP_NEEDS_SP", "expert parallelism together with tensor parallelism needs sequence parallelism");
  rules.none(
      stages,
      [&](const Stage& s) {
        const std::int64_t cp = degrees_of(s).cp;
        return cp > 1 && plan.model.job.sequence_length % (2 * cp) != 0;
      },
      "MLM_CP_SEQUENCE", "the sequence length must be divisible by twice the context parallelism");
  refuse_context_exchange(rules, plan.model, stages);
  rules.same(
      stages, [](const Stage& s) { return policy_of(s).zero; }, "MLM_ZERO_VARIES",
      "the optimizer is sharded in all stages or in none");
  rules.same(
      stages, [](const Stage& s) { return degrees_of(s).dp_replicate; }, "MLM_INSTANCES_VARY",
      "instances of the distributed optimizer" + one_value);
  rules.none(
      stages, [](const Stage& s) { return degrees_of(s).edp() % degrees_of(s).dp_replicate != 0; },
      "MLM_INSTANCES_EXPERTS", "replicas of an expert are divided among the instances of the distributed optimizer");
  const bool pipelined = plan.pipelines.front().stages.size() > 1;
  rules.none(
      stages, [&](const Stage& s) { return policy_of(s).zero >= 2 && (pipelined || degrees_of(s).ep > 1); },
      "MLM_ZERO_LEVEL", "ZeRO-2 and 3 exist without pipeline and expert parallelism only");
  refuse_uneven_recompute(rules, stages, "MLM", "all stages");
  refuse_megatron_stages(rules, plan, stages);
  refuse_megatron_options(rules, plan.model);
  refuse_model(rules, plan.model, "MLM");
  return std::move(rules).verdict();
}

}  // namespace tangram::plan
