#include "tangram/cost/block_time.hpp"

#include <algorithm>
#include <array>

#include "tangram/cost/communication.hpp"
#include "tangram/cost/memory.hpp"

namespace tangram::cost {
namespace {

/// Kernels of a framework's own operators.
struct Operators {
  Elementwise forward;
  Elementwise backward;
};

// Streams of one kernel in activation sizes: values read plus values written.
constexpr double kNormForward = 2, kNormBackward = 3;          // x -> y; x, dy -> dx
constexpr double kResidualForward = 3, kResidualBackward = 3;  // x, residual -> sum; two gradients -> sum
constexpr double kRotaryForward = 2, kRotaryBackward = 2;
// Operator by operator, of rows with gaps. Forward: x cos, -x of half, halves turned, turned sin; sum, copied behind
// what is not turned. Backward: d cos, d sin, -d of half; halves turned, sum, a zeroed copy for each of the two slices,
// one with a sum.
constexpr Operators kScaledRotary{{3 + 2, 2 + 1 + 2 + 2, 3.5}, {2 + 3 + 3 + 4, 2 + 2 + 1, 2.5}};
constexpr double kGatedForward = 3, kGatedBackward = 5;  // gate, up -> product; those and d -> two gradients
constexpr double kPlainForward = 2, kPlainBackward = 3;
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

/// The groups of a stage, and what one collective in them takes.
struct Exchanges {
  const cluster::DeviceShape& shape;
  std::span<const CollectiveCurve> curves;
  ProcessGroups groups;

  [[nodiscard]] double seconds(Collective kind, double bytes, const Group& group) const {
    return collective_seconds(kind, bytes, group, shape, curves);
  }
};

/// Everything the parts of one block need to know.
struct Context {
  const model::BlockType& block;
  const Degrees& degrees;
  const Exchanges& exchanges;
  LocalBlock local;
  DeviceRates rates;
  std::optional<DeviceRates> expert_rates;  ///< of experts that compute in 16 bits beside narrower layers
  double gradient;                          ///< bytes of a main gradient
  bool fused;
  bool fused_kernels;
  bool fused_experts;
  bool wide_routes;  ///< weights of routes are in fp32
  model::ContextExchange context;
};

Passes stream(const Context& c, double values, double forward, double backward) {
  return {streaming_seconds(c.local.element * values * forward, c.rates),
          streaming_seconds(c.local.element * values * backward, c.rates), 1, 1};
}

Passes operators(const Context& c, double values, const Operators& kernels) {
  return {elementwise_seconds(kernels.forward, values, c.local.element, c.rates),
          elementwise_seconds(kernels.backward, values, c.local.element, c.rates), 1, 1};
}

Passes linear(const Context& c, double rows, double in, double out, double count = 1,
              InputFrom input = InputFrom::kOther) {
  return linear_seconds(rows, in, out, count, c.local.element, c.gradient, c.rates.matrix, c.rates, c.block.gradients,
                        input);
}

/// Behind a norm.
Passes normed_linear(const Context& c, double rows, double in, double out) {
  return linear(c, rows, in, out, 1, InputFrom::kNorm);
}

Passes activation(const Context& c, double values) {
  return c.block.feed_forward.gated ? stream(c, values, kGatedForward, kGatedBackward)
                                    : stream(c, values, kPlainForward, kPlainBackward);
}

/// `input`: width of what it reads and gives; `between`: of its products.
Passes feed_forward_part(const Context& c, double rows, double input, double width, const Passes& between,
                         double count = 1, InputFrom from = InputFrom::kOther) {
  Passes time = linear(c, rows, input, (c.block.feed_forward.gated ? 2 : 1) * width, count, from);
  time += between;
  time += linear(c, rows, width, input, count);
  return time;
}

/// Without experts, or shared by all tokens.
Passes dense_part(const Context& c, double columns) {
  const Passes between = activation(c, c.local.tokens * columns);
  return feed_forward_part(c, c.local.tokens, c.local.hidden, columns, between, 1, InputFrom::kNorm);
}

/// What frozen matrices that are held quantized take to become what a product reads, forward and again backward: they
/// are read, their copy is written (bitsandbytes' MatMul4Bit). Scales in 8 bits are turned into fp32 before, by two
/// kernels more. `matrices`: their kernels.
Passes dequantized(const Context& c, double parameters, double matrices) {
  const std::optional<double> held = model::quantized_bytes(c.block.adapters.base);
  if (!held || parameters <= 0) return {};
  const double kernels = matrices * (c.block.adapters.base == model::BaseQuantization::kNf4Double ? 3 : 1);
  const double seconds = parameters * (*held + c.local.element) / c.rates.memory + kernels * c.rates.launch;
  const int issued = static_cast<int>(kernels);
  return {seconds, c.block.gradients.inputs ? seconds : 0, issued, c.block.gradients.inputs ? issued : 0};
}

int matrices_of_feed_forward(const Context& c) { return c.block.feed_forward.gated ? 3 : 2; }

/// Of a dense feed-forward part or of shared experts.
Passes dequantized_dense(const Context& c, double columns) {
  return dequantized(c, matrices_of_feed_forward(c) * c.local.hidden * columns, matrices_of_feed_forward(c));
}

/// Of attention, a recurrence and routed experts.
Passes dequantized_others(const Context& c) {
  const LocalParameters all = local_quantized_parameters(c.block, c.degrees);
  const double dense = matrices_of_feed_forward(c) * c.local.hidden * (c.local.dense + c.local.shared);
  const double of_latent = c.block.attention.q_lora_rank > 0 ? 5 : 4;
  Passes time = dequantized(c, all.shared - dense, c.block.recurrence ? 2 : of_latent);
  time += dequantized(c, all.expert, matrices_of_feed_forward(c) * c.local.experts);
  return time;
}

/// What experts have between their products.
Passes expert_activation(const Context& c) {
  const double values = c.local.expert_rows * c.local.expert_width;
  Passes time = activation(c, values);
  if (c.local.clamps) time += operators(c, 2 * values, kClamp);
  return time;
}

Passes attention_core(const Context& c) {
  return c.fused ? fused_attention_seconds(c.local.kernel, c.local.element, c.rates)
                 : unfused_attention_seconds(c.local.kernel, c.local.element, c.rates);
}

/// Q, K and V out of the norm's output; for latent attention the up-projections apart, because they can be recomputed.
struct Projection {
  Passes all;
  double up_forward = 0;
};

Projection query_key_value(const Context& c) {
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
    out.all += stream(c, c.local.rows * a.q_lora_rank, kNormForward, kNormBackward);
    up += normed_linear(c, tokens, a.q_lora_rank, core.heads * core.qk_dim);
  } else {
    up += normed_linear(c, tokens, c.local.hidden, core.heads * core.qk_dim);
  }
  out.all += normed_linear(c, c.local.rows, c.local.hidden, a.kv_lora_rank + a.qk_rope_head_dim);
  out.all += stream(c, c.local.rows * a.kv_lora_rank, kNormForward, kNormBackward);
  up += normed_linear(c, tokens, a.kv_lora_rank, core.heads * (a.qk_nope_head_dim + core.v_dim));
  out.all += up;
  out.up_forward = up.forward;
  return out;
}

/// An adapter beside a matrix: its two products, both trained; then it is scaled and added, and backward two gradients
/// of the input are, by kernels of their own (LoRALinear of Megatron-Bridge, src/megatron/bridge/peft/lora_layers.py;
/// PEFT's layers do the same).
Passes adapter(const Context& c, const LocalMatrix& beside) {
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

/// Local matrices with an adapter each. Where kernels are fused, so are the matrices of queries, keys and values, and
/// of gate and up (Megatron-Core's linear_qkv and linear_fc1): they have one adapter together.
std::vector<LocalMatrix> adapted(const Context& c, bool of_attention) {
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
    joins = c.fused_kernels && !matrix.splits_input();
  }
  return all;
}

Passes adapters(const Context& c, bool of_attention) {
  Passes time;
  for (const LocalMatrix& beside : adapted(c, of_attention)) time += adapter(c, beside);
  return time;
}

/// Of what mixes the tokens of the block, what counts beside its compute.
struct MixerTime {
  Passes core;           ///< attention itself: exchanges of keys and values hide under it
  double exchange = 0;   ///< forward, around it: copies, and what is exposed of exchanges
  double latent_up = 0;  ///< forward, of the projections of compressed vectors
};

/// What an all-to-all exchanges for heads and back, in values of all four: queries, keys, values and what is attended
/// to.
std::array<double, 4> exchanged_values(const Context& c) {
  const AttentionCore& core = c.local.core;
  const double repeated = c.local.kernel.kv_heads * c.degrees.cp;
  const double tokens = c.local.tokens;
  return {tokens * core.heads * core.qk_dim, tokens * repeated * core.qk_dim, tokens * repeated * core.v_dim,
          tokens * core.heads * core.v_dim};
}

/// Keys and values of all positions.
double gathered_values(const Context& c) {
  const AttentionCore& core = c.local.core;
  return c.degrees.cp * c.local.tokens * core.kv_heads * (core.qk_dim + core.v_dim);
}

/// Copies around the exchange of context parallelism.
Passes reordered(const Context& c) {
  Passes time;
  if (c.degrees.cp == 1 || c.context == model::ContextExchange::kRing) return time;
  if (c.context == model::ContextExchange::kAllGather) return stream(c, gathered_values(c), kReorder, 2 * kReorder);
  for (const double values : exchanged_values(c)) {
    for (int copy = 0; copy < 2; ++copy) time += stream(c, values, kReorder, kReorder);
  }
  return time;
}

MixerTime add_attention(const Context& c, Passes& compute) {
  const model::Attention& attention = c.block.attention;
  const AttentionCore& core = c.local.core;
  const Projection projection = query_key_value(c);
  const Passes attend = attention_core(c);
  compute += projection.all;
  const double query_key = c.local.tokens * (core.heads + core.kv_heads) * core.qk_dim;
  compute += is_gpt_oss(c.block.feed_forward) ? operators(c, query_key, kScaledRotary)
                                              : stream(c, query_key, kRotaryForward, kRotaryBackward);
  if (attention.qk_norm) compute += stream(c, query_key, kNormForward, kNormBackward);
  const Passes copies = reordered(c);
  compute += copies;
  compute += attend;
  const double attended = c.local.tokens * core.heads * core.v_dim;
  if (attention.output_gate) compute += stream(c, attended, kGatedForward, kGatedBackward);
  compute += linear(c, c.local.tokens, core.heads * core.v_dim, c.local.hidden);
  return {attend, copies.forward, projection.up_forward};
}

MixerTime add_mixer(const Context& c, Passes& compute) {
  if (!c.local.recurrence) return c.block.attends() ? add_attention(c, compute) : MixerTime{};
  const LocalRecurrence& recurrence = *c.local.recurrence;
  compute += normed_linear(c, c.local.tokens, c.local.hidden, recurrence.projected);
  compute += recurrence_seconds(recurrence, c.local.element, c.rates);
  compute += linear(c, c.local.tokens, recurrence.inner, c.local.hidden);
  return {};
}

Passes expert_products(const Context& c) {
  const LocalBlock& l = c.local;
  return feed_forward_part(c, l.expert_rows / l.experts, l.expert_input, l.expert_width, expert_activation(c),
                           l.experts);
}

Passes wide_expert_products(Context c) {
  c.rates = *c.expert_rates;
  return expert_products(c);
}

std::optional<DeviceRates> expert_rates(const model::BlockType& block, const model::Job& job,
                                        const cluster::GpuType& device) {
  if (!job.wide_experts || !block.feed_forward.is_moe()) return std::nullopt;
  model::Job wide = job;
  wide.precision = wide_precision(job);
  return device_rates(device, wide);
}

/// All of what every token passes behind attention: a dense feed-forward part or shared experts.
Passes feeding(const Context& c, double columns) {
  Passes time;
  if (columns > 0) time += dense_part(c, columns);
  time += adapters(c, false);
  time += dequantized_dense(c, columns);
  return time;
}

Passes router(const Context& c) {
  const double routes = c.block.feed_forward.experts;
  Passes time = linear(c, c.local.rows, c.local.hidden, routes);
  time += stream(c, c.local.rows * routes, 4, 4);  // fp32 softmax, top-k, balancing loss
  return time;
}

/// Fused experts add their biases in their products.
Passes expert_bias(const Context& c) {
  if (!c.block.feed_forward.bias || c.fused_experts) return {};
  return operators(c, c.local.expert_rows * c.local.expert_input, c.wide_routes ? kWideExpertBias : kExpertBias);
}

/// The router's, permutation, the experts' grouped products (Gale et al., MegaBlocks, arXiv 2211.15841),
/// un-permutation.
Passes experts(const Context& c, const Passes& router) {
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

/// Exchange around one tensor-parallel region, one direction.
double tensor_exchange(const Context& c) {
  const double bytes = c.local.element * c.local.tokens * c.local.hidden;
  const Exchanges& e = c.exchanges;
  if (!c.degrees.sequence_parallel) return e.seconds(Collective::kAllReduce, bytes, e.groups.tensor);
  return e.seconds(Collective::kAllGather, bytes, e.groups.tensor) +
         e.seconds(Collective::kReduceScatter, bytes, e.groups.tensor);
}

/// What the experts exchange, one direction.
struct ExpertExchange {
  double routes = 0;  // dispatch and combine
  double tensor = 0;  // among the expert-tp ranks
};

/// Of one way: to the experts, or back.
double dispatch(const Context& c, const model::Job& job) {
  const LocalBlock& l = c.local;
  const Exchanges& e = c.exchanges;
  if (job.expert_dispatch == model::ExpertDispatch::kAllToAll) {
    // The busiest rank receives the imbalanced share; expert_rows holds it for all expert-tp ranks together.
    return e.seconds(Collective::kAllToAll, l.element * l.expert_rows * l.expert_input / c.degrees.etp,
                     e.groups.expert);
  }
  const model::FeedForward& f = c.block.feed_forward;
  const TokenChoice choice{static_cast<double>(f.experts_per_token), f.expert_groups, f.groups_per_token};
  return job.routing_imbalance *
         dispatch_seconds(l.element * l.rows * l.expert_input, choice, e.groups.expert, e.shape);
}

ExpertExchange expert_exchange(const Context& c, const model::Job& job) {
  const LocalBlock& l = c.local;
  const Exchanges& e = c.exchanges;
  const double received = l.element * l.expert_rows * l.expert_input;
  return {2 * dispatch(c, job), e.seconds(Collective::kAllGather, received, e.groups.expert_tensor) +
                                    e.seconds(Collective::kReduceScatter, received, e.groups.expert_tensor)};
}

/// Positions exchanged for heads, and what comes of these exchanged back.
double heads_exchange(const Context& c) {
  double seconds = 0;
  for (const double values : exchanged_values(c)) {
    seconds += c.exchanges.seconds(Collective::kAllToAll, c.local.element * values, c.exchanges.groups.context);
  }
  return seconds;
}

/// Full time of what context parallelism exchanges, whatever hides it.
Passes context_exchange(const Context& c) {
  if (c.degrees.cp == 1 || !c.block.mixes()) return {};
  const Exchanges& e = c.exchanges;
  if (c.local.recurrence) {
    const double bytes = recurrence_exchange(*c.local.recurrence, c.local.element);
    const double seconds = e.seconds(Collective::kAllToAll, bytes, e.groups.context);
    return {seconds, seconds};
  }
  if (c.context == model::ContextExchange::kAllToAll) {
    const double seconds = heads_exchange(c);
    return {seconds, seconds};
  }
  const double all = c.local.element * gathered_values(c);
  const double gather = e.seconds(Collective::kAllGather, all, e.groups.context);
  if (c.context == model::ContextExchange::kAllGather) {
    return {gather, gather + e.seconds(Collective::kReduceScatter, all, e.groups.context)};
  }
  return {gather, e.seconds(Collective::kAllGather, 2 * all, e.groups.context)};
}

/// What of it runs beside attention: the ring's steps but the first, and while the device waits for the host, the ring
/// goes on. Gathers, and exchanges of heads, are waited for.
Passes hidden_exchange(const Context& c, const Passes& exchange, const Passes& free) {
  const bool ring = c.block.attends() && c.context == model::ContextExchange::kRing;
  if (!ring || !c.exchanges.shape.methods.overlapped) return {};
  const double hiding = (c.degrees.cp - 1.0) / c.degrees.cp;
  return {std::min(exchange.forward, hiding * free.forward), std::min(exchange.backward, hiding * free.backward)};
}

/// Norms and residual additions.
Passes residual_stream(const Context& c) {
  const double row = c.local.rows * c.local.hidden;
  Passes time;
  for (int i = 0; i < c.block.norms; ++i) time += stream(c, row, kNormForward, kNormBackward);
  const int additions = c.block.parallel_attention ? 1 : c.local.parts;
  for (int i = 0; i < additions; ++i) time += stream(c, row, kResidualForward, kResidualBackward);
  return time;
}

/// The host reads how many tokens each expert got and issues its products; the device has nothing to do meanwhile.
Passes issued_one_by_one(const Context& c, const model::Job& job) {
  if (job.grouped_gemm) return {};
  const double each = c.local.experts * c.rates.host_issue;
  return {kExpertForward * each, kExpertBackward * each};
}

/// What the host lets a layer's experts take, forward.
double expert_seconds(const Context& c, const Passes& routed, const model::Job& job) {
  return host_bound(routed, c.rates, job.blocking_launches).forward + issued_one_by_one(c, job).forward;
}

/// Forward, of a dense feed-forward part or of shared experts.
double dense_seconds(const Context& c, double columns, const model::Job& job) {
  if (columns <= 0) return 0;
  Passes part = dense_part(c, columns);
  part += adapters(c, false);
  part += dequantized_dense(c, columns);
  return host_bound(part, c.rates, job.blocking_launches).forward + tensor_exchange(c);
}

/// Forward, of a dense feed-forward what no backward pass reads: its last product, and its exchange where that is
/// waited for. What experts give is read, for the gradients of their weights in the sum.
double unread_seconds(const Context& c, const model::Job& job) {
  const cluster::ExecutionMethods& methods = c.exchanges.shape.methods;
  if (!methods.early_stop || c.block.feed_forward.is_moe() || c.local.dense <= 0) return 0;
  const double product = linear(c, c.local.tokens, c.local.dense, c.local.hidden).forward;
  if (job.overlap_tp) return product;
  const double bytes = c.local.element * c.local.tokens * c.local.hidden;
  const Collective last = c.degrees.sequence_parallel ? Collective::kReduceScatter : Collective::kAllReduce;
  return product + c.exchanges.seconds(last, bytes, c.exchanges.groups.tensor);
}

/// Forward, of attention's output projection where it is run again beside the core.
double output_again_seconds(const Context& c) {
  if (!c.exchanges.shape.methods.output_again || !c.block.attends()) return 0;
  return linear(c, c.local.tokens, c.local.core.heads * c.local.core.v_dim, c.local.hidden).forward;
}

/// What selective recompute runs again.
double selective_seconds(const Context& c, const MixerTime& mixer, const Passes& routed, const ExpertExchange& exchange,
                         const model::Job& job) {
  using model::RecomputeModule;
  const model::RecomputeModules again = model::recomputed_modules(c.block, job);
  double seconds = 0;
  if (again.has(RecomputeModule::kNorms)) {
    const double norms = c.block.parallel_attention && c.block.norms == 1 ? 1 : c.local.parts;
    seconds += norms * stream(c, c.local.rows * c.local.hidden, kNormForward, 0).forward;
  }
  if (again.has(RecomputeModule::kCoreAttention)) {
    seconds += mixer.core.forward + mixer.exchange + output_again_seconds(c);
  }
  if (again.has(RecomputeModule::kLatentUp)) seconds += mixer.latent_up;
  if (again.has(RecomputeModule::kFeedForward)) {
    seconds += std::max(0.0, dense_seconds(c, c.local.dense, job) - unread_seconds(c, job));
  }
  if (again.has(RecomputeModule::kExperts)) {
    return seconds + dense_seconds(c, c.local.shared, job) + expert_seconds(c, routed, job) + exchange.routes +
           exchange.tensor;
  }
  if (again.has(RecomputeModule::kExpertActivation)) {
    seconds += expert_activation(c).forward;
  }
  if (again.has(RecomputeModule::kSharedExperts)) seconds += dense_seconds(c, c.local.shared, job);
  return seconds;
}

/// Exchanges of tensor parallelism beside the products they feed, cut into one chunk a rank: the first has no product
/// to run beside yet. What hides them hides nothing else.
void hide_tensor_exchange(BlockTime& time, int tp) {
  const Passes free{time.compute.forward - time.overlapped.forward, time.compute.backward - time.overlapped.backward};
  const double beside = (tp - 1.0) / tp;
  const Passes hidden{std::min(beside * time.tensor.forward, free.forward),
                      std::min(beside * time.tensor.backward, free.backward)};
  time.overlapped.forward += hidden.forward;
  time.overlapped.backward += hidden.backward;
  time.tensor = {time.tensor.forward - hidden.forward, time.tensor.backward - hidden.backward};
}

/// Inputs of modules go to the host and come back beside the passes, on the host's bus: copy engines take nothing from
/// the products.
void expose_offload(BlockTime& time, double bytes, const cluster::DeviceShape& shape) {
  const double seconds = bytes / shape.device.pcie.bandwidth.value();
  time.bus = {seconds_beside(seconds, time.compute.forward + time.communication.forward, 0),
              seconds_beside(seconds, time.compute.backward + time.communication.backward, 0)};
  time.communication += time.bus;
}

/// What dispatch and combine add, beside the passes of another microbatch where the job has it so. What hides them
/// hides nothing else.
Passes expose_routes(BlockTime& time, double routes, const model::Job& job) {
  if (!job.overlap_experts) return {routes, routes};
  const Passes free{time.compute.forward - time.overlapped.forward, time.compute.backward - time.overlapped.backward};
  time.overlapped.forward += std::min(routes, free.forward);
  time.overlapped.backward += std::min(routes, free.backward);
  const Passes beside{seconds_beside(routes, free.forward), seconds_beside(routes, free.backward)};
  time.alone = {routes - beside.forward, routes - beside.backward};
  return beside;
}

/// Learned queries attend to the tokens of their item, as one head of the inner width.
Passes resampler_attention(const model::Connector& connector, double element, double samples, int tp,
                           const DeviceRates& rates) {
  AttentionCore core;
  core.samples = samples;
  core.heads = core.kv_heads = 1;
  core.queries = static_cast<double>(connector.queries);
  core.keys = core.visible = static_cast<double>(connector.tokens_in);
  core.qk_dim = core.v_dim = static_cast<double>(connector.widths[1]) / tp;
  return fused_attention_seconds(core, element, rates);
}

/// Bytes a logit that kernels of the loss read and write.
struct LossTraffic {
  double forward = 0;
  double backward = 0;
};

/// By operators of Megatron-LM's vocabulary-parallel cross-entropy: cast to fp32 (e + 4), maximum (4), exponential and
/// sum (8), division (8); backward scaling in place (8), cast back (4 + e). Compiled between its exchanges
/// (core/fusions/fused_cross_entropy.py), the maximum is found while casting, and scaling casts. In one kernel, or
/// where a compiler has all of it, the logits are read twice and their gradient is written in their place, then scaled.
LossTraffic loss_traffic(const model::Job& job, double element) {
  const LossTraffic by_operators{element + 24, element + 12};
  if (!job.fused_kernels) return by_operators;
  if (job.fused_loss == model::FusedLoss::kTransformerEngine || !job.in_place_loss) return {3 * element, 2 * element};
  return job.fused_loss == model::FusedLoss::kNative ? LossTraffic{element + 20, element + 4} : by_operators;
}

void drop_backward(BlockTime& time) {
  for (Passes* passes : {&time.compute, &time.communication, &time.tensor, &time.bus, &time.overlapped, &time.alone}) {
    passes->backward = 0;
  }
  time.selective_compute = time.unread = 0;
}

/// The parts of a block that graphs are captured of; each is issued by the host where no graph holds it.
struct Modules {
  Passes mixing;   ///< attention or a recurrence, with its norm and what is added behind it
  Passes feeding;  ///< a dense feed-forward part or shared experts, likewise
  Passes router;
};

/// Norms and additions of a block with two parts are taken to be half of each.
Modules with_streams(Modules parts, const Passes& streams, const model::BlockType& block) {
  const auto share = [&](int kernels) {
    if (!block.mixes()) return 0;
    return block.feeds_forward() ? (kernels + 1) / 2 : kernels;
  };
  parts.mixing.forward_kernels += share(streams.forward_kernels);
  parts.mixing.backward_kernels += share(streams.backward_kernels);
  parts.feeding.forward_kernels += streams.forward_kernels - share(streams.forward_kernels);
  parts.feeding.backward_kernels += streams.backward_kernels - share(streams.backward_kernels);
  return parts;
}

/// The same time with the kernels that graphs do not hold.
Passes issued_kernels(Passes all, const Modules& parts, const model::BlockType& block,
                      const model::CudaGraphs& graphs) {
  const auto capture = [&](model::GraphModule module, const Passes& part) {
    if (!graphs.has(module)) return;
    all.forward_kernels -= part.forward_kernels;
    all.backward_kernels -= part.backward_kernels;
  };
  capture(mixing_module(block), parts.mixing);
  capture(feeding_module(block), parts.feeding);
  capture(model::GraphModule::kRouter, parts.router);
  return all;
}

/// A block's compute as long as the host lets it take.
Passes host_bound_block(const Passes& device, const Modules& parts, const Context& c, const model::Job& job) {
  const Passes issued = issued_kernels(device, parts, c.block, job.cuda_graphs);
  Passes all = host_bound(issued, c.rates, job.blocking_launches);
  all += issued_one_by_one(c, job);
  return all;
}

double vocabulary_width(const model::Model& model) {
  return static_cast<double>(model.embedding_projection > 0 ? model.embedding_projection : model.hidden);
}

/// Tokens and rows outside the blocks.
struct EdgeRows {
  double element = 2;
  double tokens = 0;
  double rows = 0;
};

EdgeRows edge_rows(const model::Model& model, const Degrees& degrees, double samples_per_replica) {
  EdgeRows edge;
  edge.element = activation_element(model.job.precision);
  edge.tokens = samples_per_replica * static_cast<double>(model.job.sequence_length) / degrees.cp;
  edge.rows = degrees.sequence_parallel ? edge.tokens / degrees.tp : edge.tokens;
  return edge;
}

}  // namespace

BlockTime block_time(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                     double samples_per_replica, const cluster::DeviceShape& shape,
                     std::span<const CollectiveCurve> curves) {
  if (const auto own = model::own_job(block, job)) {
    return block_time(block, *own, degrees, samples_per_replica, shape, curves);
  }
  const Exchanges exchanges{shape, curves, process_groups(degrees, shape)};
  const Context c{block,
                  degrees,
                  exchanges,
                  local_block(block, job, degrees, samples_per_replica),
                  device_rates(shape.device, job),
                  expert_rates(block, job, shape.device),
                  static_cast<double>(job.gradient_bytes),
                  job.flash_attention,
                  job.fused_kernels,
                  fuses_experts(job),
                  job.expert_dispatch != model::ExpertDispatch::kAllToAll,
                  job.context_exchange};
  BlockTime time;
  Modules parts;
  MixerTime mixer = add_mixer(c, parts.mixing);
  parts.mixing += adapters(c, true);
  parts.mixing += dequantized_others(c);
  const double columns = c.local.dense + c.local.shared;
  parts.feeding = feeding(c, columns);
  const bool moe = block.feed_forward.is_moe();
  if (moe) parts.router = router(c);
  const Passes routed = moe ? experts(c, parts.router) : Passes{};
  const Passes streams = residual_stream(c);
  Passes device = streams;
  for (const Passes& part : {parts.mixing, parts.feeding, routed}) device += part;
  time.compute = host_bound_block(device, with_streams(parts, streams, block), c, job);

  const int regions = (block.mixes() ? 1 : 0) + (columns > 0 && !block.parallel_attention ? 1 : 0);
  const ExpertExchange experts_exchange = moe ? expert_exchange(c, job) : ExpertExchange{};
  const Passes travel = context_exchange(c);
  const Passes hidden_ring = hidden_exchange(c, travel,
                                             {mixer.core.forward + time.compute.forward - device.forward,
                                              mixer.core.backward + time.compute.backward - device.backward});
  mixer.exchange += travel.forward - hidden_ring.forward;
  time.selective_compute = selective_seconds(c, mixer, routed, experts_exchange, job);
  time.unread = unread_seconds(c, job);
  const double tensor = regions * tensor_exchange(c) + experts_exchange.tensor;
  time.overlapped = hidden_ring;
  time.tensor = {tensor, tensor};
  if (job.overlap_tp && degrees.sequence_parallel && shape.methods.overlapped) hide_tensor_exchange(time, degrees.tp);
  const Passes routes = expose_routes(time, experts_exchange.routes, job);
  time.communication = {time.tensor.forward + routes.forward + travel.forward - hidden_ring.forward,
                        time.tensor.backward + routes.backward + travel.backward - hidden_ring.backward};
  if (!job.offload_modules.empty()) {
    const DType format = matrix_format(shape.device, job.precision);
    const ActivationBytes kept = block_activation(block, job, degrees, samples_per_replica, format, shape.methods);
    if (kept.offloaded > 0) expose_offload(time, kept.offloaded, shape);
  }
  if (!block.gradients.any()) drop_backward(time);
  return time;
}

BlockTime connector_time(const model::BlockType& block, const model::Job& job, const Degrees& degrees,
                         double samples_per_replica, const cluster::DeviceShape& shape,
                         std::span<const CollectiveCurve> curves) {
  BlockTime time;
  if (!block.connector) return time;
  const model::Connector& connector = *block.connector;
  const DeviceRates rates = device_rates(shape.device, job);
  const double element = activation_element(job.precision);
  const double gradient = static_cast<double>(job.gradient_bytes);
  const double samples = samples_per_replica / degrees.cp;
  const auto values = [&](std::int64_t rows, std::int64_t width) {
    return samples * static_cast<double>(rows) * static_cast<double>(width);
  };
  const auto streamed = [&](double count, double forward, double backward) {
    return Passes{streaming_seconds(element * count * forward, rates),
                  streaming_seconds(element * count * backward, rates), 1, 1};
  };
  const std::vector<model::ConnectorProduct> all = products(connector);
  for (const model::ConnectorProduct& product : all) {
    const double columns = static_cast<double>(product.out) / degrees.tp;
    time.compute += linear_seconds(samples * static_cast<double>(product.rows), static_cast<double>(product.in),
                                   columns, 1, element, gradient, rates.matrix, rates, connector.gradients);
    time.compute += streamed(values(product.rows, product.out) / degrees.tp, kPlainForward, kPlainBackward);
  }
  if (connector.kind == model::ConnectorKind::kResampler) {
    time.compute += resampler_attention(connector, element, samples, degrees.tp, rates);
  }
  const double input = values(all.front().rows, all.front().in);
  if (connector.norm > 0) time.compute += streamed(input, kNormForward, kNormBackward);
  time.compute = host_bound(time.compute, rates, job.blocking_launches);
  const Group tp = process_groups(degrees, shape).tensor;
  const double output = values(all.back().rows, all.back().out);
  time.tensor = {
      collective_seconds(Collective::kAllReduce, element * output, tp, shape, curves),
      connector.gradients.inputs ? collective_seconds(Collective::kAllReduce, element * input, tp, shape, curves) : 0};
  time.communication = time.tensor;
  if (!connector.gradients.any()) drop_backward(time);
  return time;
}

BlockTime embedding_time(const model::Model& model, const Degrees& degrees, double samples_per_replica,
                         const cluster::DeviceShape& shape, std::span<const CollectiveCurve> curves) {
  const DeviceRates rates = device_rates(shape.device, model.job);
  const EdgeRows edge = edge_rows(model, degrees, samples_per_replica);
  const double width = vocabulary_width(model);
  const double hidden = static_cast<double>(model.hidden);
  const double gradient = static_cast<double>(model.job.gradient_bytes);
  BlockTime time;
  // Table row read, output written; backward reads the gradient, reads and writes the row of the main gradient.
  time.compute.forward = streaming_seconds(2 * edge.element * edge.tokens * width, rates);
  time.compute.backward = streaming_seconds((edge.element + 2 * gradient) * edge.tokens * width, rates);
  if (model.embedding_projection > 0) {
    time.compute += linear_seconds(edge.tokens, width, hidden, 1, edge.element, gradient, rates.attention, rates);
  }
  const double bytes = edge.element * edge.tokens * width;
  const Group tp = place_group(degrees.tp, 1, shape);
  if (degrees.sequence_parallel) {
    time.communication.forward = collective_seconds(Collective::kReduceScatter, bytes, tp, shape, curves);
    time.communication.backward = collective_seconds(Collective::kAllGather, bytes, tp, shape, curves);
  } else {
    time.communication.forward = collective_seconds(Collective::kAllReduce, bytes, tp, shape, curves);
  }
  time.tensor = time.communication;
  if (!model.end_gradients().weights) drop_backward(time);
  return time;
}

BlockTime head_time(const model::Model& model, const Degrees& degrees, double samples_per_replica,
                    const cluster::DeviceShape& shape, std::span<const CollectiveCurve> curves) {
  const DeviceRates rates = device_rates(shape.device, model.job);
  const EdgeRows edge = edge_rows(model, degrees, samples_per_replica);
  const double hidden = static_cast<double>(model.hidden);
  const double width = vocabulary_width(model);
  const double gradient = static_cast<double>(model.job.gradient_bytes);
  const double columns = padded_vocabulary(model.vocabulary, degrees.tp) / degrees.tp;
  const model::Gradients gradients = model.end_gradients();
  BlockTime time;
  if (model.final_norm) {
    time.compute += Passes{streaming_seconds(kNormForward * edge.element * edge.rows * hidden, rates),
                           streaming_seconds(kNormBackward * edge.element * edge.rows * hidden, rates)};
  }
  if (model.embedding_projection > 0) {
    time.compute +=
        linear_seconds(edge.tokens, hidden, width, 1, edge.element, gradient, rates.attention, rates, gradients);
  }
  time.compute +=
      linear_seconds(edge.tokens, width, columns, 1, edge.element, gradient, rates.attention, rates, gradients);
  const LossTraffic loss = loss_traffic(model.job, edge.element);
  time.compute += Passes{streaming_seconds(loss.forward * edge.tokens * columns, rates),
                         streaming_seconds(loss.backward * edge.tokens * columns, rates)};

  const double bytes = edge.element * edge.tokens * hidden;
  const Group tp = place_group(degrees.tp, 1, shape);
  constexpr double kScalars = 3 * 4;  // maximum, target logit and sum of each token, fp32
  time.communication.forward = collective_seconds(Collective::kAllReduce, kScalars * edge.tokens, tp, shape, curves);
  if (degrees.sequence_parallel) {
    time.communication.forward += collective_seconds(Collective::kAllGather, bytes, tp, shape, curves);
    time.communication.backward = collective_seconds(Collective::kReduceScatter, bytes, tp, shape, curves);
  } else {
    time.communication.backward = collective_seconds(Collective::kAllReduce, bytes, tp, shape, curves);
  }
  time.tensor = time.communication;
  if (!gradients.any()) drop_backward(time);
  return time;
}

model::Model unfrozen(model::Model model) {
  model.graph = {};
  return model;
}

Passes share_of_trained(const BlockTime& time, const BlockTime& trained) {
  const auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0; };
  return {
      share(time.compute.forward + time.communication.forward, trained.compute.forward + trained.communication.forward),
      share(time.compute.backward + time.communication.backward,
            trained.compute.backward + trained.communication.backward)};
}

}  // namespace tangram::cost
