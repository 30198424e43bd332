// What the planner relies on when it compares stages: better hardware is never slower, sharding and recompute never
// cost memory, bounds bound. Each property draws thousands of random (device, model, degrees).
#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include "support/property.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/memory.hpp"
#include "tangram/cost/stage.hpp"
#include "tangram/cost/validity.hpp"

using namespace tangram;
using namespace tangram::cost;
using tangram::testing::holds;

namespace {

constexpr int kCases = 4000;

/// Uniform in [low, high], whatever the size rapidcheck has reached.
int pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::elementOf(std::vector<T>(values)));
}

bool coin() { return pick(0, 1) == 1; }

cluster::GpuType draw_device() {
  cluster::GpuType gpu;
  gpu.name = "drawn";
  gpu.memory = Bytes(std::int64_t{80} << 30);
  gpu.memory_bandwidth = BytesPerSecond(pick(300, 8000) * 1e9);
  gpu.peak[static_cast<std::size_t>(DType::kFp32)] = FlopsPerSecond(pick(5, 80) * 1e12);
  gpu.peak[static_cast<std::size_t>(DType::kFp16)] = FlopsPerSecond(pick(60, 2500) * 1e12);
  if (coin()) gpu.peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(pick(60, 2500) * 1e12);
  if (coin()) gpu.peak[static_cast<std::size_t>(DType::kFp8)] = FlopsPerSecond(pick(2500, 5000) * 1e12);
  gpu.compute.gemm_efficiency = pick(30, 100) / 100.0;
  gpu.pcie.bandwidth = BytesPerSecond(32e9);
  gpu.multiprocessors = pick(0, 150);
  gpu.compute.host_issue = Nanoseconds(pick(0, 100'000));
  gpu.compute.unvectorized_values = one_of({0, 1, 100}) * 1e9;
  gpu.compute.memory_efficiency = pick(50, 100) / 100.0;
  gpu.compute.kernel_launch = Nanoseconds(pick(0, 10'000));
  if (coin()) {
    cluster::NativeAttention native;
    native.forward = pick(5, 100) / 100.0;
    native.backward = pick(5, 100) / 100.0;
    native.forward_extra_keys = pick(0, 2'000);
    native.backward_extra_keys = pick(0, 2'000);
    native.head_dim_multiple = one_of({0, 32, 64});
    native.forward_extra_head_dim = pick(0, 100);
    native.backward_extra_head_dim = pick(0, 100);
    native.widest_value_dim = one_of({0, 64, 128});
    gpu.compute.native_attention = native;
  }
  return gpu;
}

void draw_latent(model::Attention& attention) {
  attention.kind = model::AttentionKind::kLatent;
  attention.q_lora_rank = one_of({0, 768, 1536});
  attention.kv_lora_rank = 512;
  attention.qk_nope_head_dim = 128;
  attention.qk_rope_head_dim = 64;
  attention.v_head_dim = 128;
}

/// A recurrence, a part less, experts in a latent width or a gate on attention.
void draw_hybrid(model::BlockType& block) {
  if (coin()) {
    model::Recurrence recurrence;
    recurrence.kind = one_of({model::RecurrenceKind::kMamba2, model::RecurrenceKind::kGatedDelta});
    recurrence.heads = one_of({16, 64});
    recurrence.groups = 16;
    recurrence.head_dim = one_of({32, 64, 128});
    recurrence.key_dim = one_of({64, 128});
    recurrence.chunk = one_of({64, 128, 256});
    block.recurrence = recurrence;
    block.attention = {};
  } else if (block.attention.kind == model::AttentionKind::kMultiHead) {
    block.attention.output_gate = coin();
  }
  if (block.feed_forward.is_moe()) block.feed_forward.latent_hidden = one_of({0, 256, 1024});
  if (coin()) return;
  block.parallel_attention = false;
  block.norms = 1;
  if (coin()) {
    block.feed_forward = {};
  } else {
    block.attention = {};
    block.recurrence.reset();
  }
}

model::BlockType draw_block() {
  model::BlockType block;
  block.name = "drawn";
  block.attention.heads = one_of({8, 16, 32, 64});
  block.attention.kv_heads = one_of({1, 2, 4, 8});
  block.attention.head_dim = one_of({64, 80, 128});
  block.attention.sliding_window = one_of({0, 0, 512});
  block.attention.qk_norm = coin();
  block.hidden = block.attention.heads * block.attention.head_dim;
  block.tokens = one_of({512, 2048, 8192});
  block.norm_bias = coin();
  block.parallel_attention = pick(0, 4) == 0;
  block.norms = block.parallel_attention ? pick(1, 2) : one_of({2, 2, 4});
  block.feed_forward.gated = coin();
  if (pick(0, 3) == 0) draw_latent(block.attention);
  if (coin()) {
    block.feed_forward.hidden = 4 * block.hidden;
  } else {
    block.feed_forward.experts = one_of({8, 64});
    block.feed_forward.experts_per_token = one_of({1, 2, 8});
    block.feed_forward.expert_hidden = one_of({1024, 2048});
    block.feed_forward.shared_hidden = one_of({0, 2048});
    block.feed_forward.shared_gate = block.feed_forward.shared_hidden > 0;
  }
  if (pick(0, 2) == 0) draw_hybrid(block);
  return block;
}

model::Model draw_model() {
  model::Model model;
  model.types = {draw_block()};
  model.blocks.assign(8, 0);
  model.vocabulary = one_of({32'000, 50'257, 128'256});
  model.hidden = model.types.front().hidden;
  model.tied_embeddings = coin();
  model.job.sequence_length = model.types.front().tokens;
  model.job.global_batch = 64;
  model.job.precision = one_of({DType::kBf16, DType::kFp16, DType::kFp8});
  // Without a draw of their own: the stream stays.
  model.job.fp8_recipe = model.hidden % 3 == 0 ? model::Fp8Recipe::kTensorwise : model::Fp8Recipe::kDelayed;
  model.job.narrow_parameters = model.tied_embeddings;
  const int kv_heads = model.types.front().attention.kv_heads;
  model.job.transpose_cache = kv_heads != 2 || !model::has_transposable_weights(model.job);
  model.job.narrow_gates = kv_heads == 4;
  if (model.hidden % 5 == 0) model.job.offload_modules.bits = static_cast<std::uint32_t>(model.hidden / 80 % 128);
  if (model.types.front().attention.heads == 16) model.types.front().attention.packed_length = 300.5;
  const std::int64_t heads = model.types.front().attention.heads + model.types.front().attention.kv_heads;
  model.job.context_exchange = static_cast<model::ContextExchange>(heads / 8 % 3);
  model.job.flash_attention = pick(0, 3) != 0;
  model.job.attention_kernel = one_of({model::AttentionKernel::kFlash2, model::AttentionKernel::kNative});
  return model;
}

/// A stage to cost: everything but the policy.
struct Draw {
  model::Model model;
  cluster::DeviceShape shape;
  Degrees degrees;
  int samples = 1;
  model::SliceSignature slice;
};

Draw draw() {
  Draw out;
  out.model = draw_model();
  Degrees& d = out.degrees;
  d.tp = one_of({1, 2, 4, 8});
  d.dp = one_of({1, 2, 4});
  d.cp = out.model.job.flash_attention ? one_of({1, 1, 2}) : 1;
  const bool shared = out.model.job.context_exchange == model::ContextExchange::kAllToAll;
  if (shared && out.model.types.front().attention.heads % (d.tp * d.cp) != 0) d.cp = 1;
  const bool moe = out.model.types.front().feed_forward.is_moe();
  d.sequence_parallel = d.tp > 1 && (moe || coin());
  if (moe) {
    d.ep = one_of({1, 2, 4, 8});
    d.etp = one_of({1, 1, 2});
    while (d.gpus() % (d.ep * d.etp) != 0) (d.etp > 1 ? d.etp : d.ep) /= 2;
  }
  out.samples = d.dp * pick(1, 4);
  d.dp_replicate = one_of({1, 1, 2, 4});
  if (d.dp % d.dp_replicate != 0 || (d.edp() % d.dp_replicate != 0 && d.dp_replicate % d.edp() != 0)) {
    d.dp_replicate = 1;
  }
  out.shape.device = draw_device();
  out.shape.per_node = std::min(d.gpus(), one_of({1, 2, 4, 8}));
  out.shape.nodes = d.gpus() / out.shape.per_node;
  out.shape.intra = {BytesPerSecond(pick(5, 900) * 1e9), Nanoseconds(pick(0, 20'000))};
  out.shape.inter = {BytesPerSecond(pick(1, 400) * 1e9), Nanoseconds(pick(0, 50'000))};
  out.slice.runs = {{0, pick(1, 8)}};
  out.slice.embedding = coin();
  out.slice.head = coin();
  out.slice.tied_elsewhere = out.model.tied_embeddings && out.slice.embedding != out.slice.head;
  return out;
}

MemoryPolicy draw_policy() {
  MemoryPolicy policy;
  policy.zero = pick(0, 3);
  policy.recompute = one_of({RecomputeMode::kNone, RecomputeMode::kSelective, RecomputeMode::kFull});
  if (policy.recompute == RecomputeMode::kFull) policy.recompute_layers = pick(1, 8);
  return policy;
}

UnitCosts units_of(const Draw& d) {
  auto units = unit_costs(d.model, d.shape, d.degrees, d.samples);
  if (!units) RC_FAIL(units.error().front().message);
  return *std::move(units);
}

/// One way of being better hardware.
void improve(cluster::DeviceShape& shape) {
  const double factor = 1 + pick(1, 100) / 50.0;
  const auto faster = [&](cluster::Link& link) { link.bandwidth = BytesPerSecond(link.bandwidth.value() * factor); };
  cluster::GpuType& gpu = shape.device;
  switch (pick(0, 7)) {
    case 0:
      for (FlopsPerSecond& peak : gpu.peak) peak = FlopsPerSecond(peak.value() * factor);
      break;
    case 1: gpu.memory_bandwidth = BytesPerSecond(gpu.memory_bandwidth.value() * factor); break;
    case 2: gpu.compute.kernel_launch = gpu.compute.kernel_launch / 2; break;
    case 3: faster(shape.intra); break;
    case 4: faster(shape.inter); break;
    case 5: shape.intra.latency = shape.intra.latency / 2; break;
    case 6: gpu.compute.unvectorized_values *= factor; break;
    default: shape.inter.latency = shape.inter.latency / 2; break;
  }
}

/// What selective recompute leaves to the host would hide exchanges of ZeRO as well, the more of it the less the device
/// has to do: that is not counted.
bool hides_beside_host(const MemoryPolicy& policy) {
  return policy.zero >= 2 && policy.recompute == RecomputeMode::kSelective;
}

}  // namespace

TEST_CASE("better hardware never makes any time longer") {
  holds(kCases, [] {
    Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    const StageCost before = stage_cost(units_of(d), d.slice, policy);
    improve(d.shape);
    const StageCost after = stage_cost(units_of(d), d.slice, policy);
    RC_ASSERT(after.forward <= before.forward);
    RC_ASSERT(hides_beside_host(policy) || after.backward <= before.backward);
    // Gathers that hide no more under faster compute keep their links from the sync.
    const bool gathers = policy.zero >= 2 && d.degrees.dp_replicate > 1;
    RC_ASSERT(gathers || after.gradient_sync <= before.gradient_sync);
    RC_ASSERT(after.optimizer_step <= before.optimizer_step);
    // Less backward to hide under may expose more, but never more than was saved.
    const auto end = [](const StageCost& cost) {
      return cost.forward + cost.backward + exposed_sync(cost.gradient_sync, cost.backward);
    };
    RC_ASSERT(hides_beside_host(policy) || end(after) <= end(before) + Nanoseconds(1));
    RC_ASSERT(after.static_memory() == before.static_memory());
    RC_ASSERT(after.activation == before.activation);
  });
}

TEST_CASE("a higher ZeRO stage never holds more and never computes less") {
  holds(kCases, [] {
    const Draw d = draw();
    const UnitCosts units = units_of(d);
    MemoryPolicy policy = draw_policy();
    policy.zero = 0;
    StageCost lower = stage_cost(units, d.slice, policy);
    for (int zero = 1; zero <= 3; ++zero) {
      policy.zero = zero;
      const StageCost higher = stage_cost(units, d.slice, policy);
      RC_ASSERT(higher.static_memory() <= lower.static_memory());
      RC_ASSERT(higher.forward >= lower.forward);
      RC_ASSERT(higher.backward >= lower.backward);
      RC_ASSERT(higher.activation == lower.activation);
      lower = higher;
    }
  });
}

TEST_CASE("smaller sharding groups never hold less, and inside nodes gather no longer") {
  int inside = 0;
  holds(kCases, [&inside] {
    Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    if (policy.zero == 0) return;
    d.degrees.dp_replicate = 1;
    const StageCost whole = stage_cost(units_of(d), d.slice, policy);
    StageCost larger = whole;
    for (const int groups : {2, 4}) {
      d.degrees.dp_replicate = groups;
      if (!unit_costs(d.model, d.shape, d.degrees, d.samples)) continue;
      const UnitCosts units = units_of(d);
      const StageCost smaller = stage_cost(units, d.slice, policy);
      RC_ASSERT(smaller.static_memory() >= larger.static_memory());
      RC_ASSERT(smaller.activation == larger.activation);
      RC_ASSERT(smaller.transient == larger.transient);
      larger = smaller;
      if (units.groups.shards.members > 1 || units.groups.expert_shards.members > 1) continue;
      RC_ASSERT(smaller.forward <= whole.forward);
      RC_ASSERT(smaller.backward <= whole.backward);
      ++inside;
    }
  });
  CHECK(inside >= tangram::testing::enough(100));
}

TEST_CASE("without latencies ZeRO-1 is no sooner synchronised inside nodes, and holds more") {
  // A reduce-scatter and a gather of all send (m - 1) / m of the gradients and of the parameters between m nodes, the
  // groups' all-reduce 2 (m - 1) / m of the gradients, which are no narrower.
  holds(kCases, [] {
    Draw d = draw();
    Degrees& degrees = d.degrees;
    d.shape.device.compute.kernel_launch = Nanoseconds(0);
    d.shape.intra.latency = d.shape.inter.latency = Nanoseconds(0);
    degrees.dp_replicate = 1;
    if (d.shape.nodes == 1 || d.shape.per_node % (degrees.tp * degrees.cp) != 0) return;
    const StageCost whole = stage_cost(units_of(d), d.slice, {1});
    degrees.dp_replicate = d.shape.nodes;
    if (!unit_costs(d.model, d.shape, degrees, d.samples)) return;
    const StageCost inside = stage_cost(units_of(d), d.slice, {1});
    const Nanoseconds rounding(2);
    RC_ASSERT(inside.gradient_sync + inside.optimizer_step + rounding >= whole.gradient_sync + whole.optimizer_step);
    RC_ASSERT(inside.static_memory() >= whole.static_memory());
  });
}

TEST_CASE("recompute never keeps more and never runs faster") {
  holds(kCases, [] {
    const Draw d = draw();
    const UnitCosts units = units_of(d);
    const auto cost = [&](RecomputeMode mode, int layers) { return stage_cost(units, d.slice, {0, mode, layers}); };
    const StageCost none = cost(RecomputeMode::kNone, 0);
    const StageCost selective = cost(RecomputeMode::kSelective, 0);
    RC_ASSERT(selective.activation <= none.activation);
    RC_ASSERT(selective.backward >= none.backward);
    // What a block brings back while it is recomputed is no more than it stopped keeping (2 bytes: rounding).
    const Bytes rounding(2);
    RC_ASSERT(selective.peak(1) <= none.peak(1) + rounding);
    StageCost fewer = none;
    for (int layers = 1; layers <= d.slice.runs.front().second; ++layers) {
      const StageCost more = cost(RecomputeMode::kFull, layers);
      RC_ASSERT(more.activation <= fewer.activation);
      RC_ASSERT(more.backward >= fewer.backward);
      RC_ASSERT(more.forward == none.forward);
      RC_ASSERT(more.peak(1) <= fewer.peak(1) + rounding);
      fewer = more;
    }
    RC_ASSERT(fewer.activation <= selective.activation);
  });
}

TEST_CASE("more samples take more time and more memory") {
  holds(kCases, [] {
    Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    const StageCost few = stage_cost(units_of(d), d.slice, policy);
    d.samples += d.degrees.dp * pick(1, 4);
    const StageCost many = stage_cost(units_of(d), d.slice, policy);
    RC_ASSERT(many.activation > few.activation);
    RC_ASSERT(many.transient >= few.transient);
    RC_ASSERT(many.forward >= few.forward);
    RC_ASSERT(hides_beside_host(policy) || many.backward >= few.backward);
    RC_ASSERT(many.static_memory() == few.static_memory());
    RC_ASSERT((policy.zero >= 2 && d.degrees.dp_replicate > 1) || many.gradient_sync == few.gradient_sync);
  });
}

TEST_CASE("shorter packed sequences never take longer, and change nothing that is held") {
  holds(kCases, [] {
    Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    model::Attention& attention = d.model.types.front().attention;
    attention.packed_length = 0;
    StageCost before = stage_cost(units_of(d), d.slice, policy);
    for (const double length : {5'000.0, 700.5, 64.0}) {
      attention.packed_length = length;
      const StageCost after = stage_cost(units_of(d), d.slice, policy);
      RC_ASSERT(after.forward.value() <= before.forward.value());
      RC_ASSERT(after.backward.value() <= before.backward.value());
      RC_ASSERT(after.peak(1) == before.peak(1));
      before = after;
    }
  });
}

TEST_CASE("modules that are offloaded never keep more, and never run faster") {
  holds(kCases, [] {
    Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    d.model.job.offload_modules = {};
    StageCost before = stage_cost(units_of(d), d.slice, policy);
    for (const auto& [_, module] : model::kOffloadModuleNames) {
      d.model.job.offload_modules.add(module);
      const StageCost after = stage_cost(units_of(d), d.slice, policy);
      RC_ASSERT(after.activation <= before.activation);
      RC_ASSERT(after.forward >= before.forward);
      RC_ASSERT(after.backward >= before.backward);
      RC_ASSERT(after.static_memory() == before.static_memory());
      before = after;
    }
  });
}

TEST_CASE("CUDA graphs of a module more are never slower, and change nothing that is held") {
  holds(kCases, [] {
    Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    d.shape.device.compute.host_issue = Nanoseconds(pick(0, 200'000));
    d.model.job.cuda_graphs = model::kNoGraphs;
    d.model.job.grouped_gemm = pick(0, 1) == 1;
    StageCost before = stage_cost(units_of(d), d.slice, policy);
    const auto is_no_slower = [&] {
      const StageCost after = stage_cost(units_of(d), d.slice, policy);
      RC_ASSERT(after.forward <= before.forward);
      RC_ASSERT(after.backward <= before.backward);
      RC_ASSERT(after.peak(1) == before.peak(1));
      before = after;
    };
    for (const auto& [_, module] : model::kGraphModuleNames) {
      d.model.job.cuda_graphs.add(module);
      is_no_slower();
    }
    d.model.job.cuda_graphs = model::kGraphOfStep;
    is_no_slower();
  });
}

TEST_CASE("a larger share of parameters that the host steps never holds more, and never steps sooner") {
  holds(kCases, [] {
    Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    StageCost before = stage_cost(units_of(d), d.slice, policy);
    for (const double share : {0.25, 0.5, 1.0}) {
      d.model.job.optimizer.offload_fraction = share;
      const StageCost after = stage_cost(units_of(d), d.slice, policy);
      RC_ASSERT(after.static_memory() <= before.static_memory());
      RC_ASSERT(after.optimizer_step >= before.optimizer_step);
      RC_ASSERT(after.forward == before.forward);
      RC_ASSERT(after.activation == before.activation);
      before = after;
    }
  });
}

TEST_CASE("no degrees and no policy beat the least GPU-seconds") {
  holds(kCases, [] {
    const Draw d = draw();
    const UnitCosts units = units_of(d);
    const auto gpu_seconds = [&](const UnitCost& unit) {
      return (unit.forward + unit.backward) * d.shape.gpus() / d.samples;
    };
    const double block = least_gpu_seconds(d.model, d.model.types.front(), d.shape.device);
    RC_ASSERT(block > 0);
    RC_ASSERT(gpu_seconds(units.blocks.front()) >= block);
    RC_ASSERT(gpu_seconds(units.head) >= least_gpu_seconds_head(d.model, d.shape.device));
    const StageCost stage = stage_cost(units, d.slice, draw_policy());
    const double stage_seconds = to_seconds(stage.forward + stage.backward) * d.shape.gpus() / d.samples;
    RC_ASSERT(stage_seconds >= block * d.slice.runs.front().second);
  });
}

TEST_CASE("all ranks together hold at least the model") {
  holds(kCases, [] {
    const Draw d = draw();
    const UnitCosts units = units_of(d);
    const UnitCost& block = units.blocks.front();
    const Degrees& g = d.degrees;
    RC_ASSERT(block.trained_shared * g.tp + block.trained_expert * g.ep * g.etp >=
              block.trained_parameters * (1 - 1e-12));
    // Fully sharded over everything there is: 16 bytes a parameter, and what it is kept in, spread over all GPUs.
    const StageCost sharded = stage_cost(units, d.slice, {3, RecomputeMode::kNone, 0});
    RC_ASSERT(sharded.static_memory().as_double() * d.shape.gpus() >= (16 + least_parameter_bytes(d.model.job)) *
                                                                          block.trained_parameters *
                                                                          d.slice.runs.front().second * (1 - 1e-12));
  });
}

TEST_CASE("a stage costs what its parts cost") {
  holds(kCases, [] {
    Draw d = draw();
    d.slice.runs = {{0, pick(2, 8)}};
    d.slice.embedding = true;
    d.slice.head = true;
    d.slice.tied_elsewhere = false;
    MemoryPolicy policy = draw_policy();
    const int total = d.slice.runs.front().second;
    const int front = pick(1, total - 1);
    policy.recompute_layers = policy.recompute == RecomputeMode::kFull ? total : 0;
    model::SliceSignature first = d.slice;
    first.runs = {{0, front}};
    first.head = false;
    model::SliceSignature second = d.slice;
    second.runs = {{0, total - front}};
    second.embedding = false;
    d.model.tied_embeddings = false;
    const UnitCosts units = units_of(d);
    const StageCost whole = stage_cost(units, d.slice, policy);
    const StageCost a = stage_cost(units, first, policy);
    const StageCost b = stage_cost(units, second, policy);
    const auto near = [](auto x, auto y) { return std::abs((x - y).value()) <= 4; };  // each is rounded up by itself
    RC_ASSERT(near(a.forward + b.forward, whole.forward));
    RC_ASSERT(near(a.backward + b.backward, whole.backward));
    RC_ASSERT(near(a.activation + b.activation, whole.activation));
    RC_ASSERT(near(a.static_memory() + b.static_memory(), whole.static_memory()));
    RC_ASSERT(std::max(a.transient, b.transient) == whole.transient);
  });
}

TEST_CASE("the microbatches that fit do, one more does not") {
  holds(kCases, [] {
    const Draw d = draw();
    const StageCost cost = stage_cost(units_of(d), d.slice, draw_policy());
    const Bytes usable(std::int64_t{1} << pick(28, 40));
    const std::int64_t n = max_in_flight(cost, usable);
    if (n > 0) RC_ASSERT(cost.peak(n) <= usable);
    if (n < 1'000'000) RC_ASSERT(cost.peak(n + 1) > usable);
  });
}

TEST_CASE("tokens reach as many places as all choices of groups say") {
  // Experts lie evenly on [0, 1). A place and a group are intervals of it; a token's experts are drawn from the groups.
  const auto overlap = [](int place, int places, int group, int groups) {
    const double first = std::max(static_cast<double>(place) / places, static_cast<double>(group) / groups);
    const double last = std::min((place + 1.0) / places, (group + 1.0) / groups);
    return std::max(0.0, last - first);
  };
  holds(kCases, [&] {
    const int groups = 1 << pick(0, 3);
    const int places = 1 << pick(0, 6);
    const TokenChoice choice{static_cast<double>(pick(1, 10)), groups, pick(1, groups)};
    double reached = 0;
    int choices = 0;
    for (unsigned chosen = 0; chosen < (1U << groups); ++chosen) {
      if (std::popcount(chosen) != choice.chosen_groups) continue;
      ++choices;
      for (int place = 1; place < places; ++place) {  // one's own is the first
        double share = 0;
        for (int group = 0; group < groups; ++group) {
          if ((chosen >> group) % 2 == 1) share += overlap(place, places, group, groups);
        }
        reached += 1 - std::pow(1 - share * groups / choice.chosen_groups, choice.experts);
      }
    }
    RC_ASSERT(std::abs(other_places(places, choice) - reached / choices) < 1e-9);
  });
}

TEST_CASE("collectives: more bytes, a longer ramp or a shared card are never faster") {
  holds(kCases, [] {
    Draw d = draw();
    d.shape.nodes = pick(1, 8);
    d.shape.per_node = pick(1, 8);
    d.shape.intra.ramp = Nanoseconds(pick(0, 1) * pick(0, 100'000));
    const Collective kind =
        one_of({Collective::kAllReduce, Collective::kAllGather, Collective::kReduceScatter, Collective::kAllToAll});
    Group group{pick(1, d.shape.per_node), pick(1, d.shape.nodes), pick(1, 8)};
    const double bytes = pick(1, 1'000'000) * 1e3;
    const double seconds = collective_seconds(kind, bytes, group, d.shape);
    RC_ASSERT(seconds >= 0);
    RC_ASSERT((group.size() == 1) == (seconds == 0));
    RC_ASSERT(collective_seconds(kind, 2 * bytes, group, d.shape) >= seconds);
    // An all-reduce does at least what a reduce-scatter does, up to the tree's fewer steps.
    if (d.shape.intra.latency.value() == 0 && d.shape.inter.latency.value() == 0) {
      RC_ASSERT(collective_seconds(Collective::kAllReduce, bytes, group, d.shape) >=
                collective_seconds(Collective::kReduceScatter, bytes, group, d.shape));
    }
    ++group.sharing;
    RC_ASSERT(collective_seconds(kind, bytes, group, d.shape) >= seconds);
    --group.sharing;
    d.shape.intra.ramp = d.shape.intra.ramp + Nanoseconds(1'000);
    RC_ASSERT(collective_seconds(kind, bytes, group, d.shape) >= seconds);
  });
}

TEST_CASE("groups cover their ranks") {
  holds(kCases, [] {
    cluster::DeviceShape shape;
    shape.nodes = pick(1, 16);
    shape.per_node = pick(1, 16);
    const int gpus = shape.gpus();
    std::vector<std::pair<int, int>> choices;
    for (int stride = 1; stride <= gpus; ++stride) {
      for (int degree = 1; degree * stride <= gpus; ++degree) {
        if (gpus % (degree * stride) == 0) choices.emplace_back(degree, stride);
      }
    }
    const auto [degree, stride] = choices[static_cast<std::size_t>(pick(0, static_cast<int>(choices.size()) - 1))];
    const Group group = place_group(degree, stride, shape);
    // By enumeration: the most members that any group {base + i * stride} touches.
    int most = 1;
    for (int base = 0; base < gpus; ++base) {
      if (base / stride % degree != 0) continue;
      int members = 0;
      int last = -1;
      for (int i = 0; i < degree; ++i) {
        const int member = (base + i * stride) / shape.per_node;
        if (member != last) ++members;
        last = member;
      }
      most = std::max(most, members);
    }
    RC_ASSERT(group.size() >= degree);
    RC_ASSERT(group.members <= std::min(shape.nodes, degree));
    RC_ASSERT(group.sharing >= 1);
    const bool aligned = shape.per_node % (degree * stride) == 0 || (degree * stride) % shape.per_node == 0;
    if (aligned && (shape.per_node % stride == 0 || stride % shape.per_node == 0)) {
      RC_ASSERT(group.size() == degree);
      RC_ASSERT(group.members == most);
    }
    // A group inside one member is never described as crossing none when one of its kind crosses.
    RC_ASSERT((group.members > 1) == (most > 1));
  });
}

TEST_CASE("a boundary and a replica exchange never gain from a worse link") {
  holds(kCases, [] {
    const Bytes bytes(pick(1, 1'000'000'000));
    const cluster::Link good{BytesPerSecond(pick(1, 400) * 1e9), Nanoseconds(pick(0, 50'000))};
    const cluster::Link bad{BytesPerSecond(good.bandwidth.value() / pick(1, 5)), good.latency * pick(1, 5)};
    const int a = pick(1, 8), b = pick(1, 8), gpus = pick(1, 8);
    const BoundaryCost fast = boundary_cost(bytes, good, a, a * gpus, b, b * gpus);
    const BoundaryCost slow = boundary_cost(bytes, bad, a, a * gpus, b, b * gpus);
    RC_ASSERT(fast.latency <= slow.latency);
    RC_ASSERT(fast.occupancy <= slow.occupancy);
    RC_ASSERT(fast.occupancy <= fast.latency);
    RC_ASSERT(boundary_cost(bytes, good, b, b * gpus, a, a * gpus) == fast);
    const int replicas = pick(1, 16);
    RC_ASSERT(replica_sync(bytes, replicas, good, a) <= replica_sync(bytes, replicas, bad, a));
    RC_ASSERT(replica_sync(bytes, replicas, good, a) <= replica_sync(bytes, replicas + 1, good, a));
  });
}

namespace {

CollectiveCurve draw_curve(const CurveGroup& group) {
  CollectiveCurve curve;
  curve.operation = one_of({Exchange::kAllReduce, Exchange::kAllGather, Exchange::kReduceScatter, Exchange::kAllToAll});
  curve.group = group;
  std::int64_t bytes = pick(1, 1'000'000);
  for (int points = pick(1, 4); points > 0; --points) {
    curve.points.push_back({Bytes(bytes), Nanoseconds(pick(1, 100'000'000))});
    bytes *= pick(2, 1'000);
  }
  return curve;
}

CurveGroup draw_group(const ProcessGroups& groups) {
  if (coin()) return {one_of({1, 2, 4, 8}), one_of({1, 2, 4}), one_of({1, 2, 4, 8})};
  return curve_group(
      one_of({groups.tensor, groups.context, groups.data, groups.expert, groups.expert_tensor, groups.expert_data}));
}

ProfileSet draw_curves(const Draw& d, const ProcessGroups& groups) {
  ProfileSet set;
  for (int profiles = pick(1, 2); profiles > 0; --profiles) {
    Profile profile;
    profile.device = d.shape.device;
    for (int curves = pick(0, 6); curves > 0; --curves) profile.collectives.push_back(draw_curve(draw_group(groups)));
    set.add(std::move(profile));
  }
  return set;
}

StageCost cost_with(const Draw& d, const MemoryPolicy& policy, const ProfileSet* profiles) {
  const auto units = unit_costs(d.model, d.shape, d.degrees, d.samples, profiles);
  if (!units) RC_FAIL(units.error().front().message);
  return stage_cost(*units, d.slice, policy);
}

}  // namespace

TEST_CASE("the curves that a stage uses give its costs again, and others change nothing") {
  holds(kCases, [] {
    const Draw d = draw();
    const MemoryPolicy policy = draw_policy();
    const ProcessGroups groups = process_groups(d.degrees, d.shape);
    const ProfileSet set = draw_curves(d, groups);
    Selection used;
    collect_used(set, d.model, d.slice, d.shape, d.degrees, d.samples, used);
    const ProfileSet kept = set.select(used);
    RC_ASSERT(cost_with(d, policy, &kept) == cost_with(d, policy, &set));

    Selection others;
    for (std::size_t p = 0; p < set.profiles().size(); ++p) {
      for (std::size_t c = 0; c < set.profiles()[p].collectives.size(); ++c) {
        if (!used.curves.contains({p, c})) others.curves.insert({p, c});
      }
    }
    const ProfileSet unused = set.select(others);
    RC_ASSERT(cost_with(d, policy, &unused) == cost_with(d, policy, nullptr));
  });
}
