#include "block_parts.hpp"

#include <algorithm>
#include <vector>

namespace tangram::cost {
namespace {

using enum model::EagerOperator;

/// Kernels of a framework's own operators.
struct Operators {
  Elementwise forward;
  Elementwise backward;
};

// Streams of one kernel in activation sizes: values read plus values written.
constexpr double kResidualForward = 3, kResidualBackward = 3;  // x, residual -> sum; two gradients -> sum
constexpr double kRotaryForward = 2, kRotaryBackward = 2;
// Operator by operator, of rows with gaps. Forward: x cos, -x of half, halves turned, turned sin; sum, copied behind
// what is not turned. Backward: d cos, d sin, -d of half; halves turned, sum, a zeroed copy for each of the two slices,
// one with a sum.
constexpr Operators kScaledRotary{{3 + 2, 2 + 1 + 2 + 2, 3.5}, {2 + 3 + 3 + 4, 2 + 2 + 1, 2.5}};
// The same of whole rows in one tensor, without what is not turned.
constexpr Operators kEagerRotary{{3, 2 + 1 + 2 + 2, 3.5}, kScaledRotary.backward};
// RMSNorm in fp32 (LlamaRMSNorm of transformers; torch.nn.RMSNorm before PyTorch 2.9). Forward: x in fp32, squared,
// averaged, scaled; back, times weights. Backward: d times weights, in fp32, scaled, x d summed up; x times what that
// gives, twice; both summed, back. Of the weights, x d, summed up.
constexpr Operators kEagerNorm{{4 + 2, 3 + 4 + 3 + 2, 4}, {6 + 2 + 4 + 6, 2 + 3 + 4 + 4 + 3, 5}};
constexpr double kEagerNormWeights = 3 + 1;
// Forward: gate -> silu; silu, up -> product. Backward: d, up; d, silu; and of these, gate.
constexpr Operators kEagerGated{{2 + 3, 0, 0}, {3 + 3 + 3, 0, 0}};
constexpr double kGatedForward = 3, kGatedBackward = 5;  // gate, up -> product; those and d -> two gradients
constexpr double kPermute = 2;
// Around exchanges of context parallelism a value is copied into the order of ranks or of positions, as each rank has
// an early and a late part of the sequence (Transformer Engine, context_parallel.py): of heads before and behind each
// exchange, of gathered keys and values behind it, backward of their gradients as well.
constexpr double kReorder = 2;
constexpr double kScale = 2;
// The bias behind the second product of experts, which Megatron-Core weighs and adds expert by expert, by kernels of
// their own (TEGroupedMLP._apply_bias). Forward: bias x weight -> b; x + b -> y, y of all experts -> one. Backward:
// d x weight -> p, d x bias -> q; p and q summed up, d of all experts -> one.
constexpr Operators kExpertBias{{3 + 2, 1, 1}, {2 + 2, 2 + 2, 2}};
// Dispatchers of their own have weights in fp32, and so has what these kernels give: x + b and, backward, d turned to
// fp32 are of two types, and both are turned back.
constexpr Operators kWideExpertBias{{4 + 3, 2 + 5, 2}, {3 + 4 + 2, 3 + 4 + 4, 3}};

// Of clamped gates, a half of each row. Forward: each half -> y; both -> one. Backward, of the half with one limit: x
// within it, d where it is; of the one with two: x within each, d where it is, within both; both -> one.
constexpr Operators kClamp{{2, 2, 1}, {0.75 + 2, 4.75, 2.5}};

// What the host needs for one local expert, in kernels of the model's count: Transformer Engine's GroupedLinear issues
// products and casts expert by expert. As many as the runs of Qwen3-30B-A3B on 16 H100 with and without overlap need
// (Megatron-Bridge, perf skills), 8 experts a rank.
constexpr double kExpertForward = 1, kExpertBackward = 2;

}  // namespace

double added_gradient(const model::Job& job) {
  return job.fused_accumulation ? static_cast<double>(job.gradient_bytes) : 0;
}

Passes stream(const BlockContext& c, double values, double forward, double backward) {
  return {streaming_seconds(c.local.element * values * forward, c.rates),
          streaming_seconds(c.local.element * values * backward, c.rates), 1, 1};
}

namespace {

Passes operators(const BlockContext& c, double values, const Operators& kernels) {
  return {elementwise_seconds(kernels.forward, values, c.local.element, c.rates),
          elementwise_seconds(kernels.backward, values, c.local.element, c.rates), 1, 1};
}

}  // namespace

Passes norm(const BlockContext& c, double values) {
  if (!c.eager.has(kNorms) || c.block.norm_bias) return stream(c, values, kNormForward, kNormBackward);
  Passes time = operators(c, values, kEagerNorm);
  if (c.block.gradients.weights) time += stream(c, values, 0, kEagerNormWeights);
  return time;
}

Passes linear(const BlockContext& c, double rows, double in, double out, double count, InputFrom input) {
  return linear_seconds(rows, in, out, count, c.local.element, c.gradient, c.rates.matrix, c.rates, c.block.gradients,
                        input);
}

namespace {

/// Behind a norm.
Passes normed_linear(const BlockContext& c, double rows, double in, double out) {
  return linear(c, rows, in, out, 1, InputFrom::kNorm);
}

/// Gate and up, to 8 bits and back, by kernels of their own.
Passes narrowed_gates(const BlockContext& c, double values) {
  const double moved = 2 * (1 + c.local.kept_gate / c.local.element);
  return stream(c, values, moved, moved);
}

Passes activation(const BlockContext& c, double values) {
  if (!c.block.feed_forward.gated) return stream(c, values, kPlainForward, kPlainBackward);
  Passes time =
      c.eager.has(kGates) ? operators(c, values, kEagerGated) : stream(c, values, kGatedForward, kGatedBackward);
  if (c.local.kept_gate < c.local.element) time += narrowed_gates(c, values);
  return time;
}

/// `input`: width of what it reads and gives; `between`: of its products.
Passes feed_forward_part(const BlockContext& c, double rows, double input, double width, const Passes& between,
                         double count = 1, InputFrom from = InputFrom::kOther) {
  Passes time = linear(c, rows, input, (c.block.feed_forward.gated ? 2 : 1) * width, count, from);
  time += between;
  time += linear(c, rows, width, input, count);
  return time;
}

/// Without experts, or shared by all tokens.
Passes dense_part(const BlockContext& c, double columns) {
  const Passes between = activation(c, c.local.tokens * columns);
  return feed_forward_part(c, c.local.tokens, c.local.hidden, columns, between, 1, InputFrom::kNorm);
}

/// What frozen matrices that are held quantized take to become what a product reads, forward and again backward: they
/// are read, their copy is written (bitsandbytes' MatMul4Bit). Scales in 8 bits are turned into fp32 before, by two
/// kernels more. `matrices`: their kernels.
Passes dequantized(const BlockContext& c, double parameters, double matrices) {
  const std::optional<double> held = model::quantized_bytes(c.block.adapters.base);
  if (!held || parameters <= 0) return {};
  const double kernels = matrices * (c.block.adapters.base == model::BaseQuantization::kNf4Double ? 3 : 1);
  const double seconds = parameters * (*held + c.local.element) / c.rates.memory + kernels * c.rates.launch;
  const int issued = static_cast<int>(kernels);
  return {seconds, c.block.gradients.inputs ? seconds : 0, issued, c.block.gradients.inputs ? issued : 0};
}

int matrices_of_feed_forward(const BlockContext& c) { return c.block.feed_forward.gated ? 3 : 2; }

/// Of a dense feed-forward part or of shared experts.
Passes dequantized_dense(const BlockContext& c, double columns) {
  return dequantized(c, matrices_of_feed_forward(c) * c.local.hidden * columns, matrices_of_feed_forward(c));
}

}  // namespace

Passes dequantized_others(const BlockContext& c) {
  const LocalParameters all = local_quantized_parameters(c.block, c.degrees);
  const double dense = matrices_of_feed_forward(c) * c.local.hidden * (c.local.dense + c.local.shared);
  const double of_latent = c.block.attention.q_lora_rank > 0 ? 5 : 4;
  Passes time = dequantized(c, all.shared - dense, c.block.recurrence ? 2 : of_latent);
  time += dequantized(c, all.expert, matrices_of_feed_forward(c) * c.local.experts);
  return time;
}

Passes expert_activation(const BlockContext& c) {
  const double values = c.local.expert_rows * c.local.expert_width;
  Passes time = activation(c, values);
  if (c.local.clamps) time += operators(c, 2 * values, kClamp);
  return time;
}

namespace {

Passes attention_core(const BlockContext& c) {
  return c.fused ? fused_attention_seconds(c.local.kernel, c.local.element, c.rates)
                 : unfused_attention_seconds(c.local.kernel, c.local.element, c.rates);
}

/// Q, K and V out of the norm's output; for latent attention the up-projections apart, because they can be recomputed.
struct Projection {
  Passes all;
  double up_forward = 0;
};

Projection query_key_value(const BlockContext& c) {
  const model::Attention& a = c.block.attention;
  const AttentionCore& core = c.local.core;
  const double tokens = c.local.tokens;
  Projection out;
  if (a.kind == model::AttentionKind::kMultiHead) {
    const double query_heads = (a.output_gate ? 2 : 1) * core.heads;
    out.all = normed_linear(c, tokens, c.local.hidden, (query_heads + 2 * core.kv_heads) * core.qk_dim);
    return out;
  }
  Passes up;
  if (a.q_lora_rank > 0) {
    out.all += normed_linear(c, c.local.rows, c.local.hidden, a.q_lora_rank);
    out.all += norm(c, c.local.rows * a.q_lora_rank);
    up += normed_linear(c, tokens, a.q_lora_rank, core.heads * core.qk_dim);
  } else {
    up += normed_linear(c, tokens, c.local.hidden, core.heads * core.qk_dim);
  }
  out.all += normed_linear(c, c.local.rows, c.local.hidden, a.kv_lora_rank + a.qk_rope_head_dim);
  out.all += norm(c, c.local.rows * a.kv_lora_rank);
  up += normed_linear(c, tokens, a.kv_lora_rank, core.heads * (a.qk_nope_head_dim + core.v_dim));
  out.all += up;
  out.up_forward = up.forward;
  return out;
}

/// An adapter beside a matrix: its two products, both trained; then it is scaled and added, and backward two gradients
/// of the input are, by kernels of their own (LoRALinear of Megatron-Bridge, src/megatron/bridge/peft/lora_layers.py;
/// PEFT's layers do the same).
Passes fused_adapter(const BlockContext& c, const LocalMatrix& beside) {
  const auto rank = static_cast<double>(c.block.adapters.rank);
  const double rows = c.local.tokens;
  const auto product = [&](double in, double out) {
    return linear_seconds(rows, in, out, 1, c.local.element, c.gradient, c.rates.attention, c.rates, {});
  };
  Passes time = product(beside.in, rank);
  time += product(rank, beside.out);
  time += stream(c, rows * beside.out, kScale, kScale);
  time += stream(c, rows, kResidualForward * beside.out, kResidualBackward * beside.in);
  return time;
}

// An adapter in fp32, of its input and of its output. Forward: x in fp32; scaled, added to what is of 16 bits, back.
// Backward: d in fp32, scaled; dx back, added.
constexpr Operators kEagerAdapterInput{{0, 3, 1}, {3, 3, 1}};
constexpr Operators kEagerAdapterOutput{{4, 5 + 3, 2}, {4, 3, 1}};

/// PEFT's, whose weights are in fp32 beside matrices of 16 bits (autocast_adapter_dtype): products as well. Those that
/// give something as narrow as the rank, one forward and three backward, compute 32 columns of it, as kernels of cuBLAS
/// without matrix units do (sgemm_32x32 and wider); the others give or read something wide alone.
Passes eager_adapter(const BlockContext& c, const LocalMatrix& beside) {
  constexpr double kLeastColumns = 32;
  const auto rank = static_cast<double>(c.block.adapters.rank);
  const auto product = [&](double width, double columns) {
    const double values = c.local.tokens * width;
    return std::max(2 * values * columns / c.rates.single, kWideElement * values / c.rates.memory) + c.rates.launch;
  };
  const double padded = std::max(rank, kLeastColumns);
  Passes time{product(beside.in, padded) + product(beside.out, rank),
              product(beside.in, padded) + product(beside.in, rank) + 2 * product(beside.out, padded), 2, 4};
  time += operators(c, c.local.tokens * beside.in, kEagerAdapterInput);
  time += operators(c, c.local.tokens * beside.out, kEagerAdapterOutput);
  return time;
}

Passes adapter(const BlockContext& c, const LocalMatrix& beside) {
  return c.eager.has(kAdapters) ? eager_adapter(c, beside) : fused_adapter(c, beside);
}

/// Local matrices with an adapter each. Where kernels are fused, so are the matrices of queries, keys and values, and
/// of gate and up (Megatron-Core's linear_qkv and linear_fc1): they have one adapter together.
std::vector<LocalMatrix> adapted(const BlockContext& c, bool of_attention) {
  std::vector<LocalMatrix> all;
  bool joins = false;
  for (const model::AdaptableMatrix& matrix : model::adapted_matrices(c.block)) {
    if (matrix.of_attention() != of_attention) continue;
    const LocalMatrix local = local_matrix(c.block, matrix, c.degrees);
    if (joins && !matrix.splits_input()) {
      all.back().out += local.out;
    } else {
      all.push_back(local);
    }
    joins = c.fused_kernels && !c.eager.has(kAdapters) && !matrix.splits_input();
  }
  return all;
}

}  // namespace

Passes adapters(const BlockContext& c, bool of_attention) {
  Passes time;
  for (const LocalMatrix& beside : adapted(c, of_attention)) time += adapter(c, beside);
  return time;
}

std::array<double, 4> exchanged_values(const BlockContext& c) {
  const AttentionCore& core = c.local.core;
  const double repeated = c.local.kernel.kv_heads * c.degrees.cp;
  const double tokens = c.local.tokens;
  return {tokens * core.heads * core.qk_dim, tokens * repeated * core.qk_dim, tokens * repeated * core.v_dim,
          tokens * core.heads * core.v_dim};
}

double gathered_values(const BlockContext& c) {
  const AttentionCore& core = c.local.core;
  return c.degrees.cp * c.local.tokens * core.kv_heads * (core.qk_dim + core.v_dim);
}

namespace {

/// Copies around the exchange of context parallelism.
Passes reordered(const BlockContext& c) {
  Passes time;
  if (c.degrees.cp == 1 || c.context == model::ContextExchange::kRing) return time;
  if (c.context == model::ContextExchange::kAllGather) return stream(c, gathered_values(c), kReorder, 2 * kReorder);
  for (const double values : exchanged_values(c)) {
    for (int copy = 0; copy < 2; ++copy) time += stream(c, values, kReorder, kReorder);
  }
  return time;
}

Passes rotary(const BlockContext& c, double values) {
  if (is_gpt_oss(c.block.feed_forward)) return operators(c, values, kScaledRotary);
  return c.eager.has(kRotary) ? operators(c, values, kEagerRotary) : stream(c, values, kRotaryForward, kRotaryBackward);
}

MixerTime add_attention(const BlockContext& c, Passes& compute) {
  const model::Attention& attention = c.block.attention;
  const AttentionCore& core = c.local.core;
  const Projection projection = query_key_value(c);
  const Passes attend = attention_core(c);
  compute += projection.all;
  const double query_key = c.local.tokens * (core.heads + core.kv_heads) * core.qk_dim;
  compute += rotary(c, query_key);
  if (attention.qk_norm) compute += norm(c, query_key);
  const Passes copies = reordered(c);
  compute += copies;
  compute += attend;
  const double attended = c.local.tokens * core.heads * core.v_dim;
  if (attention.output_gate) compute += stream(c, attended, kGatedForward, kGatedBackward);
  compute += linear(c, c.local.tokens, core.heads * core.v_dim, c.local.hidden);
  return {attend, copies.forward, projection.up_forward};
}

}  // namespace

MixerTime add_mixer(const BlockContext& c, Passes& compute) {
  if (!c.local.recurrence) return c.block.attends() ? add_attention(c, compute) : MixerTime{};
  const LocalRecurrence& recurrence = *c.local.recurrence;
  compute += normed_linear(c, c.local.tokens, c.local.hidden, recurrence.projected);
  compute += recurrence_seconds(recurrence, c.local.element, c.rates);
  compute += linear(c, c.local.tokens, recurrence.inner, c.local.hidden);
  return {};
}

namespace {

Passes expert_products(const BlockContext& c) {
  const LocalBlock& l = c.local;
  return feed_forward_part(c, l.expert_rows / l.experts, l.expert_input, l.expert_width, expert_activation(c),
                           l.experts);
}

Passes wide_expert_products(BlockContext c) {
  c.rates = *c.expert_rates;
  return expert_products(c);
}

}  // namespace

std::optional<DeviceRates> expert_rates(const model::BlockType& block, const model::Job& job,
                                        const cluster::GpuType& device) {
  if (!job.wide_experts || !block.feed_forward.is_moe()) return std::nullopt;
  model::Job wide = job;
  wide.precision = wide_precision(job);
  return device_rates(device, wide);
}

Passes feeding(const BlockContext& c, double columns) {
  Passes time;
  if (columns > 0) time += dense_part(c, columns);
  time += adapters(c, false);
  time += dequantized_dense(c, columns);
  return time;
}

Passes router(const BlockContext& c) {
  const double routes = c.block.feed_forward.experts;
  Passes time = linear(c, c.local.rows, c.local.hidden, routes);
  time += stream(c, c.local.rows * routes, 4, 4);  // fp32 softmax, top-k, balancing loss
  return time;
}

namespace {

/// Fused experts add their biases in their products.
Passes expert_bias(const BlockContext& c) {
  if (!c.block.feed_forward.bias || c.local.fused_experts) return {};
  return operators(c, c.local.expert_rows * c.local.expert_input, c.wide_routes ? kWideExpertBias : kExpertBias);
}

}  // namespace

Passes experts(const BlockContext& c, const Passes& router) {
  const LocalBlock& l = c.local;
  const double width = l.expert_input;
  Passes time = router;
  if (c.block.feed_forward.latent_hidden > 0) {
    time += linear(c, l.rows, l.hidden, width);
    time += linear(c, l.rows, width, l.hidden);
  }
  time += stream(c, l.routed * width, kPermute, kPermute);
  if (c.degrees.ep > 1) time += stream(c, 2 * l.expert_rows * width, kPermute, kPermute);  // by expert, and back
  time += c.expert_rates ? wide_expert_products(c) : expert_products(c);
  time += expert_bias(c);
  time += stream(c, l.routed * width, kPermute, kPermute);
  return time;
}

Passes residual_stream(const BlockContext& c) {
  const double row = c.local.rows * c.local.hidden;
  Passes time;
  for (int i = 0; i < c.block.norms; ++i) time += norm(c, row);
  const int additions = c.block.parallel_attention ? 1 : c.local.parts;
  for (int i = 0; i < additions; ++i) time += stream(c, row, kResidualForward, kResidualBackward);
  return time;
}

Passes issued_one_by_one(const BlockContext& c, const model::Job& job) {
  if (job.grouped_gemm) return {};
  const double each = c.local.experts * c.rates.host_issue;
  return {kExpertForward * each, kExpertBackward * each};
}

void drop_backward(BlockTime& time) {
  for (Passes* passes : {&time.compute, &time.communication, &time.tensor, &time.bus, &time.overlapped, &time.alone}) {
    passes->backward = 0;
  }
  time.selective_compute = time.unread = time.states = 0;
}

}  // namespace tangram::cost
