// What the software of a run brings: fused kernels, CUDA graphs, dispatchers of experts, exchanges beside products.
#include <array>
#include <cmath>

#include "support/catch.hpp"
#include "tangram/cost/block_time.hpp"
#include "tangram/cost/communication.hpp"
#include "tangram/cost/compute.hpp"
#include "unit/cost/samples.hpp"

using namespace tangram;
using namespace tangram::cost;
using namespace tangram::cost::samples;
using model::CudaGraphs;
using model::ExpertDispatch;

namespace {

cluster::GpuType fused_gpu() {
  cluster::GpuType gpu = round_gpu();
  set_peak(gpu, DType::kFp8, 200_TFLOPs);
  gpu.compute.gemm_efficiency = 0.8;
  gpu.compute.memory_efficiency = 0.4;
  gpu.compute.fused_kernels = cluster::FusedKernels{0.7, 0.6, 0.9, ""};
  return gpu;
}

model::Job job_of(DType precision, bool fused) {
  model::Job job;
  job.precision = precision;
  job.fused_kernels = fused;
  return job;
}

/// A block on one GPU whose host needs 10 ms a kernel, or nothing.
BlockTime on_host(const model::BlockType& block, CudaGraphs graphs, Nanoseconds issue = 10'000'000_ns) {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.host_issue = issue;
  model::Job job;
  job.cuda_graphs = graphs;
  return block_time(block, job, Degrees{}, 1, shape_of(gpu, 1, 1));
}

model::BlockType dense_block() {
  model::BlockType block;
  block.hidden = 1024;
  block.tokens = 512;
  block.attention.heads = 8;
  block.attention.kv_heads = 8;
  block.attention.head_dim = 128;
  block.feed_forward.hidden = 4096;
  return block;
}

model::BlockType expert_block() {
  model::BlockType block = dense_block();
  block.feed_forward.hidden = 0;
  block.feed_forward.experts = 8;
  block.feed_forward.experts_per_token = 2;
  block.feed_forward.expert_hidden = 1024;
  return block;
}

/// Nodes of eight H100: NVLink 450 GB/s, 400 Gbit/s a GPU.
cluster::DeviceShape h100_nodes(int nodes) {
  cluster::DeviceShape shape = shape_of(round_gpu(), nodes, 8);
  shape.intra = {450_GBps, 3_us};
  shape.inter = {400_GBps, 5_us};
  return shape;
}

}  // namespace

TEST_CASE("fused kernels have shares of their own where the GPU's record has them") {
  const cluster::GpuType gpu = fused_gpu();
  const DeviceRates eager = device_rates(gpu, job_of(DType::kBf16, false));
  CHECK(eager.matrix == Approx(80e12));
  CHECK(eager.memory == Approx(400e9));
  const DeviceRates fused = device_rates(gpu, job_of(DType::kBf16, true));
  CHECK(fused.matrix == Approx(70e12));
  CHECK(fused.memory == Approx(900e9));
  const DeviceRates narrow = device_rates(gpu, job_of(DType::kFp8, true));
  CHECK(narrow.matrix == Approx(120e12));
  CHECK(narrow.attention == Approx(70e12));
  CHECK(device_rates(gpu, job_of(DType::kFp8, false)).matrix == Approx(160e12));
  CHECK(device_rates(round_gpu(), job_of(DType::kBf16, true)).memory == Approx(1000e9));
}

TEST_CASE("products in 4 bits are fused kernels' whatever runs beside them") {
  cluster::GpuType gpu = fused_gpu();
  set_peak(gpu, DType::kFp4, 400_TFLOPs);
  CHECK(device_rates(gpu, job_of(DType::kFp4, true)).matrix == Approx(400e12 * 0.6));  // that of fp8
  gpu.compute.fused_kernels->fp4_efficiency = 0.5;
  CHECK(device_rates(gpu, job_of(DType::kFp4, true)).matrix == Approx(400e12 * 0.5));
  const DeviceRates eager = device_rates(gpu, job_of(DType::kFp4, false));
  CHECK(eager.matrix == Approx(400e12 * 0.5));
  CHECK(eager.memory == Approx(400e9));
  CHECK(eager.attention == Approx(80e12));
}

TEST_CASE("weights are cast to fp8 once an iteration, inputs and gradients in each pass") {
  const DeviceRates wide = device_rates(fused_gpu(), job_of(DType::kBf16, true));
  const DeviceRates eight = device_rates(fused_gpu(), job_of(DType::kFp8, true));
  DeviceRates narrow = wide;
  narrow.copies = eight.copies;
  const Passes plain = linear_seconds(512, 1024, 4096, 1, 2, 4, wide.matrix, wide);
  const Passes cast = linear_seconds(512, 1024, 4096, 1, 2, 4, wide.matrix, narrow);
  CHECK(cast.forward - plain.forward == Approx(512.0 * 1024 * (2 + 2) / 900e9));
  const Passes normed = linear_seconds(512, 1024, 4096, 1, 2, 4, wide.matrix, narrow, {}, InputFrom::kNorm);
  CHECK(normed.forward - plain.forward == Approx(512.0 * 1024 * 2 / 900e9));
  CHECK(cast.backward - plain.backward == Approx(512.0 * 4096 * (2 + 2) / 900e9));
  CHECK(cast.forward_kernels == 2);
}

// 8 bytes for each of 1024 x 4096.
TEST_CASE("gradients are added to the main ones behind products whose rates are theirs alone") {
  const auto backward = [](const DeviceRates& rates, double gradient) {
    return linear_seconds(8192, 1024, 4096, 1, 2, gradient, rates.matrix, rates).backward;
  };
  const DeviceRates alone = device_rates(fused_gpu(), job_of(DType::kBf16, true));
  CHECK(backward(alone, 4) - backward(alone, 0) == Approx(8.0 * 1024 * 4096 / 900e9));
  CHECK(backward(alone, 2) - backward(alone, 0) == Approx(4.0 * 1024 * 4096 / 900e9));
  const DeviceRates fitted = device_rates(fused_gpu(), job_of(DType::kBf16, false));
  CHECK(backward(fitted, 4) == Approx(backward(fitted, 0)));
}

TEST_CASE("products add to no main gradients where kernels of their own do") {
  model::Job job = job_of(DType::kBf16, true);
  const auto backward = [&] {
    return block_time(dense_block(), job, Degrees{}, 16, shape_of(fused_gpu(), 1, 1)).compute.backward;
  };
  const double added = backward();
  job.fused_accumulation = false;
  CHECK(added - backward() == Approx(8.0 * (4 + 12) * 1024 * 1024 / 900e9));
}

// Forward one copy of a byte, backward one, or two where blocks have scales; sums in two bytes.
TEST_CASE("what products read in 8 bits is gathered in 8 bits") {
  model::Job job = job_of(DType::kBf16, true);
  const cluster::DeviceShape shape = shape_of(fused_gpu(), 1, 4);
  const auto tensor = [&] {
    return block_time(dense_block(), job, {.tp = 4, .sequence_parallel = true}, 16, shape).tensor;
  };
  const auto seconds = [&](Collective kind, double bytes) {
    return 2 * collective_seconds(kind, bytes * 16 * 512 * 1024, {4, 1, 1}, shape);
  };
  const double scatter = seconds(Collective::kReduceScatter, 2);
  CHECK(tensor().forward == Approx(seconds(Collective::kAllGather, 2) + scatter));
  CHECK(tensor().backward == Approx(tensor().forward));
  job.precision = DType::kFp8;
  job.fp8_recipe = model::Fp8Recipe::kDelayed;
  CHECK(tensor().forward == Approx(seconds(Collective::kAllGather, 1) + scatter));
  CHECK(tensor().backward == Approx(tensor().forward));
  job.fp8_recipe = model::Fp8Recipe::kMxfp8;
  CHECK(tensor().forward == Approx(seconds(Collective::kAllGather, 1 + 1.0 / 32) + scatter));
  CHECK(tensor().backward == Approx(seconds(Collective::kAllGather, 2 + 2.0 / 32) + scatter));
}

// Two passes over each tensor, one for its greatest value; two copies of half a byte and a sixteenth of a scale.
TEST_CASE("casts to NVFP4 read a tensor twice") {
  cluster::GpuType gpu = fused_gpu();
  set_peak(gpu, DType::kFp4, 400_TFLOPs);
  DeviceRates wide = device_rates(gpu, job_of(DType::kBf16, true));
  const Passes plain = linear_seconds(512, 1024, 4096, 1, 2, 4, wide.matrix, wide);
  wide.copies = device_rates(gpu, job_of(DType::kFp4, true)).copies;
  const Passes cast = linear_seconds(512, 1024, 4096, 1, 2, 4, wide.matrix, wide);
  CHECK(cast.forward - plain.forward == Approx(512.0 * 1024 * (2 * 2 + 1.125) / 900e9));
  CHECK(cast.backward - plain.backward == Approx(512.0 * 4096 * (2 * 2 + 1.125) / 900e9));
  CHECK(cast.forward_kernels - plain.forward_kernels == 2);
}

// Two and three around each of two regions; dispatch and combine both ways.
TEST_CASE("the host issues exchanges") {
  const auto kernels = [](const model::BlockType& block, const Degrees& degrees) {
    const Passes compute = block_time(block, model::Job{}, degrees, 1, shape_of(round_gpu(), 1, 4)).compute;
    return std::array{compute.forward_kernels, compute.backward_kernels};
  };
  const auto alone = kernels(dense_block(), {.dp = 4});
  CHECK(kernels(dense_block(), {.tp = 2, .dp = 2}) == alone);
  const auto sequence = kernels(dense_block(), {.tp = 2, .dp = 2, .sequence_parallel = true});
  CHECK(sequence == std::array{alone[0] + 2 * 2, alone[1] + 2 * 3});
  const auto experts = kernels(expert_block(), {.dp = 4});
  const auto exchanged = kernels(expert_block(), {.dp = 4, .ep = 4});
  constexpr int kCopiesByExpert = 1;
  CHECK(exchanged == std::array{experts[0] + 2 + kCopiesByExpert, experts[1] + 2 + kCopiesByExpert});
}

TEST_CASE("what CUDA graphs hold, the host does not issue") {
  const BlockTime device = on_host(dense_block(), model::kNoGraphs, 0_ns);
  const BlockTime issued = on_host(dense_block(), model::kNoGraphs);
  CHECK(issued.compute.forward == Approx(10e-3 * device.compute.forward_kernels));
  CHECK(on_host(dense_block(), model::kGraphsOfBlocks).compute.forward == Approx(device.compute.forward));
  CHECK(on_host(dense_block(), model::kGraphOfStep).compute.forward == Approx(device.compute.forward));
}

TEST_CASE("CUDA graphs of a module spare the host its kernels alone") {
  using enum model::GraphModule;
  for (const model::BlockType& block : {dense_block(), expert_block()}) {
    const auto kernels = [&](const CudaGraphs& graphs) {
      return std::round(on_host(block, graphs).compute.backward / 10e-3);
    };
    const double all = kernels(model::kNoGraphs);
    const double attention = all - kernels({kAttention});
    const double behind = all - kernels({kFeedForward, kRouter});
    CHECK(attention > 0);
    CHECK(behind > 0);
    CHECK(all - kernels({kAttention, kFeedForward, kRouter}) == attention + behind);
    CHECK(kernels({kRecurrence}) == all);
    CHECK(kernels({block.feed_forward.is_moe() ? kFeedForward : kRouter}) == all);
    CHECK(kernels(model::kGraphsOfBlocks) == kernels({kAttention, kFeedForward, kRouter}));
  }
}

TEST_CASE("where the host is the limit, each part that is recomputed costs its calls") {
  const BlockTime device = on_host(dense_block(), model::kNoGraphs, 0_ns);
  const BlockTime issued = on_host(dense_block(), model::kNoGraphs);
  // Both norms: a kernel and four calls for the states of random numbers each; of the whole block those four.
  CHECK(issued.selective_compute == Approx(2 * 5 * 10e-3));
  CHECK(issued.states == Approx(4 * 10e-3));
  CHECK(device.selective_compute > 0);
  CHECK(device.states == 0);
  // What the device takes longer than the host hides them, and what graphs hold is not issued.
  CHECK(on_host(dense_block(), model::kNoGraphs, 1_ns).selective_compute == Approx(device.selective_compute));
  CHECK(on_host(dense_block(), model::kNoGraphs, 1_ns).states == 0);
  CHECK(on_host(dense_block(), model::kGraphsOfBlocks).selective_compute == Approx(device.selective_compute));
  CHECK(on_host(dense_block(), {model::GraphModule::kAttention}).selective_compute == Approx(5 * 10e-3));
}

TEST_CASE("routed experts are issued one by one, also beside captured blocks") {
  const BlockTime device = on_host(expert_block(), model::kNoGraphs, 0_ns);
  const BlockTime captured = on_host(expert_block(), model::kGraphsOfBlocks);
  CHECK(captured.compute.forward > 10e-3 * 8);
  CHECK(captured.compute.backward > 10e-3 * 16);
  CHECK(captured.compute.forward < on_host(expert_block(), model::kNoGraphs).compute.forward);
  CHECK(on_host(expert_block(), model::kGraphOfStep).compute.forward == Approx(device.compute.forward));
}

TEST_CASE("one kernel with the products of all experts is issued once") {
  cluster::GpuType gpu = round_gpu();
  gpu.compute.host_issue = 10'000'000_ns;
  model::Job job;
  const auto compute = [&] { return block_time(expert_block(), job, Degrees{}, 1, shape_of(gpu, 1, 1)).compute; };
  const Passes each = compute();
  job.grouped_gemm = true;
  const Passes one = compute();
  CHECK(each.forward - one.forward == Approx(10e-3 * 8));
  CHECK(each.backward - one.backward == Approx(10e-3 * 16));
}

// DeepEP's repository, docs of HybridEP: microseconds of one dispatch of 4,096 tokens of 7,168 values in bf16 to 8 of
// 256 experts on nodes of eight H100. Experts drawn from all nodes would need more of the cards of four and eight nodes
// than these have; with DeepSeek-V3's groups, four of eight, times are those that were published.
TEST_CASE("exchanges of tokens take about what was published for H100") {
  struct Published {
    int nodes;
    double all_to_all;
    double hybrid;
  };
  constexpr std::array<Published, 4> kPublished{{{1, 1265, 661}, {2, 5774, 1485}, {4, 8059, 3064}, {8, 9164, 4626}}};
  constexpr double kBytes = 4096.0 * 7168 * 2;
  constexpr double kExperts = 8;
  for (const auto& [nodes, all_to_all, hybrid] : kPublished) {
    const cluster::DeviceShape shape = h100_nodes(nodes);
    const Group group{8, nodes, 1};
    const double copies = 1e6 * collective_seconds(Collective::kAllToAll, kExperts * kBytes, group, shape);
    CHECK(copies == Approx(all_to_all).epsilon(0.1));
    const double once = 1e6 * dispatch_seconds(kBytes, {kExperts}, group, shape);
    if (nodes > 1)
      CHECK(1e6 * dispatch_seconds(kBytes, {kExperts, 8, 4}, group, shape) == Approx(hybrid).epsilon(0.11));
    CHECK(once > 0.9 * hybrid);
    CHECK(once < 1.4 * hybrid);
    CHECK(once < copies);
  }
}

TEST_CASE("a token that goes to one expert is sent once by any dispatcher") {
  const cluster::DeviceShape shape = h100_nodes(2);
  CHECK(dispatch_seconds(1e9, {1}, {8, 2, 1}, shape) ==
        Approx(collective_seconds(Collective::kAllToAll, 1e9, {8, 2, 1}, shape)).epsilon(0.01));
  CHECK(dispatch_seconds(1e9, {1}, {1, 1, 1}, shape) == 0);
}

TEST_CASE("tokens whose experts are in few groups go to few places") {
  // Two groups on two nodes, one of them chosen: half of the tokens stay.
  CHECK(other_places(2, {8, 2, 1}) == Approx(0.5));
  // One expert is one place, whatever group it is in.
  CHECK(other_places(8, {1, 8, 4}) == Approx(7.0 / 8));
  CHECK(other_places(16, {1, 8, 4}) == Approx(15.0 / 16));
  // From all groups: as without groups.
  CHECK(other_places(8, {6, 8, 8}) == Approx(other_places(8, {6})));
  CHECK(other_places(8, {8, 8, 4}) < other_places(8, {8, 8, 6}));
  CHECK(other_places(1, {8, 8, 4}) == 0);
  // Of more groups than can be counted as many are chosen as in the mean.
  CHECK(other_places(8, {8, 64, 32}) == Approx(other_places(8, {8, 4096, 2048})).epsilon(0.05));
}

TEST_CASE("exchanges of experts beside another microbatch leave what sticks out and a loss") {
  model::Job job;
  const Degrees degrees{.dp = 8, .ep = 8};
  const cluster::DeviceShape shape = h100_nodes(1);
  const auto time_of = [&] { return block_time(expert_block(), job, degrees, 8, shape); };
  const BlockTime exposed = time_of();
  job.overlap_experts = true;
  const BlockTime hidden = time_of();
  CHECK(hidden.compute.forward == exposed.compute.forward);
  CHECK(hidden.communication.forward < exposed.communication.forward);
  CHECK(hidden.communication.forward >= kOverlapLoss * exposed.communication.forward * 0.99);
  CHECK(hidden.communication.forward + hidden.alone.forward == Approx(exposed.communication.forward));
  CHECK(hidden.communication.backward + hidden.alone.backward == Approx(exposed.communication.backward));
  CHECK(exposed.alone.forward + exposed.alone.backward == 0);
  job.expert_dispatch = ExpertDispatch::kDeepEp;
  job.overlap_experts = false;
  CHECK(time_of().communication.forward < exposed.communication.forward);
  job.routing_imbalance = 2;
  CHECK(time_of().compute.forward > exposed.compute.forward);
}

TEST_CASE("the only microbatch of an iteration has no passes of another beside its exchanges") {
  const Degrees degrees{.dp = 8, .ep = 8};
  const cluster::DeviceShape shape = h100_nodes(1);
  model::Model model = model_of(expert_block(), 3, 32'000);
  const model::SliceSignature slice = model::signature(model, 0, 3);
  const auto iteration = [&](bool beside, int microbatches) {
    model.job.overlap_experts = beside;
    const auto units = unit_costs(model, shape, degrees, 64);
    REQUIRE(units);
    const StageCost cost = stage_cost(*units, slice, {});
    return (cost.forward + cost.backward) * microbatches + cost.optimizer_step;
  };
  CHECK(iteration(true, 1).as_double() == Approx(iteration(false, 1).as_double()).epsilon(1e-6));
  CHECK(iteration(true, 2) < iteration(false, 2));
}

TEST_CASE("each step of a ring is a kernel of its own, added to those before it") {
  DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  rates.forward_extra_keys = 500;
  AttentionCore core{1, 8, 8, 4096, 4096, 2048, 128, 128, false};
  const Passes whole = fused_attention_seconds(core, 2, rates);
  core.steps = 2;
  const Passes ring = fused_attention_seconds(core, 2, rates);
  const double products = 2.0 * 8 * 4096 * (2048 + 2 * 500) * 256 / 80e12;
  const double merged = 4096.0 * 8 * 128 * (2 + 8) / 1000e9;
  CHECK(ring.forward == Approx(products + merged));
  CHECK(ring.forward > whole.forward);
  CHECK(ring.backward > whole.backward);
}

TEST_CASE("products hide all but the first chunk of the exchanges of tp") {
  model::Job job;
  const Degrees degrees{.tp = 4, .sequence_parallel = true};
  const cluster::DeviceShape shape = h100_nodes(1);
  cluster::DeviceShape four = shape;
  four.per_node = 4;
  const BlockTime exposed = block_time(dense_block(), job, degrees, 8, four);
  job.overlap_tp = true;
  const BlockTime hidden = block_time(dense_block(), job, degrees, 8, four);
  CHECK(hidden.tensor.forward >= exposed.tensor.forward / 4 * 0.999);
  CHECK(hidden.tensor.forward < exposed.tensor.forward);
  CHECK(hidden.tensor.backward < exposed.tensor.backward);
  four.methods.tensor_forward_alone = true;
  const BlockTime forward = block_time(dense_block(), job, degrees, 8, four);
  CHECK(forward.tensor.forward == hidden.tensor.forward);
  CHECK(forward.tensor.backward == exposed.tensor.backward);
}

TEST_CASE("selective recompute runs the job's modules again") {
  using enum model::RecomputeModule;
  const auto again = [](const model::BlockType& block, model::RecomputeModules modules, int ep = 1) {
    model::Job job;
    job.recompute_modules = modules;
    Degrees degrees;
    degrees.dp = degrees.ep = ep;
    return block_time(block, job, degrees, 1, shape_of(round_gpu(), 1, ep)).selective_compute;
  };
  const model::BlockType dense = dense_block();
  const model::BlockType moe = expert_block();
  CHECK(again(dense, {kExperts, kExpertActivation, kSharedExperts, kLatentUp}) == 0);
  CHECK(again(moe, {kFeedForward}) == 0);
  // All of a dense block but its norms, its projections and what is added to it.
  const BlockTime whole = block_time(dense, {}, {}, 1, shape_of(round_gpu(), 1, 1));
  CHECK(again(dense, {kFeedForward}) > 0.5 * whole.compute.forward);
  CHECK(again(dense, {kFeedForward, kCoreAttention, kNorms}) < whole.compute.forward);
  CHECK(again(dense, {kFeedForward, kNorms}) == Approx(again(dense, {kFeedForward}) + again(dense, {kNorms})));
  // Experts are sent their tokens again.
  CHECK(again(moe, {kExperts}) > again(moe, {kExpertActivation}));
  // Parts of what runs again run once more when that has its backward pass.
  CHECK(again(moe, {kExperts, kExpertActivation}) == Approx(again(moe, {kExperts}) + again(moe, {kExpertActivation})));
  CHECK(again(moe, {kExperts}, 2) > 0.5 * again(moe, {kExperts}));
}

TEST_CASE("kernels of the loss read and write the logits as often as they are fused") {
  using enum model::FusedLoss;
  model::Model model = model_of(dense_block(), 2, 32'000);
  const auto time_of = [&](bool kernels, bool in_place, model::FusedLoss loss) {
    model.job.fused_kernels = kernels;
    model.job.in_place_loss = in_place;
    model.job.fused_loss = loss;
    return head_time(model, Degrees{}, 1, shape_of(round_gpu(), 1, 1)).compute;
  };
  const double logits = static_cast<double>(model.job.sequence_length) * 32'000;
  const Passes least = time_of(true, true, kTransformerEngine);
  const auto takes_longer = [&](const Passes& other, double forward, double backward) {
    CHECK(other.forward - least.forward == Approx(logits * forward / 1e12));
    CHECK(other.backward - least.backward == Approx(logits * backward / 1e12));
  };
  // Bytes a logit: 6 forward and 4 backward in one kernel; Megatron-LM's operators compiled, or one after the other.
  takes_longer(time_of(true, true, kNative), 22 - 6, 6 - 4);
  takes_longer(time_of(true, true, kNone), 26 - 6, 14 - 4);
  takes_longer(time_of(false, false, kNone), 26 - 6, 14 - 4);
  // A compiler has all of PyTorch's loss.
  CHECK(time_of(true, false, kNone).forward == Approx(least.forward));
}

TEST_CASE("biases of experts are weighed and added behind their second product, by kernels of their own") {
  // One sample of 512 tokens, two experts each: 1024 rows of 1024 values of 2 bytes, moved 6 and 8 times.
  model::BlockType block = expert_block();
  block.feed_forward.gated = false;
  const Passes without = on_host(block, model::kNoGraphs, 0_ns).compute;
  block.feed_forward.bias = true;
  const Passes with = on_host(block, model::kNoGraphs, 0_ns).compute;
  const DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  CHECK(with.forward - without.forward == Approx(streaming_seconds(1024.0 * 1024 * 2 * 6, rates)));
  CHECK(with.backward - without.backward == Approx(streaming_seconds(1024.0 * 1024 * 2 * 8, rates)));
  model::BlockType dense = dense_block();
  const Passes plain = on_host(dense, model::kNoGraphs, 0_ns).compute;
  dense.feed_forward.bias = true;
  CHECK(on_host(dense, model::kNoGraphs, 0_ns).compute.forward == plain.forward);  // a product adds it
}

TEST_CASE("GPT-OSS clamps its gates and scales its rotary positions by kernels of their own") {
  const auto block_of = [](bool bias) {
    model::BlockType block = expert_block();
    block.feed_forward.bias = bias;
    return block;
  };
  REQUIRE(block_of(true).feed_forward.gated);
  const Passes without = on_host(block_of(false), model::kNoGraphs, 0_ns).compute;
  const Passes with = on_host(block_of(true), model::kNoGraphs, 0_ns).compute;
  const DeviceRates rates = device_rates(round_gpu(), DType::kBf16);
  const auto moved = [&](double values, double times) { return streaming_seconds(values * 2 * times, rates); };
  // Gate and up of 1024 rows, queries and keys of 512 tokens, and the bias itself.
  const model::BlockType block = block_of(true);
  const double clamped = 1024.0 * 2 * static_cast<double>(block.feed_forward.expert_hidden);
  const double turned = 512.0 * (block.attention.heads + block.attention.kv_heads) * block.attention.head_dim;
  const double biased = 1024.0 * 1024;
  CHECK(with.forward - without.forward == Approx(moved(clamped, 4) + moved(turned, 12 - 2) + moved(biased, 6)));
  CHECK(with.backward - without.backward == Approx(moved(clamped, 7.5) + moved(turned, 17 - 2) + moved(biased, 8)));
}

TEST_CASE("GPT-OSS's own kernels read values one by one, which memory is too fast for") {
  const auto time_of = [](bool bias, const model::Job& job, double values_per_second) {
    model::BlockType block = expert_block();
    block.feed_forward.bias = bias;
    cluster::DeviceShape shape = shape_of(round_gpu(), 1, 1);
    shape.device.compute.unvectorized_values = values_per_second;
    return block_time(block, job, Degrees{}, 1, shape).compute;
  };
  const auto added = [&](const model::Job& job, double rate) {
    Passes more = time_of(true, job, rate);
    const Passes without = time_of(false, job, rate);
    more.forward -= without.forward;
    more.backward -= without.backward;
    return more;
  };
  const model::BlockType block = expert_block();
  const double halves = 1024.0 * 2 * static_cast<double>(block.feed_forward.expert_hidden);
  const double turned = 512.0 * (block.attention.heads + block.attention.kv_heads) * block.attention.head_dim;
  const double biased = 1024.0 * 1024;
  constexpr double kByte = 1 / 1e12, kValue = 1 / 10e9;  // seconds
  model::Job job;
  // 10 G values a second: each takes longer than its bytes. Beside them what vectorized kernels move, 2 bytes a value.
  const Passes slow = added(job, 10e9);
  CHECK(slow.forward == Approx(halves * (1 * kValue + 2 * 2 * kByte) + turned * (3.5 * kValue + (5 - 2) * 2 * kByte) +
                               biased * (1 * kValue + 5 * 2 * kByte)));
  CHECK(slow.backward ==
        Approx(halves * (2.5 * kValue + 2.75 * 2 * kByte) + turned * (2.5 * kValue + (12 - 2) * 2 * kByte) +
               biased * (2 * kValue + 4 * 2 * kByte)));
  // Weights of routes in fp32: the bias in fp32 as well.
  job.expert_dispatch = model::ExpertDispatch::kDeepEp;
  const Passes wide = added(job, 10e9);
  CHECK(wide.forward - slow.forward == Approx(biased * (1 * kValue + (7 - 5) * 2 * kByte)));
  CHECK(wide.backward - slow.backward == Approx(biased * (1 * kValue + (9 - 4) * 2 * kByte)));
  // Graphs of whole steps hold one operator for all of it but the positions.
  job.fused_kernels = true;
  job.cuda_graphs = model::kGraphOfStep;
  const Passes fused = added(job, 10e9);
  CHECK(fused.forward == Approx(turned * (3.5 * kValue + (5 - 2) * 2 * kByte)));
  // Without a rate memory limits them alone.
  job = {};
  CHECK(added(job, 0).forward == Approx(added(job, 1e15).forward));
}
