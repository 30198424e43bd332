// The rules by which what a publication leaves out is inferred.
#include "infer.hpp"
#include "support/catch.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/cost/communication.hpp"
#include "unit/accuracy/fixtures.hpp"

using namespace tangram;
using namespace tangram::accuracy;

namespace {

constexpr double kGigabit = 1e9 / 8;

const cluster::GpuType& device(const std::string& name) {
  const cluster::GpuType* found = find_device(name, cluster::catalogue());
  REQUIRE(found != nullptr);
  return *found;
}

/// Gbit/s of a node of 8 that is described so.
double gigabits(const std::string& interconnect, const std::string& type = "A100-80GB-SXM") {
  Measurement m;
  m.interconnect = interconnect;
  return node_network(m, {type, 16, 8}, device(type), 8).bandwidth.value() / kGigabit;
}

DType precision(const std::string& printed, const std::string& gpu, const std::string& notes = "") {
  Measurement m;
  m.precision = printed;
  m.notes = notes;
  return find_precision(m, device(gpu));
}

model::Model model_of(const ModelFacts& facts, const std::string& gpu = "A100-80GB-SXM") {
  Measurement m = fixtures::complete();
  m.model = facts;
  auto model = find_model(m, device(gpu));
  if (!model) FAIL(model.error().front().message);
  return std::move(*model);
}

std::string model_refusal(const ModelFacts& facts) {
  Measurement m = fixtures::complete();
  m.model = facts;
  const auto model = find_model(m, device("A100"));
  REQUIRE_FALSE(model);
  return model.error().front().message;
}

}  // namespace

TEST_CASE("networks are read as they are printed") {
  CHECK(gigabits("Selene: NVLink3/NVSwitch, 8x200 Gb/s HDR IB per node") == Approx(1600));
  CHECK(gigabits("8 x 200 Gb/s") == Approx(1600));
  CHECK(gigabits("1600 Gb/s per node RoCE") == Approx(1600));
  CHECK(gigabits("NVSwitch in node; 800 Gb/s per node IB") == Approx(800));
  CHECK(gigabits("12.5 Gb/s") == Approx(12.5));
  CHECK(gigabits("400 Gb/s RDMA per GPU") == Approx(8 * 400));
  CHECK(gigabits("NVLink4-way in node, 4 Omni-Path links per node") == Approx(400));
  // A measured rate is what collectives reach: the raw rate is more. GiB are 2^30 bytes; the largest counts.
  CHECK(gigabits("measured 22.9 GB/s (1 GPU) to 92.6 GB/s (4 GPUs) inter-node") ==
        Approx(92.6 * 8 / cost::kNetworkShare));
  CHECK(gigabits("~100 Gb/s NIC per node (measured 10.6 GiB/s)") ==
        Approx(10.6 * 1.073741824 * 8 / cost::kNetworkShare));
  CHECK(gigabits("NVLink 300 GB/s; 200 Gb/s") == Approx(200));
}

TEST_CASE("unread networks are those of the vendor's reference system") {
  CHECK(gigabits("") == Approx(1600));
  CHECK(gigabits("Selene") == Approx(1600));
  CHECK(gigabits("0 Gb/s") == Approx(1600));
  CHECK(gigabits("", "V100-16GB-SXM") == Approx(400));
  CHECK(gigabits("", "H100") == Approx(3200));
  CHECK(gigabits("", "B200") == Approx(3200));
  CHECK(gigabits("", "B300") == Approx(6400));
  CHECK(gigabits("", "GH200-96GB") == Approx(1600));
  CHECK(gigabits("", "MI300X") == Approx(3200));
  CHECK(gigabits("", "RTX 3090") == Approx(100));
  CHECK(gigabits("", "A100-80GB-PCIe") == Approx(100));
}

TEST_CASE("a cloud instance that a group names has its own network") {
  CHECK(gigabits("8x200 Gb/s", "V100-16GB-SXM (p3.8xlarge)") == Approx(10));
  CHECK(gigabits("", "T4-16GB (g4dn.12xlarge)") == Approx(50));
  CHECK(gigabits("", "H100 (p5.48xlarge)") == Approx(3200));
}

TEST_CASE("texts of networks may be of any length") {
  CHECK(gigabits("100 Gb/s" + std::string(300'000, ' ')) == Approx(100));
  CHECK(gigabits(std::string(300'000, '9')) == Approx(1600));
  CHECK(gigabits(std::string(900, '9') + " Gb/s") == Approx(1600));  // no quantity
}

TEST_CASE("slow networks are TCP, fast ones are not") {
  Measurement m;
  const auto latency = [&](const char* text) {
    m.interconnect = text;
    return node_network(m, {"A100", 8, 8}, device("A100"), 8).latency;
  };
  CHECK(latency("100 Gb/s") == Nanoseconds(30'000));
  CHECK(latency("200 Gb/s") == Nanoseconds(5'000));
}

TEST_CASE("a rack of Grace Blackwell has the network of all its trays") {
  Measurement m;
  const auto rate = [&](const char* text, int per_node) {
    m.interconnect = text;
    const GpuGroup group{"GB200", 512, per_node};
    return node_network(m, group, device("GB200"), gpus_per_node(group, device("GB200"))).bandwidth.value() / kGigabit;
  };
  CHECK(rate("4x400 Gb/s", 4) == Approx(16 * 4 * 400));  // of 64 GPUs on 16 trays
  CHECK(rate("400 Gb/s per GPU", 4) == Approx(64 * 400));
  CHECK(rate("1600 Gb/s per node", 4) == Approx(16 * 1600));
  CHECK(rate("4x400 Gb/s", 0) == Approx(4 * 400));  // of what is not printed
}

TEST_CASE("models with gates have no dropout, others of their time do") {
  Measurement m = fixtures::complete();
  const auto drops = [&](bool gated, const char* gpu) {
    m.model.gated = gated;
    return find_model(m, device(gpu))->job.dropout;
  };
  CHECK(drops(false, "A100"));
  CHECK_FALSE(drops(true, "A100"));
  CHECK_FALSE(drops(false, "H100"));
}

TEST_CASE("a hybrid model is found by its name, and has to have the sizes that are printed") {
  Measurement m;
  m.sequence = 8192;
  m.global_batch = 512;
  m.model.name = "Nemotron_3_Nano";
  m.model.dims.hidden = 2688;
  m.model.dims.layers = 52;
  m.model.dims.experts = 128;
  m.model.dims.experts_per_token = 6;
  const auto found = find_model(m, device("GH200-96GB"));
  REQUIRE(found.has_value());
  CHECK(found->block_count() == 52);
  CHECK(found->total_parameters() / 100'000'000 == 315);
  m.model.dims.layers = 56;
  const auto other = find_model(m, device("GH200-96GB"));
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().front().message ==
        "layers of \"Nemotron_3_Nano\" are printed as 56, and are 52 in configs/models");
}

TEST_CASE("nodes have the GPUs printed, or the vendor's") {
  CHECK(gpus_per_node({"A100", 16, 4}, device("A100")) == 4);
  CHECK(gpus_per_node({"A100", 16, 0}, device("A100")) == 8);
  CHECK(gpus_per_node({"A100", 2, 8}, device("A100")) == 2);
  CHECK(gpus_per_node({"GH200-96GB", 64, 0}, device("GH200-96GB")) == 4);
  // NVLink of Grace Blackwell reaches over 72: 64 whole, 256 as 4 x 64, 71 of 142.
  CHECK(gpus_per_node({"GB300", 64, 4}, device("GB300")) == 64);
  CHECK(gpus_per_node({"GB300", 256, 4}, device("GB300")) == 64);
  CHECK(gpus_per_node({"GB200", 142, 4}, device("GB200")) == 71);
  CHECK(gpus_per_node({"GB300", 0, 4}, device("GB300")) == 0);
}

TEST_CASE("GPUs of a node are joined by their fabric, else by the host bus") {
  CHECK(node_fabric({}, device("A100")) == device("A100").peer_link);
  CHECK(node_fabric({}, device("T4")) == device("T4").pcie);
  // Four links of 25 GB/s in one direction instead of twelve.
  Measurement four;
  four.interconnect = "NVLink4-way in node, 4 Omni-Path links per node";
  CHECK(node_fabric(four, device("A100")).bandwidth.value() == 100e9);
  CHECK(node_fabric(four, device("A100")).latency == device("A100").peer_link.latency);
  CHECK(node_fabric(four, device("T4")) == device("T4").pcie);
}

TEST_CASE("precision is the first one printed") {
  CHECK(precision("fp16", "A100") == DType::kFp16);
  CHECK(precision("amp_bf16", "A100") == DType::kBf16);
  CHECK(precision("BF16", "A100") == DType::kBf16);
  CHECK(precision("fp16 (1B bf16)", "A100") == DType::kFp16);
  CHECK(precision("MXFP8", "B200") == DType::kFp8);
  CHECK(precision("NVFP4", "B200") == DType::kFp4);
  CHECK(precision("fp8-rowwise", "H100") == DType::kFp8);
  CHECK(precision("", "A100", "GPU variant and fp16 are inferred") == DType::kFp16);
  CHECK(precision("bf16", "A100", "fp16") == DType::kBf16);
  // Nothing printed: bf16 where the matrix units have it.
  CHECK(precision("", "A100") == DType::kBf16);
  CHECK(precision("", "V100") == DType::kFp16);
  // fp32 products run as tf32 where they can.
  CHECK(precision("fp32", "A100") == DType::kTf32);
  CHECK(precision("fp32", "V100") == DType::kFp32);
}

TEST_CASE("how values fit 8 bits is printed, or the software's") {
  using model::Fp8Recipe;
  const auto job = [](const std::string& precision, const std::string& source) {
    Measurement m = fixtures::complete();
    m.precision = precision;
    m.source = source;
    const auto model = find_model(m, device("B200"));
    REQUIRE(model);
    return model->job;
  };
  const std::string bridge = "Megatron-Bridge performance summary, 25.11";
  CHECK(job("FP8-MX", bridge).fp8_recipe == Fp8Recipe::kMxfp8);
  CHECK(job("FP8", bridge).fp8_recipe == Fp8Recipe::kTensorwise);
  CHECK(job("FP8 current scaling", "Primus").fp8_recipe == Fp8Recipe::kTensorwise);
  CHECK(job("fp8 blockwise over bf16", "Megatron-LM").fp8_recipe == Fp8Recipe::kBlockwise);
  CHECK(job("fp8-rowwise", "torchtitan").fp8_recipe == Fp8Recipe::kBlockwise);
  CHECK(job("fp8 (TE delayed scaling, hybrid)", "NVIDIA DGX Cloud").fp8_recipe == Fp8Recipe::kDelayed);
  CHECK(job("fp8", "Megatron-LM").fp8_recipe == Fp8Recipe::kDelayed);
  // Recipes of NeMo and Megatron-Bridge keep parameters narrow, Transformer Engine's layers their inputs.
  CHECK(job("FP8-CS", bridge).narrow_parameters);
  CHECK_FALSE(job("fp8", "torchtitan").narrow_parameters);
  CHECK_FALSE(job("fp8", "NVIDIA DGX Cloud, PaxML").narrow_parameters);
  // FSDP2 gathers tensors of one scale in 8 bits.
  CHECK(job("fp8 tensorwise", "torchtitan").narrow_parameters);
  CHECK_FALSE(job("fp8 rowwise", "torchtitan").narrow_parameters);
  CHECK(job("FP8-CS", bridge).narrow_inputs);
  CHECK_FALSE(job("fp8", "torchtitan").narrow_inputs);
  CHECK(job("NVFP4", "torchtitan").narrow_inputs);
  CHECK(job("FP8 current scaling (dense layers), bf16 experts", bridge).wide_experts);
}

TEST_CASE("fused attention is printed, or of its time") {
  Measurement m;
  model::Model plain;
  plain.types.emplace_back().feed_forward.gated = false;
  const auto fused = [&](const char* gpu) { return uses_fused_attention(m, device(gpu), plain); };
  CHECK_FALSE(fused("A100"));
  CHECK(fused("H100"));
  CHECK(fused("MI300X"));
  m.zero = 1;
  CHECK_FALSE(fused("A100"));
  // Models with gates are younger than FlashAttention.
  model::Model gated = plain;
  gated.types.front().feed_forward.gated = true;
  CHECK(uses_fused_attention(m, device("A100"), gated));
  m.zero = 2;
  CHECK(fused("A100"));
  m.zero.reset();
  m.sharding_group = 8;
  CHECK(zero_stage(m) == 3);
  CHECK(fused("A100"));
  m.flash_attention = false;
  CHECK_FALSE(fused("H100"));
  m.zero = 1;
  CHECK(zero_stage(m) == 1);
}

TEST_CASE("where no stage of ZeRO is printed, Megatron-Bridge's is 1") {
  Measurement m;
  CHECK(zero_stage(m) == 0);
  m.source = "NVIDIA Megatron Bridge performance summary, 26.02";
  CHECK(zero_stage(m) == 1);
  m.sharding_group = 64;
  CHECK(zero_stage(m) == 3);
  m.zero = 0;
  CHECK(zero_stage(m) == 0);
}

TEST_CASE("fused kernels do not take 4-byte activations") {
  Measurement m = fixtures::complete();
  m.flash_attention = true;
  CHECK(find_model(m, device("A100"))->job.flash_attention);
  m.precision = "fp32";
  CHECK_FALSE(find_model(m, device("A100"))->job.flash_attention);
}

TEST_CASE("the attention kernel is printed, or what the software is known to take") {
  Measurement m = fixtures::complete();
  const auto kernel = [&](const char* gpu) { return find_model(m, device(gpu))->job.attention_kernel; };
  CHECK(kernel("H100") == model::AttentionKernel::kFlash2);
  m.source = "NVIDIA NeMo performance summary";
  CHECK(kernel("H100") == model::AttentionKernel::kNative);
  CHECK(kernel("A100") == model::AttentionKernel::kFlash2);
  m.attention_kernel = "flash-2";
  CHECK(kernel("H100") == model::AttentionKernel::kFlash2);
  m.attention_kernel = "native";
  CHECK(kernel("A100") == model::AttentionKernel::kNative);
  m.attention_kernel.clear();
  m.source = "XTuner";
  CHECK(kernel("A100") == model::AttentionKernel::kNative);
}

TEST_CASE("moments of Adam are as printed, or as Megatron-Bridge's recipes have them") {
  Measurement m = fixtures::complete();
  const auto bytes = [&] { return find_model(m, device("H100"))->job.optimizer.state_bytes_per_parameter; };
  CHECK(bytes() == 12);
  m.moment_dtype = "bf16";
  CHECK(bytes() == 8);
  m.moment_dtype = "fp8";
  CHECK(bytes() == 6);
  m.state_bytes = 4;  // neither master copies nor moments of 32 bits
  CHECK(bytes() == 4);
  m.state_bytes = 0;
  m.moment_dtype.clear();
  m.source = "Megatron-Bridge's recipes";
  CHECK(bytes() == 12);
  m.model.name = "DeepSeek-V3";
  m.model.dims = {};
  const auto known = find_model(m, device("H100"));
  REQUIRE(known);
  CHECK(known->job.optimizer.state_bytes_per_parameter == 8);
}

TEST_CASE("kernels are fused by the vendor's software and by compilers") {
  Measurement m = fixtures::complete();
  const auto job = [&](const char* gpu) { return find_model(m, device(gpu))->job; };
  CHECK_FALSE(job("H100").fused_kernels);
  m.variant = "compile";
  CHECK(job("H100").fused_kernels);
  m.variant.clear();
  m.framework = "Megatron-LM";
  CHECK(job("H100").fused_kernels);
  CHECK_FALSE(job("A100").fused_kernels);
  CHECK_FALSE(job("H100").overlap_tp);
  m.framework = "NeMo";
  CHECK(job("H100").overlap_tp);
}

TEST_CASE("CUDA graphs capture what is printed") {
  Measurement m = fixtures::complete();
  const auto graphs = [&](const char* by, std::vector<std::string> scope) {
    m.graphs = {by, std::move(scope)};
    return find_model(m, device("H100"))->job.cuda_graphs;
  };
  CHECK(graphs("", {}) == model::kNoGraphs);
  CHECK(graphs("none", {"full_iteration"}) == model::kNoGraphs);
  using enum model::GraphModule;
  CHECK(graphs("transformer_engine", {"attn", "moe_router", "moe_preprocess"}) ==
        model::CudaGraphs{kAttention, kRouter});
  CHECK(graphs("transformer_engine", {"mamba"}) == model::CudaGraphs{kRecurrence});
  CHECK(graphs("transformer_engine", {}) == model::kGraphsOfBlocks);
  CHECK(graphs("local", {"full_iteration"}) == model::kGraphOfStep);
  CHECK(graphs("local", {"layer"}) == model::kGraphsOfBlocks);
  m.source = "MLPerf Training v5.1";
  CHECK(graphs("", {}) == model::kGraphOfStep);
}

TEST_CASE("experts are one kernel where the software says so") {
  Measurement m = fixtures::complete();
  const auto grouped = [&] { return find_model(m, device("H100"))->job.grouped_gemm; };
  CHECK_FALSE(grouped());
  m.source = "torchtitan benchmarks";
  CHECK(grouped());
  m.source = "MoE training optimization with Primus, Qwen3-30B, Turbo";
  CHECK(grouped());
}

TEST_CASE("models in PyTorch's operators are eager unless they are compiled or say so") {
  Measurement m = fixtures::complete();
  const auto job = [&] { return find_model(m, device("H100"))->job; };
  CHECK(job().eager_operators.empty());
  for (const char* trainer : {"torchtitan", "fms-fsdp (PyTorch FSDP)", "Hugging Face PEFT", "LitGPT (Lightning Fabric)",
                              "DeepSpeed (ms-swift, transformers)", "torchtune", "PaddleNLP (Paddle 2.5.1)"}) {
    m.framework = trainer;
    m.variant = "";
    CHECK(job().eager_operators == model::kAllEager);
    CHECK(job().fused_kernels);  // products are those of today
    m.variant = "compile";
    CHECK(job().eager_operators.empty());
  }
  m.variant = "";
  m.kernels.fused = true;
  CHECK(job().eager_operators.empty());
  m.kernels = {};
  m.kernels.eager = model::EagerOperators{model::EagerOperator::kGates};  // as printed
  CHECK(job().eager_operators == model::EagerOperators{model::EagerOperator::kGates});
  m.kernels = {};
  m.framework = "";
  m.source = "NVIDIA NeMo AutoModel performance summary";
  CHECK(job().eager_operators == model::kAllEager);
  CHECK(job().grouped_gemm);
  CHECK_FALSE(job().overlap_gather);
}

TEST_CASE("gradients are of the type that is printed, of 16 bits in recipes for performance, else of 32") {
  Measurement m = fixtures::complete();
  m.precision = "bf16";
  const auto bytes = [&](const char* source, const char* printed) {
    m.source = source;
    m.gradient_dtype = printed;
    return find_model(m, device("H100"))->job.gradient_bytes;
  };
  CHECK(bytes("somebody's trainer", "") == 4);
  CHECK(bytes("somebody's trainer", "bf16") == 2);
  CHECK(bytes("NVIDIA Megatron Bridge performance summary, 26.02", "") == 2);
  CHECK(bytes("Megatron Bridge model verification card, item pretrain_performance/GB200", "") == 2);
  CHECK(bytes("Megatron Bridge model verification card, item sft/GB200", "") == 4);
  CHECK(bytes("NVIDIA Megatron Bridge performance summary, 26.02", "fp32") == 4);
  CHECK(bytes("NVIDIA NeMo Framework performance summary, 25.04 NeMo Container", "") == 2);
  CHECK(bytes("NVIDIA NeMo AutoModel performance summary", "") == 4);
}

TEST_CASE("how tokens reach their experts is printed") {
  Measurement m = fixtures::complete();
  const auto job = [&] { return find_model(m, device("H100"))->job; };
  CHECK(job().expert_dispatch == model::ExpertDispatch::kAllToAll);
  CHECK(job().routing_imbalance == model::Job{}.routing_imbalance);
  m.routing = {"deepep", "forced"};
  m.overlap = std::vector<std::string>{"overlap_moe_expert_parallel_comm"};
  CHECK(job().expert_dispatch == model::ExpertDispatch::kDeepEp);
  CHECK(job().overlap_experts);
  CHECK(job().routing_imbalance == 1);
  m.routing = {"hybridep", "natural"};
  CHECK(job().expert_dispatch == model::ExpertDispatch::kHybridEp);
  CHECK(job().routing_imbalance > 1.15);
}

TEST_CASE("what context parallelism exchanges is printed, or follows from the software") {
  using enum model::ContextExchange;
  Measurement m = fixtures::complete();
  const auto exchange = [&] { return find_model(m, device("H100"))->job.context_exchange; };
  CHECK(exchange() == kRing);
  m.context_exchange = "a2a";
  CHECK(exchange() == kAllToAll);
  m.context_exchange = "all_gather";
  CHECK(exchange() == kAllGather);
  m.context_exchange.clear();
  m.source = "XTuner acceleration benchmark";
  CHECK(exchange() == kAllToAll);
  m.context_exchange = "p2p";
  CHECK(exchange() == kRing);
}

TEST_CASE("what software recomputes, gathers ahead and fuses") {
  using enum model::RecomputeModule;
  Measurement m = fixtures::complete();
  const auto job = [&] { return find_model(m, device("H100"))->job; };
  m.recompute = "selective";
  CHECK(job().recompute_modules == model::RecomputeModules{kCoreAttention});
  m.recompute_modules = {"moe", "layernorm", "what nobody knows"};
  CHECK(job().recompute_modules == model::RecomputeModules{kExperts, kNorms});
  m.source = "somebody's trainer";
  CHECK_FALSE(job().overlap_gather);
  CHECK_FALSE(job().in_place_loss);
  CHECK(job().fused_loss == model::FusedLoss::kNone);
  m.source = "MosaicML llm-foundry MPT training benchmarks";
  CHECK(job().fused_loss == model::FusedLoss::kTransformerEngine);
  m.source = "Megatron-Bridge performance summary";
  CHECK(job().overlap_gather);
  CHECK(job().gradient_bucket == 128LL << 20);
  CHECK(job().in_place_loss);
  CHECK(job().fused_loss == model::FusedLoss::kTransformerEngine);
  m.source = "NVIDIA Megatron Bridge performance summary, 25.09 NeMo Container";
  m.precision = "FP8-MX";
  CHECK_FALSE(job().overlap_gather);
  m.precision = "FP8-CS";
  CHECK(job().overlap_gather);
  m.overlap.emplace();  // printed: none
  CHECK_FALSE(job().overlap_gather);
  m.source = "somebody's trainer";
  m.overlap = std::vector<std::string>{"param_gather"};
  CHECK(job().overlap_gather);
}

TEST_CASE("adapters freeze the weights of blocks") {
  Measurement m = fixtures::complete();
  CHECK(find_model(m, device("H100"))->types.front().gradients == model::Gradients{});
  m.task = "LoRA fine-tune";
  CHECK(find_model(m, device("H100"))->types.front().gradients == model::Gradients{false, true});
}

TEST_CASE("samples are packed as printed, and of SQuAD in NVIDIA's recipes for fine-tuning") {
  Measurement m = fixtures::complete();
  const auto packed = [&] { return find_model(m, device("H100"))->types.front().attention.packed_length; };
  m.source = "NVIDIA DGX Cloud benchmarking recipes v25.02";
  CHECK(packed() == 0);
  m.task = "SFT";
  CHECK(packed() == 180);
  m.task = "LoRA fine-tune";
  CHECK(packed() == 180);
  m.packing.mean = 700;
  CHECK(packed() == 700);
  m.packing = {};
  m.source = "somebody's trainer";
  CHECK(packed() == 0);
}

TEST_CASE("sequence parallelism is printed, or of its time where stages are alike") {
  Measurement m;
  CHECK_FALSE(uses_sequence_parallelism(m, device("A100")));
  CHECK(uses_sequence_parallelism(m, device("H100")));
  m.stage_replicas = {{{"H100", 2}}};
  CHECK_FALSE(uses_sequence_parallelism(m, device("H100")));
  m.sequence_parallel = true;
  CHECK(uses_sequence_parallelism(m, device("V100")));
}

TEST_CASE("recompute is full, selective or none") {
  Measurement m;
  const auto mode = [&](const char* text) {
    m.recompute = text;
    return find_recompute(m);
  };
  CHECK(mode("") == model::RecomputeMode::kNone);
  CHECK(mode("none") == model::RecomputeMode::kNone);
  CHECK(mode("full") == model::RecomputeMode::kFull);
  CHECK(mode("selective") == model::RecomputeMode::kSelective);
  CHECK(mode("selective-op") == model::RecomputeMode::kSelective);
}

TEST_CASE("tensor parallelism overlaps where the variant says so") {
  Measurement m = fixtures::complete();
  CHECK_FALSE(find_model(m, device("H100"))->job.overlap_tp);
  m.variant = "compile, async TP";
  CHECK(find_model(m, device("H100"))->job.overlap_tp);
  m.variant = "compile+float8+asyncTP";
  CHECK(find_model(m, device("H100"))->job.overlap_tp);
}

TEST_CASE("attention kernels are those of the time of the software") {
  Measurement m = fixtures::complete();
  const auto extra_keys = [&](const char* gpu, const char* source) {
    m.source = source;
    const std::vector<cluster::GpuType> devices = devices_of_the_time(m, cluster::catalogue());
    return find_device(gpu, devices)->compute.native_attention->forward_extra_keys;
  };
  const cluster::NativeAttention& today = device("GB200").compute.native_attention.value();
  REQUIRE(today.early_forward_extra_keys > today.forward_extra_keys);
  CHECK(extra_keys("GB200", "Megatron Bridge performance summary, 25.11 NeMo Container") ==
        today.early_forward_extra_keys);
  CHECK(extra_keys("GB200", "NVIDIA DGX Cloud benchmarking recipes v25.05") == today.early_forward_extra_keys);
  CHECK(extra_keys("GB200", "MLPerf Training v5.1 NVIDIA") == today.early_forward_extra_keys);
  CHECK(extra_keys("GB200", "Megatron Bridge performance summary, 26.02 NeMo Container") == today.forward_extra_keys);
  const auto hopper = device("H100").compute.native_attention;
  CHECK(extra_keys("H100", "MLPerf Training v5.1 NVIDIA") == hopper->forward_extra_keys);
  CHECK(devices_of_the_time(m, cluster::catalogue()).size() == cluster::catalogue().size());
}

TEST_CASE("printed dimensions make the model, and conventions the rest") {
  ModelFacts facts;
  facts.name = "GPT \"small\" \\ 1";  // never part of a text that is parsed
  facts.hidden = 2048;
  facts.layers = 3;
  const model::Model gpt = model_of(facts);
  REQUIRE(gpt.types.size() == 1);
  CHECK(gpt.name == facts.name);
  CHECK(gpt.block_count() == 3);
  CHECK(gpt.vocabulary == 50304);
  CHECK(gpt.tied_embeddings);
  CHECK(gpt.types[0].attention.heads == 32);  // of 64
  CHECK(gpt.types[0].feed_forward.hidden == 8192);
  CHECK_FALSE(gpt.types[0].feed_forward.gated);
  CHECK(gpt.types[0].attention.qkv_bias);
  CHECK(gpt.job.sequence_length == 1024);
  CHECK(gpt.job.global_batch == 64);

  facts.name = "Llama of ours";
  facts.hidden = 4096;
  const model::Model llama = model_of(facts);
  CHECK(llama.vocabulary == 32000);
  CHECK_FALSE(llama.tied_embeddings);
  CHECK(llama.types[0].attention.heads == 32);         // of 128
  CHECK(llama.types[0].feed_forward.hidden == 11008);  // 8/3 h = 10922.7 to a multiple of 256
  CHECK(llama.types[0].feed_forward.gated);
  CHECK_FALSE(llama.types[0].attention.qkv_bias);

  facts.name = "MPT-1B";
  CHECK_FALSE(model_of(facts).types[0].attention.qkv_bias);
  facts.kv_heads = 8;
  CHECK(model_of(facts).types[0].feed_forward.gated);
  CHECK(model_of(facts).types[0].attention.kv_heads == 8);
}

TEST_CASE("whether a model is gated follows from its parameters where the name does not tell") {
  // 10 layers of h 1000 and f 4000: attention 4 h^2, feed-forward 2 or 3 of 4 h^2 each: 120 M or 160 M.
  ModelFacts facts;
  facts.name = "ours";
  facts.hidden = 1000;
  facts.ffn = 4000;
  facts.layers = 10;
  facts.heads = 10;
  const auto gated = [&](double parameters) {
    facts.parameters = parameters;
    return model_of(facts).types[0].feed_forward.gated;
  };
  CHECK_FALSE(gated(0));
  CHECK_FALSE(gated(118e6));
  CHECK(gated(165e6));
}

TEST_CASE("a name alone gives the dimensions of configs/models") {
  ModelFacts facts;
  facts.name = "LLAMA3.1_405B";
  facts.name = "Llama-3.1 405B";
  const model::Model known = model_of(facts);
  CHECK(known.block_count() == 126);
  CHECK(known.hidden == 16384);
  CHECK(known.job.sequence_length == 1024);
  facts.name = "gpt-oss-120b";
  CHECK(model_of(facts).block_count() == 36);
  facts.name = "Mystery-7B";
  CHECK(model_refusal(facts) == "no dimensions are printed, and configs/models knows no \"Mystery-7B\"");
}

namespace {

/// 4 layers of 8 experts, Llama's otherwise.
ModelFacts experts_printed() {
  ModelFacts facts;
  facts.name = "Ours";
  facts.dims.hidden = 1024;
  facts.dims.layers = 4;
  facts.dims.experts = 8;
  facts.dims.experts_per_token = 2;
  facts.dims.expert_ffn = 2048;
  facts.dims.heads = 16;
  facts.dims.kv_heads = 8;
  facts.dims.vocabulary = 32000;
  return facts;
}

std::string refusal_without(void (*change)(PrintedDims&)) {
  ModelFacts facts = experts_printed();
  change(facts.dims);
  return model_refusal(facts);
}

}  // namespace

TEST_CASE("a model of experts that nobody knows is what its sizes say") {
  ModelFacts facts = experts_printed();
  const model::Model model = model_of(facts, "H100");
  REQUIRE(model.types.size() == 1);
  const model::BlockType& block = model.types.front();
  CHECK(model.name == "Ours");
  CHECK(model.block_count() == 4);
  CHECK(model.vocabulary == 32000);
  CHECK_FALSE(model.tied_embeddings);
  CHECK(block.attention.heads == 16);
  CHECK(block.attention.kv_heads == 8);
  CHECK(block.attention.head_dim == 64);
  CHECK(block.feed_forward.experts == 8);
  CHECK(block.feed_forward.experts_per_token == 2);
  CHECK(block.feed_forward.expert_hidden == 2048);
  CHECK(block.feed_forward.shared_hidden == 0);
  CHECK(block.feed_forward.gated);  // queries are grouped
  CHECK_FALSE(block.feed_forward.bias);

  facts.dims.head_dim = 128;
  facts.dims.shared_experts = 2;
  facts.dims.dense_layers = 1;
  facts.dims.dense_ffn = 4096;
  const model::Model more = model_of(facts, "H100");
  CHECK_FALSE(more.block(0).feed_forward.is_moe());
  CHECK(more.block(0).feed_forward.hidden == 4096);
  CHECK(more.block(1).feed_forward.shared_hidden == 2 * 2048);
  CHECK(more.block(1).attention.head_dim == 128);
  facts.dims.shared_expert_ffn = 512;  // all of them together
  CHECK(model_of(facts, "H100").block(1).feed_forward.shared_hidden == 512);

  facts = experts_printed();
  facts.dims.kv_heads = 0;
  facts.dims.gated = false;
  const model::BlockType gpt = model_of(facts, "H100").types.front();
  CHECK(gpt.attention.kv_heads == 16);
  CHECK_FALSE(gpt.feed_forward.gated);
  CHECK(gpt.feed_forward.bias);
  facts.dims.biased = false;
  CHECK_FALSE(model_of(facts, "H100").types.front().feed_forward.bias);
}

TEST_CASE("a model of experts of which a size is missing stays unknown") {
  const std::string unknown = "configs/models knows no \"Ours\": ";
  CHECK(refusal_without([](PrintedDims& dims) { dims.expert_ffn = 0; }) == unknown + "expert_ffn is not printed");
  CHECK(refusal_without([](PrintedDims& dims) { dims.heads = 0, dims.vocabulary = 0; }) ==
        unknown + "heads, vocab are not printed");
  CHECK(refusal_without([](PrintedDims& dims) { dims.dense_layers = 1; }) == unknown + "dense_ffn is not printed");
  CHECK(refusal_without([](PrintedDims& dims) { dims.kv_heads = 0; }) ==
        unknown + "whether its experts are gated is not printed");
  CHECK(refusal_without([](PrintedDims& dims) { dims.attention = "MLA"; }) ==
        unknown + "its attention is printed as \"MLA\" alone");
  CHECK(refusal_without([](PrintedDims& dims) { dims.pattern = "Mamba-2, MoE"; }) ==
        unknown + "its layers are printed as \"Mamba-2, MoE\", not one by one");
  CHECK(refusal_without([](PrintedDims& dims) { dims.prediction_layers = 1; }) ==
        unknown + "its layers for multi-token prediction are not modelled");
}

TEST_CASE("the sizes of a model of experts make as many parameters as are printed") {
  // Experts: 4 layers x 8 x 3 x 1024 x 2048 = 201.3 M; attention: 4 x 3 x 1024^2 = 12.6 M; routers and norms: 0.04 M;
  // each end 32.8 M. 213.9 M without the ends, 279.5 M with them.
  ModelFacts facts = experts_printed();
  const auto makes = [&](double parameters) {
    facts.dims.parameters = parameters;
    facts.dims.parameters_unit = 1e6;
    Measurement m = fixtures::complete();
    m.model = facts;
    return find_model(m, device("H100")).has_value();
  };
  CHECK(makes(213e6));
  CHECK(makes(250e6));
  CHECK(makes(280e6));
  CHECK_FALSE(makes(212e6));
  CHECK_FALSE(makes(281e6));
  CHECK(model_refusal(facts) == "the sizes printed of \"Ours\" make 0.3 billion parameters, but 0.281 are printed");
  facts.name = "Ours proxy 4L";  // the count is that of the whole model
  CHECK(makes(900e6));
}

TEST_CASE("experts are divided as printed, else as Megatron-LM does") {
  Measurement m = fixtures::complete();
  m.tp = 4;
  CHECK(expert_tensor_parallelism(m) == 1);
  m.source = "Megatron-LM functional test golden values";
  CHECK(expert_tensor_parallelism(m) == 4);
  m.expert_tp = 2;
  CHECK(expert_tensor_parallelism(m) == 2);
  m.expert_tp.reset();
  m.source = "NVIDIA Megatron Bridge performance summary, 26.02";
  CHECK(expert_tensor_parallelism(m) == 1);
}

TEST_CASE("sizes that are printed in part are said to be missing") {
  ModelFacts facts;
  facts.name = "200B";
  facts.hidden = 14400;
  CHECK(model_refusal(facts) ==
        "the layers of \"200B\" are not printed, and configs/models knows no model of that name");
  facts.hidden = 0;
  facts.layers = 80;
  CHECK(model_refusal(facts) == "the width of \"200B\" is not printed, and configs/models knows no model of that name");
}

TEST_CASE("dimensions that make no model are refused") {
  ModelFacts facts;
  facts.hidden = 1000;
  facts.layers = 2;
  facts.heads = 7;
  CHECK(model_refusal(facts).starts_with("the printed dimensions make no model: "));
}

TEST_CASE("ZeRO-3 in fp16 where bf16 would do is of the time before fused attention") {
  Measurement m = fixtures::complete();
  m.zero = 3;
  m.precision = "fp16";
  model::Model plain;
  plain.types.emplace_back().feed_forward.gated = false;
  CHECK(shards_eagerly(m, device("A100")));
  CHECK_FALSE(uses_fused_attention(m, device("A100"), plain));
  CHECK_FALSE(shards_eagerly(m, device("V100")));  // has no bf16 to do without
  CHECK_FALSE(shards_eagerly(m, device("H100")));
  m.precision = "amp_bf16";
  CHECK_FALSE(shards_eagerly(m, device("A100")));
  CHECK(uses_fused_attention(m, device("A100"), plain));
}

TEST_CASE("the driver counts the buffers of every communicator") {
  Measurement m = fixtures::complete();  // 16 GPUs
  m.tp = 4;
  m.pp = 2;
  CHECK(fixtures::expressed(m).communicators == 0);
  m.of_driver = true;
  CHECK(fixtures::expressed(m).communicators == 1 + 3 + 2);  // all ranks; tp, dp and pp; two neighbours
  m.framework = "Megatron-DeepSpeed";
  CHECK(fixtures::expressed(m).communicators == 1 + 2 * 3 + 2);
  m.pp = 1;
  CHECK(fixtures::expressed(m).communicators == 1 + 2 * 2);
}

TEST_CASE("DeepSpeed's bf16 optimizer keeps gradients of both widths") {
  Measurement m = fixtures::complete();
  m.precision = "bf16";
  CHECK_FALSE(fixtures::expressed(m).keeps_both_gradients);
  m.framework = "Megatron-DeepSpeed";
  CHECK(fixtures::expressed(m).keeps_both_gradients);
  m.precision = "fp16";  // adds up in 16 bits
  CHECK_FALSE(fixtures::expressed(m).keeps_both_gradients);
}
