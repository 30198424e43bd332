#include "tangram/export/megatron_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tangram::exporting {

namespace {

using model::BlockType;

/// Builds a list of arguments.
class List {
 public:
  List& flag(std::string name) {
    arguments_.push_back({std::move(name), {}});
    return *this;
  }
  List& flag_if(bool condition, std::string name) {
    if (condition) flag(std::move(name));
    return *this;
  }
  template <class... Values>
  List& value(std::string name, const Values&... values) {
    arguments_.push_back({std::move(name), {fmt::format("{}", values)...}});
    return *this;
  }
  List& values(std::string name, std::vector<std::string> values) {
    arguments_.push_back({std::move(name), std::move(values)});
    return *this;
  }
  Arguments take() { return std::move(arguments_); }

 private:
  Arguments arguments_;
};

const BlockType* type_of(const model::Model& model, bool moe) {
  const auto found =
      std::ranges::find_if(model.types, [&](const BlockType& type) { return type.feed_forward.is_moe() == moe; });
  return found == model.types.end() ? nullptr : &*found;
}

/// "([0]*1+[1]*26)": one number per layer, equal neighbours together.
template <class Property>
std::string layer_pattern(const model::Model& model, Property property) {
  std::string text;
  for (int i = 0; i < model.block_count();) {
    int end = i + 1;
    while (end < model.block_count() && property(model.block(end)) == property(model.block(i))) ++end;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", property(model.block(i)) ? 1 : 0, end - i);
    i = end;
  }
  return "(" + text + ")";
}

template <class Property>
bool all_layers(const model::Model& model, Property property) {
  for (int i = 0; i < model.block_count(); ++i) {
    if (!property(model.block(i))) return false;
  }
  return true;
}

void add_attention(const model::Model& model, List& list) {
  const model::Attention& a = model.types.front().attention;
  list.value("num-attention-heads", a.heads);
  if (a.kind == model::AttentionKind::kLatent) {
    list.flag("multi-latent-attention");
    if (a.q_lora_rank > 0) list.value("q-lora-rank", a.q_lora_rank);
    list.value("kv-lora-rank", a.kv_lora_rank)
        .value("qk-head-dim", a.qk_nope_head_dim)
        .value("qk-pos-emb-head-dim", a.qk_rope_head_dim)
        .value("v-head-dim", a.v_head_dim);
  } else {
    if (a.kv_heads != a.heads) list.flag("group-query-attention").value("num-query-groups", a.kv_heads);
    list.value("kv-channels", a.head_dim);
  }
  list.flag_if(a.qk_norm, "qk-layernorm");
}

// --window-size is what a query sees before and after itself; the pattern has 1 for layers with a window.
void add_window(const model::Model& model, List& list) {
  const auto slides = [](const BlockType& type) { return type.attention.sliding_window > 0; };
  const auto windowed = std::ranges::find_if(model.types, slides);
  if (windowed == model.types.end()) return;
  list.value("window-size", fmt::format("{},0", windowed->attention.sliding_window - 1));
  if (!all_layers(model, slides)) list.value("window-attn-skip-freq", layer_pattern(model, slides));
}

void add_experts(const model::Model& model, List& list) {
  const BlockType* experts = type_of(model, true);
  if (experts == nullptr) return;
  const auto is_moe = [](const BlockType& type) { return type.feed_forward.is_moe(); };
  const model::FeedForward& f = experts->feed_forward;
  list.value("num-experts", f.experts)
      .value("moe-router-topk", f.experts_per_token)
      .value("moe-ffn-hidden-size", f.expert_hidden);
  if (!all_layers(model, is_moe)) list.value("moe-layer-freq", layer_pattern(model, is_moe));
  if (f.shared_hidden > 0) list.value("moe-shared-expert-intermediate-size", f.shared_hidden);
  list.flag_if(f.shared_gate, "moe-shared-expert-gate");
  // The bias corrects sigmoid scores (DeepSeek-V3, arXiv 2412.19437, section 2.1.2).
  if (f.router_bias) list.value("moe-router-score-function", "sigmoid").flag("moe-router-enable-expert-bias");
  if (f.groups_per_token < f.expert_groups) {
    list.value("moe-router-num-groups", f.expert_groups).value("moe-router-group-topk", f.groups_per_token);
  }
  list.flag("moe-grouped-gemm");
}

void add_feed_forward(const model::Model& model, List& list) {
  const BlockType* dense = type_of(model, false);
  const model::FeedForward& f = dense != nullptr ? dense->feed_forward : model.types.front().feed_forward;
  list.value("ffn-hidden-size", dense != nullptr ? f.hidden : f.expert_hidden).flag_if(f.gated, "swiglu");
}

void add_biases_and_norm(const model::Model& model, List& list) {
  const BlockType& type = model.types.front();
  const bool linear_bias = type.feed_forward.bias;
  list.flag_if(!linear_bias, "disable-bias-linear");
  list.flag_if(!linear_bias && type.attention.qkv_bias, "add-qkv-bias");
  list.value("normalization", type.norm_bias ? "LayerNorm" : "RMSNorm");
}

/// Products in 8 and 4 bits are beside bf16.
void add_precision(const model::Job& job, List& list) {
  if (job.precision == DType::kFp16) {
    list.flag("fp16").flag_if(job.gradient_bytes == 4, "accumulate-allreduce-grads-in-fp32");
  }
  if (job.precision == DType::kFp8) {
    const bool one_format = job.fp8_recipe == model::Fp8Recipe::kMxfp8;
    list.value("fp8-format", one_format ? "e4m3" : "hybrid").value("fp8-recipe", to_string(job.fp8_recipe));
  }
  if (job.precision == DType::kFp4) list.value("fp4-format", "e2m1").value("fp4-recipe", "nvfp4");
  if (has_wide_layers(job)) {
    list.flag("first-last-layers-bf16")
        .value("num-layers-at-start-in-bf16", job.wide_layers.first)
        .value("num-layers-at-end-in-bf16", job.wide_layers.last);
  }
  if (job.precision == DType::kBf16 || is_narrow(job.precision)) {
    list.flag("bf16").flag_if(job.gradient_bytes == 2, "grad-reduce-in-bf16");
  }
}

/// Of each moment of Adam; where no type has so many bytes, Megatron-LM's fp32.
std::string_view moment_type(const model::Job& job) {
  switch (model::moment_bytes(job)) {
    case 4: return "bf16";
    case 2: return "fp8";
    default: return "fp32";
  }
}

void add_optimizer(const model::Job& job, List& list) {
  list.value("optimizer", job.optimizer.name == "sgd" ? "sgd" : "adam");
  if (!job.optimizer.precision_aware) return;
  list.flag("use-precision-aware-optimizer")
      .value("exp-avg-dtype", moment_type(job))
      .value("exp-avg-sq-dtype", moment_type(job));
  if (job.precision != DType::kFp16 && job.gradient_bytes == 2) list.value("main-grads-dtype", "bf16");
  if (job.optimizer.offload_fraction <= 0) return;
  list.flag("optimizer-cpu-offload")
      .value("optimizer-offload-fraction", job.optimizer.offload_fraction)
      .flag("overlap-cpu-optimizer-d2h-h2d");
}

// ZeRO-1 is the distributed optimizer, which the precision-aware one needs in any case; ZeRO-2 and 3 are Megatron-FSDP.
// With several replicas each of them shards for itself, as do groups inside a stage, and they reduce their shards with
// each other.
void add_sharding(const plan::LaunchPlan& plan, const plan::Part& part, List& list) {
  const int zero = part.strategy.policy.zero;
  const bool needed = zero == 0 && plan.model.job.optimizer.precision_aware;
  if (zero == 1 || needed) list.flag("use-distributed-optimizer");
  const std::size_t instances = plan.pipelines.size() * static_cast<std::size_t>(part.strategy.degrees.dp_replicate);
  if (zero > 0 && instances > 1) list.value("num-distributed-optimizer-instances", instances);
  if (zero >= 2) {
    list.flag("use-megatron-fsdp")
        .value("data-parallel-sharding-strategy", zero == 2 ? "optim_grads" : "optim_grads_params")
        .value("ckpt-format", "fsdp_dtensor")
        .flag("use-distributed-optimizer");
  }
}

/// Of a stage that has experts; in the others these degrees say nothing.
const cost::Degrees& expert_degrees(const plan::LaunchPlan& plan) {
  for (const plan::Stage& stage : plan.stages) {
    for (const int b : stage.blocks()) {
      if (plan.model.block(b).feed_forward.is_moe()) return stage.parts.front().strategy.degrees;
    }
  }
  return plan.stages.front().parts.front().strategy.degrees;
}

/// --recompute-modules: those that some layer has.
std::vector<std::string> recomputed_names(const model::Model& model) {
  const std::vector<std::string_view> names = names_of(model::recomputed_modules(model));
  return {names.begin(), names.end()};
}

void add_recompute(const plan::LaunchPlan& plan, List& list) {
  int layers = 0;
  for (const plan::Stage& stage : plan.stages) {
    layers = std::max(layers, stage.parts.front().strategy.policy.recompute_layers);
  }
  switch (plan.stages.front().parts.front().strategy.policy.recompute) {
    case model::RecomputeMode::kNone: break;
    case model::RecomputeMode::kSelective:
      list.value("recompute-granularity", "selective").values("recompute-modules", recomputed_names(plan.model));
      break;
    case model::RecomputeMode::kFull:
      list.value("recompute-granularity", "full")
          .value("recompute-method", "block")
          .value("recompute-num-layers", layers);
      break;
  }
}

void add_offload(const plan::LaunchPlan& plan, List& list) {
  const std::vector<std::string_view> names = names_of(model::offloaded_modules(plan.model));
  if (names.empty()) return;
  list.flag("fine-grained-activation-offloading")
      .values("offload-modules", std::vector<std::string>(names.begin(), names.end()));
}

/// What prepares the dispatch is captured with the router.
std::vector<std::string> graph_modules(const model::Model& model) {
  const model::CudaGraphs captured = model::captured_modules(model);
  std::vector<std::string> modules;
  for (const auto& [name, module] : model::kGraphModuleNames) {
    if (!captured.has(module)) continue;
    modules.emplace_back(name);
    if (module == model::GraphModule::kRouter) modules.emplace_back("moe_preprocess");
  }
  return modules;
}

void add_cuda_graphs(const model::Model& model, List& list) {
  if (model.job.cuda_graphs == model::kGraphOfStep) {
    list.value("cuda-graph-impl", "full_iteration").flag("no-check-for-nan-in-loss-and-grad");
    return;
  }
  const std::vector<std::string> modules = graph_modules(model);
  if (!modules.empty()) list.value("cuda-graph-impl", "transformer_engine").values("cuda-graph-modules", modules);
}

std::string_view context_exchange_name(model::ContextExchange exchange) {
  switch (exchange) {
    case model::ContextExchange::kRing: break;
    case model::ContextExchange::kAllGather: return "all_gather";
    case model::ContextExchange::kAllToAll: return "a2a";
  }
  return "p2p";
}

/// The flexible dispatcher has nothing to do, and refuses, where experts and tensors are whole on each rank.
void add_expert_exchange(const plan::LaunchPlan& plan, List& list) {
  if (!plan.model.has_experts()) return;
  const model::Job& job = plan.model.job;
  const cost::Degrees& degrees = expert_degrees(plan);
  if (job.expert_dispatch == model::ExpertDispatch::kAllToAll || degrees.ep * degrees.etp == 1) {
    list.value("moe-token-dispatcher-type", "alltoall");
  } else {
    list.value("moe-token-dispatcher-type", "flex")
        .value("moe-flex-dispatcher-backend", to_string(job.expert_dispatch))
        .value("moe-router-dtype", "fp32");
  }
  list.flag_if(job.overlap_experts && degrees.ep > 1, "overlap-moe-expert-parallel-comm");
}

}  // namespace

std::vector<const plan::Stage*> stages_of_replica(const plan::LaunchPlan& plan) {
  std::vector<const plan::Stage*> stages;
  for (const int id : plan.pipelines.front().stages) stages.push_back(&plan.stage(id));
  return stages;
}

std::int64_t samples_per_rank(const plan::LaunchPlan& plan) {
  return stages_of_replica(plan).front()->parts.front().samples_per_replica();
}

std::int64_t samples_per_iteration(const plan::LaunchPlan& plan) {
  std::int64_t samples = 0;
  for (const plan::Pipeline& pipeline : plan.pipelines) samples += pipeline.samples;
  return samples;
}

Arguments model_arguments(const model::Model& model) {
  List list;
  list.value("num-layers", model.block_count()).value("hidden-size", model.hidden);
  add_feed_forward(model, list);
  add_attention(model, list);
  add_window(model, list);
  add_experts(model, list);
  add_biases_and_norm(model, list);
  if (model.learned_positions > 0) {
    list.value("position-embedding-type", "learned_absolute").value("max-position-embeddings", model.learned_positions);
  } else {
    list.value("position-embedding-type", "rope").value("max-position-embeddings", model.job.sequence_length);
  }
  list.flag_if(!model.tied_embeddings, "untie-embeddings-and-output-weights");
  list.value("vocab-size", model.vocabulary);
  return list.take();
}

Arguments training_arguments(const plan::LaunchPlan& plan) {
  const model::Job& job = plan.model.job;
  List list;
  list.value("seq-length", job.sequence_length)
      .value("micro-batch-size", samples_per_rank(plan))
      .value("global-batch-size", samples_per_iteration(plan));
  add_precision(job, list);
  list.flag_if(job.loss_normalization == "global_token_mean", "calculate-per-token-loss");
  add_optimizer(job, list);
  if (!job.flash_attention) list.value("attention-backend", "unfused");
  if (!job.dropout) list.value("attention-dropout", "0.0").value("hidden-dropout", "0.0");
  if (job.fused_loss != model::FusedLoss::kNone) {
    list.flag("cross-entropy-loss-fusion").value("cross-entropy-fusion-impl", to_string(job.fused_loss));
  }
  add_expert_exchange(plan, list);
  add_cuda_graphs(plan.model, list);
  return list.take();
}

Arguments parallel_arguments(const plan::LaunchPlan& plan) {
  const auto stages = stages_of_replica(plan);
  const plan::Part& part = stages.front()->parts.front();
  const cost::Degrees& d = part.strategy.degrees;
  List list;
  list.value("tensor-model-parallel-size", d.tp)
      .value("pipeline-model-parallel-size", stages.size())
      .value("context-parallel-size", d.cp);
  if (d.cp > 1) list.value("cp-comm-type", context_exchange_name(plan.model.job.context_exchange));
  if (plan.model.has_experts()) {
    const cost::Degrees& e = expert_degrees(plan);
    list.value("expert-model-parallel-size", e.ep).value("expert-tensor-parallel-size", e.etp);
  }
  list.flag_if(d.sequence_parallel, "sequence-parallel");
  if (stages.size() > 1) list.value("pipeline-model-parallel-layout", pipeline_layout(plan));
  if (plan.is_interleaved()) {
    list.value("microbatch-group-size-per-virtual-pipeline-stage", plan.group)
        .flag("overlap-p2p-communication-warmup-flush");
  }
  add_sharding(plan, part, list);
  const std::size_t copies = static_cast<std::size_t>(d.dp * d.cp) * plan.pipelines.size();
  const bool reduces_beside = copies > 1 && part.strategy.policy.zero < 2;
  list.flag_if(reduces_beside, "overlap-grad-reduce");
  if (reduces_beside && plan.model.job.gradient_bucket > 0) {
    list.value("ddp-bucket-size", plan.model.job.gradient_bucket);
  }
  const bool sharded = part.strategy.policy.zero == 1 && copies > 1;
  list.flag_if(plan.model.job.overlap_gather && sharded, "overlap-param-gather");
  if (plan.model.job.narrow_parameters && part.strategy.policy.zero > 0 && copies > 1) {
    list.flag_if(plan.model.job.precision == DType::kFp8, "fp8-param-gather")
        .flag_if(plan.model.job.precision == DType::kFp4, "fp4-param-gather");
  }
  list.flag_if(plan.model.job.overlap_tp && d.tp > 1 && d.sequence_parallel, "tp-comm-overlap");
  add_recompute(plan, list);
  add_offload(plan, list);
  return list.take();
}

std::string pipeline_layout(const plan::LaunchPlan& plan) {
  std::string layout;
  for (std::size_t c = 0; c < plan.chunks(); ++c) {
    for (const plan::Stage* stage : stages_of_replica(plan)) {
      if (!layout.empty()) layout += '|';
      if (stage->embedding && c == 0) layout += 'E';
      layout += fmt::format("t*{}", stage->chunks[c].count());
      if (stage->head && c + 1 == plan.chunks()) layout += ",L";
    }
  }
  return layout;
}

}  // namespace tangram::exporting
