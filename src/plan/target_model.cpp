// Which models Megatron-LM's GPT (pretrain_gpt.py, which FlagScale builds on) can be told by its arguments. Rules as in
// NVIDIA/Megatron-LM megatron/core/transformer/transformer_config.py and megatron/core/models/gpt/gpt_layer_specs.py
// (2026-08): one attention and one norm for all layers, of which some may be of experts and some of a sliding window.
// Hybrid models have an entry point of their own there (pretrain_mamba.py), whose pattern of layers no export writes.
#include "target_rules.hpp"

namespace tangram::plan {

namespace {

using model::BlockType;

template <class Broken>
bool any_type(const model::Model& model, Broken broken) {
  return std::ranges::any_of(model.types, broken);
}

/// What has to be alike in all layers: everything but experts and window.
model::Attention without_window(model::Attention attention) {
  attention.sliding_window = 0;
  return attention;
}

const BlockType* first_type(const model::Model& model, bool moe) {
  const auto found =
      std::ranges::find_if(model.types, [&](const BlockType& type) { return type.feed_forward.is_moe() == moe; });
  return found == model.types.end() ? nullptr : &*found;
}

bool layers_differ(const model::Model& model) {
  const BlockType& first = model.types.front();
  std::int64_t window = 0;
  return any_type(model, [&](const BlockType& type) {
    const std::int64_t own = type.attention.sliding_window;
    const bool other_window = own > 0 && window > 0 && own != window;
    window = std::max(window, own);
    return other_window || type.hidden != first.hidden || type.norm_bias != first.norm_bias ||
           type.feed_forward.gated != first.feed_forward.gated || type.feed_forward.bias != first.feed_forward.bias ||
           without_window(type.attention) != without_window(first.attention) ||
           type.feed_forward != first_type(model, type.feed_forward.is_moe())->feed_forward;
  });
}

// --disable-bias-linear takes all of them away, --add-qkv-bias gives back those of queries, keys and values.
bool biases_fit(const BlockType& type) {
  const auto& a = type.attention;
  return a.output_bias == type.feed_forward.bias && (a.qkv_bias || !a.output_bias);
}

/// No runtime has experts in 16 bits beside layers in 8 or 4.
void refuse_wide_experts(Rules& rules, const model::Job& job, const std::string& prefix) {
  if (!is_narrow(job.precision) || !job.wide_experts) return;
  rules.refuse(prefix + "_WIDE_EXPERTS", {}, "experts compute in what other layers do: wide_experts is false");
}

}  // namespace

void refuse_options(Rules& rules, const model::Model& model, const runtime::ExecutionOptions& has,
                    const std::string& prefix) {
  const model::Job& job = model.job;
  if (!job.cuda_graphs.empty() && !has.cuda_graphs) {
    rules.refuse(prefix + "_CUDA_GRAPHS", {}, "the host issues kernels one by one: cuda_graphs is none");
  }
  if (job.overlap_gather && !has.gather_overlap) {
    rules.refuse(prefix + "_GATHER_OVERLAP", {},
                 "parameters are gathered before the next iteration: overlap_parameter_gather is false");
  }
  if (job.gradient_bucket > 0 && !has.gradient_bucket) {
    rules.refuse(prefix + "_GRADIENT_BUCKET", {}, "buckets of gradients have the runtime's size: no gradient_bucket");
  }
  if (is_narrow(job.precision) && job.narrow_parameters && !has.narrow_parameters) {
    rules.refuse(prefix + "_NARROW_PARAMETERS", {}, "parameters have two bytes: narrow_parameters is false");
  }
  if (is_narrow(job.precision) && !job.transpose_cache && !has.transposes) {
    rules.refuse(prefix + "_TRANSPOSE_CACHE", {}, "transposed copies of weights stay: transpose_cache is true");
  }
  if (job.narrow_gates && !has.narrow_gates) {
    rules.refuse(prefix + "_NARROW_GATES", {}, "activations keep what they read as it is: narrow_gates is false");
  }
  if (has_wide_layers(job) && !has.wide_layers) {
    rules.refuse(prefix + "_WIDE_LAYERS", {}, "layers at the ends compute in what others do: no wide_layers");
  }
  if (job.optimizer.precision_aware && !has.precision_aware) {
    rules.refuse(prefix + "_PRECISION_AWARE", {}, "the optimizer has fp32 gradients: precision_aware is false");
  }
  if (job.optimizer.offload_fraction > 0 && !has.optimizer_offload) {
    rules.refuse(prefix + "_OPTIMIZER_OFFLOAD", {}, "the GPU steps all parameters: offload_fraction is 0");
  }
  if (!job.offload_modules.empty() && !has.offload) {
    rules.refuse(prefix + "_OFFLOAD", {}, "activations stay on the GPU: no offload_modules");
  }
  if (job.packing.any() && !has.packing) {
    rules.refuse(prefix + "_PACKING", {}, "a sample is one sequence, whose tokens attend to each other: no packing");
  }
  if (!model.has_experts()) return;
  refuse_wide_experts(rules, job, prefix);
  if (job.expert_dispatch != model::ExpertDispatch::kAllToAll && !has.expert_dispatch) {
    rules.refuse(prefix + "_EXPERT_DISPATCH", {}, "tokens go to experts all to all: expert_dispatch is all-to-all");
  }
  if (job.overlap_experts && !has.expert_overlap) {
    rules.refuse(prefix + "_EXPERT_OVERLAP", {},
                 "passes wait for exchanges of experts: overlap_expert_communication is false");
  }
}

void refuse_model(Rules& rules, const model::Model& model, const std::string& prefix) {
  const auto refuse = [&](bool broken, const std::string& code, const std::string& text) {
    if (broken) rules.refuse(prefix + "_MODEL_" + code, {}, text);
  };
  refuse(any_type(model,
                  [&](const BlockType& type) {
                    return !type.attention.causal || type.tokens != model.job.sequence_length;
                  }) ||
             model.extra_embedding_parameters > 0 || model.graph.modules.size() > 1,
         "ENCODER", "the GPT entry point has no encoder in front of its decoder");
  const std::string_view other = beyond_transformer(model);
  refuse(!other.empty(), "HYBRID",
         "each layer of the GPT entry point has attention and a feed-forward: some have " + std::string(other));
  refuse(model::adapters_of(model).has_value(), "ADAPTERS", "there are no low-rank adapters (lora)");
  refuse(model.embedding_projection > 0, "PROJECTED_EMBEDDING", "embeddings are as wide as the layers");
  refuse(any_type(model, [](const BlockType& type) { return type.parallel_attention; }), "PARALLEL_ATTENTION",
         "attention and feed-forward run one after the other");
  refuse(any_type(model, [](const BlockType& type) { return type.norms != 2; }), "NORMS",
         "a layer has two norms, one before attention and one before the feed-forward part");
  refuse(!model.final_norm, "FINAL_NORM", "there is a norm behind the last layer");
  refuse(layers_differ(model), "LAYERS_DIFFER",
         "layers may differ in having experts or a sliding window, and in nothing else");
  refuse(any_type(model, [](const BlockType& type) { return !biases_fit(type); }), "BIAS",
         "linear layers have all biases, none, or those of queries, keys and values alone");
  refuse(model.job.loss_normalization == "sample_mean", "LOSS",
         "the loss is a mean over tokens of a microbatch or of all of them");
  const std::string& optimizer = model.job.optimizer.name;
  refuse(optimizer != "adam" && optimizer != "adamw" && optimizer != "sgd", "OPTIMIZER",
         "the optimizer is Adam or SGD");
}

}  // namespace tangram::plan
