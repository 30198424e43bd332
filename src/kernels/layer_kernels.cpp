#include "layer_kernels.hpp"

#include <algorithm>
#include <iterator>

#include "mamba_kernels.hpp"

namespace tangram::kernels {
namespace {

using Count = std::int64_t;

class LayerKernels {
 public:
  LayerKernels(const model::BlockType& block, const StepShape& step) : block_(block), step_(step) {}

  std::vector<KernelSpec> run() && {
    // Attention and feed-forward of parallel layers read the same input: before either adds to it. Layers of one part
    // have its norm alone.
    const bool own_norm = !block_.mixes() || block_.norms >= 2;
    if (block_.mixes()) {
      add_norm(block_.recurrence ? "mixer_norm" : "attention_norm", Part::kAttention, "normed");
    }
    if (block_.parallel_attention && own_norm) add_norm("ffn_norm", Part::kFeedForward, "ffn_normed");
    const std::string ffn_input = own_norm ? "ffn_normed" : "normed";
    add_mixer();
    if (!block_.feeds_forward()) return std::move(kernels_);
    if (!block_.parallel_attention && own_norm) add_norm("ffn_norm", Part::kFeedForward, "ffn_normed");
    if (block_.feed_forward.is_moe()) {
      add_experts(ffn_input);
    } else {
      add_perceptron("", block_.feed_forward.hidden, ffn_input, "");
    }
    return std::move(kernels_);
  }

 private:
  [[nodiscard]] Use act(std::string name, Count columns) const { return activation(std::move(name), columns, step_); }
  [[nodiscard]] Use hidden() const { return act("hidden", block_.hidden); }
  [[nodiscard]] Use weights(std::string name, Count parameters) const {
    return weight(std::move(name), parameters, step_);
  }

  void add_mixer() {
    if (block_.recurrence) return add_recurrence();
    if (!block_.attends()) return;
    if (block_.attention.kind == model::AttentionKind::kLatent) return add_latent_attention();
    add_attention();
  }

  void add_recurrence() {
    std::vector<KernelSpec> mixer = mamba_kernels(block_, step_);
    std::ranges::move(mixer, std::back_inserter(kernels_));
    const std::int64_t inner = block_.recurrence->inner();
    const Count bias = block_.recurrence->projection_bias ? block_.hidden : 0;
    add_residual_gemm("out_proj", Part::kAttention, inner, act("gated", inner), bias);
  }

  void add_norm(const std::string& name, Part part, const std::string& out) {
    const Count size = block_.norm_bias ? 2 * block_.hidden : block_.hidden;
    kernels_.push_back(
        stream_kernel(name, part, {hidden(), weights(name + ".weight", size)}, {act(out, block_.hidden)}, {}));
  }

  void add_gemm(const std::string& name, Part part, Count columns, Count inner, Use in, Use out, Count extra = 0) {
    KernelSpec kernel = gemm_kernel(name, part, step_.tokens, columns, inner, std::move(in),
                                    weights(name + ".weight", product({columns, inner}) + extra), step_);
    kernel.writes = {std::move(out)};
    kernels_.push_back(std::move(kernel));
  }

  /// A product whose result is added to the residual stream; through a norm of its own where layers have four.
  void add_residual_gemm(const std::string& name, Part part, Count inner, Use in, Count extra) {
    if (block_.norms >= 4) {
      add_gemm(name, part, block_.hidden, inner, std::move(in), act("projected", block_.hidden), extra);
      kernels_.push_back(stream_kernel(name + "_norm", part,
                                       {act("projected", block_.hidden), weights(name + "_norm.weight", block_.hidden)},
                                       {}, {hidden()}));
      return;
    }
    add_gemm(name, part, block_.hidden, inner, std::move(in), hidden(), extra);
    std::swap(kernels_.back().writes, kernels_.back().updates);
  }

  /// Tokens that a query sees.
  [[nodiscard]] Count seen() const {
    const Count window = block_.attention.sliding_window;
    return window > 0 ? std::min(window, step_.context) : step_.context;
  }

  /// Cache of one layer: all that is seen, or what this step adds.
  [[nodiscard]] Use cache(Count columns, bool added) const {
    const Count row = product({step_.requests, columns, step_.activation_bytes()});
    const Count kept = seen();
    const Count fresh = std::min(kept, step_.kind == PhaseKind::kPrefill ? step_.context : 1);
    const Count first = added ? kept - fresh : 0;
    return {"kv", product({row, kept - first}), BufferKind::kKv, Growth::kRequest, product({row, first}), true};
  }

  void add_attention() {
    const model::Attention& a = block_.attention;
    const Count query = product({a.heads, a.head_dim});
    const Count key = product({a.kv_heads, a.head_dim});
    const Count columns = query + 2 * key;
    add_gemm("qkv", Part::kAttention, columns, block_.hidden, act("normed", block_.hidden), act("qkv", columns),
             a.qkv_bias ? columns : 0);
    if (a.qk_norm) {
      kernels_.push_back(stream_kernel("qk_norm", Part::kAttention, {weights("qk_norm.weight", 2 * Count{a.head_dim})},
                                       {}, {act("qkv", columns)}));
    }
    kernels_.push_back(
        step_.rotary ? stream_kernel("rope", Part::kAttention, {}, {cache(2 * key, true)}, {act("qkv", columns)})
                     : stream_kernel("kv_write", Part::kAttention, {act("qkv", columns)}, {cache(2 * key, true)}, {}));
    KernelSpec attention;
    attention.name = "attention";
    attention.reads = {act("qkv", columns), cache(2 * key, false)};
    attention.reads.front().exact = false;  // queries alone, which lie between keys and values
    attention.writes = {act("attended", query)};
    set_attention(attention, a.heads, a.kv_heads, a.head_dim);
    kernels_.push_back(std::move(attention));
    add_residual_gemm("o_proj", Part::kAttention, query, act("attended", query), a.output_bias ? block_.hidden : 0);
  }

  /// A window of w tokens is, to the work of prefill, as many sequences of 2 w: each query of both meets w keys.
  void set_attention(KernelSpec& kernel, Count heads, Count kv_heads, Count head_dim) const {
    kernel.part = Part::kAttention;
    kernel.dtype = step_.activation;
    if (step_.kind == PhaseKind::kDecode) {
      kernel.op = Operator::kAttentionDecode;
      kernel.shape = {step_.requests, seen(), heads, kv_heads, head_dim};
      return;
    }
    const Count length = std::min(step_.context, 2 * seen());
    kernel.op = Operator::kAttentionPrefill;
    kernel.shape = {std::max<Count>(1, step_.tokens / length), length, heads, kv_heads, head_dim};
  }

  // DeepSeek-V2 (arXiv 2405.04434, section 2.1.2): the cache is a latent vector of all heads and one rotated key.
  void add_latent_attention() {
    const model::Attention& a = block_.attention;
    const Count query = product({a.heads, a.qk_nope_head_dim + a.qk_rope_head_dim});
    const Count latent = a.kv_lora_rank;
    const Count cached = latent + a.qk_rope_head_dim;
    const Use normed = act("normed", block_.hidden);
    if (a.q_lora_rank > 0) {
      add_gemm("q_down", Part::kAttention, a.q_lora_rank, block_.hidden, normed, act("q_latent", a.q_lora_rank));
      kernels_.push_back(stream_kernel("q_norm", Part::kAttention, {weights("q_norm.weight", a.q_lora_rank)}, {},
                                       {act("q_latent", a.q_lora_rank)}));
      add_gemm("q_up", Part::kAttention, query, a.q_lora_rank, act("q_latent", a.q_lora_rank), act("query", query));
    } else {
      add_gemm("q_proj", Part::kAttention, query, block_.hidden, normed, act("query", query));
    }
    add_gemm("kv_down", Part::kAttention, cached, block_.hidden, normed, act("kv_latent", cached));
    kernels_.push_back(stream_kernel("rope", Part::kAttention,
                                     {act("kv_latent", cached), weights("kv_norm.weight", latent)},
                                     {cache(cached, true)}, {act("query", query)}));
    if (step_.kind == PhaseKind::kDecode) {
      add_absorbed_attention(query, cached);
    } else {
      add_expanded_attention(query, cached);
    }
    const Count value = product({a.heads, a.v_head_dim});
    add_residual_gemm("o_proj", Part::kAttention, value, act("attended", value), a.output_bias ? block_.hidden : 0);
  }

  /// Queries are multiplied with the keys' expansion and outputs with the values', so that heads meet the latent
  /// vectors themselves. These are keys and values at once: as attention of half the width and twice the heads, which
  /// has the same bytes and, but for the rotated part of values, the same FLOPs.
  void add_absorbed_attention(Count query, Count cached) {
    const model::Attention& a = block_.attention;
    const Count latent = a.kv_lora_rank;
    const Count wide = product({a.heads, cached});
    add_gemm("absorb_keys", Part::kAttention, product({a.heads, latent}), a.qk_nope_head_dim, act("query", query),
             act("latent_query", wide));
    kernels_.back().writes.front().exact = false;  // the rotated part is copied
    KernelSpec attention;
    attention.name = "attention";
    attention.reads = {act("query", query), act("latent_query", wide), cache(cached, false)};
    attention.reads.front().exact = false;
    attention.writes = {act("latent_attended", product({a.heads, latent}))};
    set_attention(attention, 2 * Count{a.heads}, 1, (cached + 1) / 2);
    kernels_.push_back(std::move(attention));
    const Count value = product({a.heads, a.v_head_dim});
    add_gemm("expand_values", Part::kAttention, value, latent, act("latent_attended", product({a.heads, latent})),
             act("attended", value));
  }

  void add_expanded_attention(Count query, Count cached) {
    const model::Attention& a = block_.attention;
    const Count expanded = product({a.heads, a.qk_nope_head_dim + a.v_head_dim});
    const Count value = product({a.heads, a.v_head_dim});
    // The two expansions of decode are the rows of one matrix.
    KernelSpec expand =
        gemm_kernel("expand", Part::kAttention, step_.tokens, expanded, a.kv_lora_rank, act("kv_latent", cached),
                    weights("absorb_keys.weight", product({a.heads, a.kv_lora_rank, a.qk_nope_head_dim})), step_);
    expand.reads.push_back(weights("expand_values.weight", product({value, a.kv_lora_rank})));
    expand.writes = {act("expanded", expanded)};
    kernels_.push_back(std::move(expand));
    KernelSpec attention;
    attention.name = "attention";
    attention.reads = {act("query", query), act("expanded", expanded), act("kv_latent", cached)};
    attention.writes = {act("attended", value)};
    const Count width = (a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim + 1) / 2;
    set_attention(attention, a.heads, a.heads, width);
    kernels_.push_back(std::move(attention));
  }

  /// `out` empty: added to the residual stream.
  void add_perceptron(const std::string& prefix, Count inner, const std::string& in, const std::string& out) {
    const model::FeedForward& f = block_.feed_forward;
    const Count columns = f.gated ? 2 * inner : inner;
    const std::string up = prefix + (f.gated ? "gate_up" : "up");
    const Count gate = f.shared_gate && !prefix.empty() ? block_.hidden : 0;  // how much of the shared experts counts
    add_gemm(up, Part::kFeedForward, columns, block_.hidden, act(in, block_.hidden), act(up, columns),
             (f.bias ? columns : 0) + gate);
    kernels_.push_back(stream_kernel(prefix + "activation", Part::kFeedForward, {act(up, columns)},
                                     {act(prefix + "activated", inner)}, {}));
    const Count bias = f.bias ? block_.hidden : 0;
    if (out.empty()) {
      add_residual_gemm(prefix + "down", Part::kFeedForward, inner, act(prefix + "activated", inner), bias);
    } else {
      add_gemm(prefix + "down", Part::kFeedForward, block_.hidden, inner, act(prefix + "activated", inner),
               act(out, block_.hidden), bias);
    }
  }

  void add_experts(const std::string& in) {
    const model::FeedForward& f = block_.feed_forward;
    add_gemm("router", Part::kFeedForward, f.experts, block_.hidden, act(in, block_.hidden), act("scores", f.experts),
             f.router_bias ? f.experts : 0);
    kernels_.push_back(stream_kernel("choice", Part::kFeedForward, {act("scores", f.experts)},
                                     {act("chosen", 2 * Count{f.experts_per_token})}, {}));
    const Count matrices = f.gated ? 3 : 2;
    const Count biases = f.bias ? (f.gated ? 2 : 1) * f.expert_hidden + block_.hidden : 0;
    KernelSpec experts;
    experts.name = "experts";
    experts.part = Part::kFeedForward;
    experts.op = Operator::kExperts;
    experts.shape = {step_.tokens, block_.hidden, f.expert_hidden, f.experts_per_token, f.experts};
    experts.dtype = step_.precision;
    Use all =
        weights("experts.weight", product({f.experts, product({matrices, block_.hidden, f.expert_hidden}) + biases}));
    all.exact = false;  // of those that are chosen
    experts.reads = {act(in, block_.hidden), act("chosen", 2 * Count{f.experts_per_token}), std::move(all)};
    experts.writes = {act("expert_output", block_.hidden)};
    kernels_.push_back(std::move(experts));
    std::vector<Use> added{act("expert_output", block_.hidden)};
    if (f.shared_hidden > 0) {
      add_perceptron("shared_", f.shared_hidden, in, "shared_output");
      added.push_back(act("shared_output", block_.hidden));
    }
    kernels_.push_back(stream_kernel("combine", Part::kFeedForward, std::move(added), {}, {hidden()}));
  }

  const model::BlockType& block_;
  const StepShape& step_;
  std::vector<KernelSpec> kernels_;
};

Count bytes_of_all(const std::vector<Use>& uses) {
  Count sum = 0;
  for (const Use& use : uses) sum += use.bytes;
  return sum;
}

}  // namespace

std::vector<KernelSpec> layer_kernels(const model::BlockType& block, const StepShape& step) {
  return LayerKernels(block, step).run();
}

Use activation(std::string name, std::int64_t columns, const StepShape& step) {
  return {std::move(name), product({step.tokens, columns, step.activation_bytes()})};
}

Use weight(std::string name, std::int64_t parameters, const StepShape& step) {
  return {std::move(name), product({parameters, step.weight_bytes()}), BufferKind::kWeight, Growth::kStep};
}

KernelSpec gemm_kernel(std::string name, Part part, std::int64_t tokens, std::int64_t columns, std::int64_t inner,
                       Use in, Use weights, const StepShape& step) {
  KernelSpec kernel;
  kernel.name = std::move(name);
  kernel.part = part;
  kernel.op = Operator::kGemm;
  kernel.shape = {tokens, columns, inner};
  kernel.dtype = step.precision;
  kernel.reads = {std::move(in), std::move(weights)};
  return kernel;
}

KernelSpec stream_kernel(std::string name, Part part, std::vector<Use> reads, std::vector<Use> writes,
                         std::vector<Use> updates) {
  KernelSpec kernel;
  kernel.name = std::move(name);
  kernel.part = part;
  kernel.op = Operator::kStream;
  kernel.shape = {bytes_of_all(reads) + bytes_of_all(writes) + 2 * bytes_of_all(updates)};
  kernel.reads = std::move(reads);
  kernel.writes = std::move(writes);
  kernel.updates = std::move(updates);
  return kernel;
}

}  // namespace tangram::kernels
