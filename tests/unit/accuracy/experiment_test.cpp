// From measurements to plans: placement, degrees, links, and every reason why not.
#include "tangram/accuracy/experiment.hpp"

#include "support/catch.hpp"
#include "tangram/accuracy/prediction.hpp"
#include "unit/accuracy/fixtures.hpp"

using namespace tangram;
using namespace tangram::literals;
using namespace tangram::accuracy;
using namespace tangram::accuracy::fixtures;

namespace {

void check_chunk(const Chunk& chunk, double first, double last, bool embedding, bool head) {
  CHECK(chunk.first == first);
  CHECK(chunk.last == last);
  CHECK(chunk.embedding == embedding);
  CHECK(chunk.head == head);
}

}  // namespace

TEST_CASE("data parallelism takes the GPUs that are left") {
  // 16 GPUs, one stage: 16 replicas of 1 sample, 64 / 16 = 4 microbatches.
  const Experiment experiment = expressed(complete());
  REQUIRE(experiment.stages.size() == 1);
  REQUIRE(experiment.stages[0].parts.size() == 1);
  const Part& part = experiment.stages[0].parts[0];
  CHECK(experiment.gpus == 16);
  CHECK(experiment.microbatch == 16);
  CHECK(experiment.microbatches == 4);
  CHECK(part.samples == 16);
  CHECK(part.degrees.dp == 16);
  CHECK(part.degrees.tp == 1);
  CHECK(part.shape.device.name == "A100-80GB-SXM");
  CHECK(part.shape.nodes == 2);
  CHECK(part.shape.per_node == 8);
  CHECK(part.shape.intra == part.shape.device.peer_link);
  CHECK(part.shape.inter.bandwidth.value() == Approx(200e9));  // 8 x 200 Gbit/s
  REQUIRE(experiment.stages[0].chunks.size() == 1);
  check_chunk(experiment.stages[0].chunks[0], 0, 8, true, true);
  CHECK_FALSE(experiment.overlaps_sync);
}

TEST_CASE("ranks are numbered tp, dp, pp from the inside out") {
  Measurement m = complete();
  m.pp = 4;
  m.tp = 2;
  m.sequence_parallel = true;
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.stages.size() == 4);
  for (const Stage& stage : experiment.stages) {
    REQUIRE(stage.parts.size() == 1);
    CHECK(stage.parts[0].degrees.tp == 2);
    CHECK(stage.parts[0].degrees.dp == 2);
    CHECK(stage.parts[0].degrees.sequence_parallel);
    CHECK(stage.parts[0].shape.nodes == 1);
    CHECK(stage.parts[0].shape.per_node == 4);
    CHECK(stage.parts[0].shape.inter.bandwidth.value() == Approx(100e9));  // half of the node's cards
  }
  check_chunk(experiment.stages[0].chunks[0], 0, 2, true, false);
  check_chunk(experiment.stages[3].chunks[0], 6, 8, false, true);
  // Stages 0, 1 share a node, 2, 3 the other: the fabric inside, half of 200 GB/s between.
  CHECK(experiment.stages[0].next_inside);
  CHECK(experiment.stages[0].to_next == experiment.stages[0].parts[0].shape.intra);
  CHECK_FALSE(experiment.stages[1].next_inside);
  CHECK(experiment.stages[1].to_next.bandwidth.value() == Approx(100e9));
  CHECK(experiment.stages[2].next_inside);
  CHECK_FALSE(experiment.stages[3].next_inside);
}

TEST_CASE("a node's only network card is not shared out") {
  Measurement m = complete();
  m.pp = 4;
  m.interconnect = "100 Gb/s per node";
  const Experiment experiment = expressed(m);
  CHECK(experiment.stages[1].to_next.bandwidth.value() == Approx(12.5e9));
  CHECK(experiment.stages[1].to_next.latency == 30_us);
}

TEST_CASE("virtual stages go round the pipeline") {
  Measurement m = complete();
  m.pp = 2;
  m.virtual_stages = 2;
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.stages[0].chunks.size() == 2);
  check_chunk(experiment.stages[0].chunks[0], 0, 2, true, false);
  check_chunk(experiment.stages[1].chunks[0], 2, 4, false, false);
  check_chunk(experiment.stages[0].chunks[1], 4, 6, false, false);
  check_chunk(experiment.stages[1].chunks[1], 6, 8, false, true);
  CHECK(experiment.microbatch_group == 0);
  m.microbatch_group = 5;
  CHECK(expressed(m).microbatch_group == 5);
}

TEST_CASE("recompute is shared out over the blocks") {
  Measurement m = complete();
  const auto chunk = [&](const char* mode) {
    m.recompute = mode;
    return expressed(m).stages[0].chunks[0];
  };
  CHECK(chunk("full").recomputed == 8);
  CHECK(chunk("full").selective == 0);
  CHECK(chunk("selective").recomputed == 0);
  CHECK(chunk("selective").selective == 8);
  CHECK(chunk("selective-op").recomputed == 4);
  CHECK(chunk("selective-op").selective == 4);
  CHECK(chunk("none").recomputed == 0);
  CHECK(chunk("none").selective == 0);
}

TEST_CASE("a part of the layers is recomputed, or those that are listed") {
  Measurement m = complete();
  m.pp = 2;
  m.dp = 1;
  const auto recomputed = [&](const char* mode) {
    m.recompute = mode;
    const Experiment experiment = expressed(m);
    return std::vector<double>{experiment.stages[0].chunks[0].recomputed, experiment.stages[1].chunks[0].recomputed};
  };
  CHECK(recomputed("full, 2 of 8 layers") == std::vector<double>{1, 1});
  m.recomputed_layers = {0, 1, 3, 4};
  CHECK(recomputed("full, 4 of 8 layers") == std::vector<double>{3, 1});
  CHECK(recomputed("none") == std::vector<double>{0, 0});
}

TEST_CASE("where only tp times pp is printed, tp fills a node") {
  Measurement m = complete();
  m.tp.reset();
  m.pp.reset();
  m.model_parallel = 16;
  m.global_batch = 8;
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.stages.size() == 2);
  CHECK(experiment.stages[0].parts[0].degrees.tp == 8);
  CHECK(experiment.stages[0].parts[0].degrees.dp == 1);
  CHECK(experiment.microbatches == 8);
}

TEST_CASE("context and expert parallelism") {
  Measurement m = complete();
  m.gpus = {{"H100", 16, 8}};
  m.cp = 2;
  m.ep = 64;
  const Experiment experiment = expressed(m);
  const cost::Degrees& degrees = experiment.stages[0].parts[0].degrees;
  CHECK(degrees.cp == 2);
  CHECK(degrees.tp == 1);
  CHECK(degrees.dp == 8);
  CHECK(degrees.ep == 16);  // no more than there are ranks
  CHECK_FALSE(degrees.sequence_parallel);
  CHECK(experiment.overlaps_sync);
}

TEST_CASE("experts are divided where there are any") {
  Measurement m = complete();
  m.gpus = {{"H100", 16, 8}};
  m.tp = 4;
  m.ep = 2;
  m.expert_tp = 4;
  CHECK(expressed(m).stages[0].parts[0].degrees.etp == 1);  // GPT has none
  m.model = {};
  m.model.name = "Mixtral 8x7B";
  const cost::Degrees degrees = expressed(m).stages[0].parts[0].degrees;
  CHECK(degrees.etp == 4);
  CHECK(degrees.edp() == 2);
}

TEST_CASE("ZeRO-3 inside a pipeline works as ZeRO-1") {
  Measurement m = complete();
  m.sharding_group = 8;
  CHECK(expressed(m).zero == 3);
  m.pp = 2;
  CHECK(expressed(m).zero == 1);
  m.zero = 2;
  CHECK(expressed(m).zero == 2);
}

TEST_CASE("FSDP shards over the ranks printed") {
  Measurement m = complete();
  m.tp = m.pp = 1;
  m.zero = 3;
  const auto groups = [&](std::optional<int> ranks) {
    m.sharding_group = ranks;
    return expressed(m).stages[0].parts[0].degrees.dp_replicate;
  };
  const int dp = expressed(m).stages[0].parts[0].degrees.dp;
  REQUIRE(dp % 4 == 0);
  CHECK(groups({}) == 1);
  CHECK(groups(dp) == 1);
  CHECK(groups(dp / 4) == 4);
  CHECK(groups(2 * dp) == 1);
  CHECK(groups(dp - 1) == 1);  // no groups of equal size
  CHECK(groups(1) == 1);       // "yes": a group of one would shard nothing
  m.zero = 0;
  CHECK(groups(dp / 4) == 1);
}

TEST_CASE("replicas that name their GPUs are split into parts by type and size") {
  // Each stage: one replica of two A100 and two of one V100; 2 samples each, 12 / 6 = 2 microbatches.
  Measurement m = complete();
  m.tp.reset();
  m.gpus = {{"A100-80GB-SXM", 4, 4}, {"V100-16GB-SXM", 4, 4}};
  m.stage_replicas.assign(2, {{"A100-80GB-SXM", 2}, {"V100-16GB-SXM", 1}, {"V100-16GB-SXM", 1}});
  m.microbatch = 2;
  m.global_batch = 12;
  const Experiment experiment = expressed(m);
  CHECK(experiment.microbatch == 6);
  CHECK(experiment.microbatches == 2);
  REQUIRE(experiment.stages.size() == 2);
  for (const Stage& stage : experiment.stages) {
    REQUIRE(stage.parts.size() == 2);
    const Part& ampere = stage.parts[0];
    CHECK(ampere.shape.device.name == "A100-80GB-SXM");
    CHECK(ampere.shape.gpus() == 2);
    CHECK(ampere.degrees.tp == 2);
    CHECK(ampere.degrees.dp == 1);
    CHECK(ampere.samples == 2);
    const Part& volta = stage.parts[1];
    CHECK(volta.shape.device.name == "V100-16GB-SXM");
    CHECK(volta.shape.gpus() == 2);
    CHECK(volta.degrees.tp == 1);
    CHECK(volta.degrees.dp == 2);
    CHECK(volta.samples == 4);
  }
}

TEST_CASE("replicas of one type and two sizes are two parts") {
  Measurement m = complete();
  m.gpus = {{"A100-80GB-SXM", 6, 8}};
  m.stage_replicas = {{{"A100-80GB-SXM", 4}, {"A100-80GB-SXM", 2}}};
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.stages[0].parts.size() == 2);
  CHECK(experiment.stages[0].parts[0].degrees.tp == 4);
  CHECK(experiment.stages[0].parts[1].degrees.tp == 2);
}

TEST_CASE("stages that print their number of GPUs take the next ones") {
  Measurement m = complete();
  m.gpus = {{"A100-80GB-SXM", 6, 8}};
  m.stage_gpus = {4, 2};
  m.stage_tp = {{4}, {2}};
  const Experiment experiment = expressed(m);
  REQUIRE(experiment.stages.size() == 2);
  CHECK(experiment.stages[0].parts[0].degrees.tp == 4);
  CHECK(experiment.stages[1].parts[0].degrees.tp == 2);
  CHECK(experiment.stages[1].parts[0].degrees.dp == 1);
  CHECK(experiment.microbatches == 64);
}

TEST_CASE("what is missing is said") {
  Measurement m = complete();
  const auto without = [](auto change) {
    Measurement changed = complete();
    change(changed);
    return refusal(changed);
  };
  CHECK(without([](auto& x) { x.gpus.clear(); }) == "no GPUs are printed");
  CHECK(without([](auto& x) { x.gpus = {{"A100", 0, 8}}; }) == "no number of GPUs is printed");
  CHECK(without([](auto& x) { x.gpus = {{"GB300", 0, 4}}; }) == "no number of GPUs is printed");
  CHECK(without([](auto& x) { x.gpus = {{"TPU-v4", 8, 4}}; }) == "no GPU type of the catalogue is a \"TPU-v4\"");
  CHECK(without([](auto& x) { x.gpus.assign(2, {"A100", 600'000, 8}); }) == "more than 1,000,000 GPUs are printed");
  CHECK(without([](auto& x) { x.tp.reset(); }) == "the parallel degrees are not printed");
  CHECK(without([](auto& x) { x.tp.reset(), x.model_parallel = 0; }) == "the parallel degrees are not printed");
  CHECK(without([](auto& x) { x.microbatch.reset(); }) == "the microbatch is not printed");
  CHECK(without([](auto& x) { x.microbatch = 0; }) == "the microbatch is not printed");
  CHECK(without([](auto& x) { x.global_batch.reset(); }) == "the global batch is not printed");
  CHECK(without([](auto& x) { x.sequence.reset(); }) == "the sequence length is not printed");
  CHECK(without([](auto& x) { x.context_exchange = "a2a+p2p"; }) ==
        "exchanges of heads inside nodes and a ring between them are not modelled");
  CHECK(without([](auto& x) { x.offloads_activations = true; }) ==
        "activations were offloaded to the host, and which is not printed");
}

TEST_CASE("plans that do not fit their GPUs are refused") {
  const auto changed = [](auto change) {
    Measurement m = complete();
    change(m);
    return refusal(m);
  };
  CHECK(changed([](auto& m) { m.pp = 3; }) == "16 GPUs are not a multiple of 3 stages of 1 GPUs a replica");
  CHECK(changed([](auto& m) { m.tp = 65'536, m.cp = 65'536; }) ==
        "16 GPUs are not a multiple of 1 stages of 4294967296 GPUs a replica");
  CHECK(changed([](auto& m) { m.stage_replicas = {{{"A100-80GB-SXM", 17}}}; }) ==
        "stages use more GPUs \"A100-80GB-SXM\" than the fleet has");
  CHECK(changed([](auto& m) { m.stage_replicas = {{{"V100", 1}}}; }) ==
        "stages use more GPUs \"V100\" than the fleet has");
  CHECK(changed([](auto& m) { m.stage_replicas = {{{"A100-80GB-SXM", 0}}}; }) ==
        "stages use more GPUs \"A100-80GB-SXM\" than the fleet has");
  CHECK(changed([](auto& m) { m.stage_gpus = {8}, m.stage_tp = {{2, 4}}; }) ==
        "a stage changes its tensor parallelism between operators");
  CHECK(changed([](auto& m) { m.stage_gpus = {8}; }) == "a stage changes its tensor parallelism between operators");
  CHECK(changed([](auto& m) { m.stage_gpus = {16, 1}, m.stage_tp = {{2}, {1}}; }) ==
        "stages do not fit the GPUs printed");
  CHECK(changed([](auto& m) { m.stage_gpus = {3}, m.stage_tp = {{2}}; }) == "stages do not fit the GPUs printed");
  const std::string uneven = "stages have different numbers of replicas, whose shares of the batch are not printed";
  CHECK(changed([](auto& m) { m.stage_gpus = {4, 2}, m.stage_tp = {{2}, {2}}; }) == uneven);
  CHECK(changed([](auto& m) { m.stage_gpus = {0}, m.stage_tp = {{2}}; }) == uneven);
  CHECK(changed([](auto& m) { m.stage_replicas = {{}}; }) == uneven);
  CHECK(changed([](auto& m) { m.stage_gpus = {16}, m.stage_tp = {{2}}, m.cp = 2; }) ==
        "uneven stages with context parallelism");
  CHECK(changed([](auto& m) { m.gpus = {{"A100", 3, 8}, {"V100", 3, 8}}, m.tp = 2, m.global_batch = 3; }) ==
        "a replica of a stage spans two GPU types");
}

TEST_CASE("batches that do not fit their replicas are refused") {
  Measurement m = complete();
  m.microbatch = 5;
  CHECK(refusal(m) == "a batch of 64 is smaller than 16 replicas of microbatch 5");
  m.microbatch = 3;
  CHECK(refusal(m) == "a batch of 64 is no multiple of 16 replicas of microbatch 3");
}

TEST_CASE("cuts and models that do not fit are refused") {
  Measurement m = complete();
  m.virtual_stages = 1'000'000;
  m.pp = 16;
  CHECK(refusal(m) == "8 layers cannot fill 16000000 pipeline positions");
  m = complete();
  m.model = {};
  m.model.name = "Mystery-7B";
  CHECK(refusal(m) == "no dimensions are printed, and configs/models knows no \"Mystery-7B\"");
}

TEST_CASE("what software did without stays away, and can be taken away") {
  Measurement m = fixtures::complete();
  m.zero = 3;
  m.precision = "fp16";
  Experiment experiment = fixtures::expressed(m);
  const auto& methods = experiment.stages.front().parts.front().shape.methods;
  CHECK_FALSE(methods.overlapped);
  CHECK_FALSE(methods.gathered_once);
  CHECK(methods.hierarchical);
  restrict_methods(experiment, {});
  CHECK_FALSE(methods.overlapped);
  cluster::ExecutionMethods flat;
  flat.hierarchical = false;
  restrict_methods(experiment, flat);
  CHECK_FALSE(methods.hierarchical);
  m.precision = "bf16";
  CHECK(fixtures::expressed(m).stages.front().parts.front().shape.methods == cluster::ExecutionMethods{});
}

TEST_CASE("Composer gathers between backward passes, and gradients may be reduced once") {
  Measurement m = fixtures::complete();
  const auto methods = [&] { return fixtures::expressed(m).stages.front().parts.front().shape.methods; };
  CHECK_FALSE(methods().gathers_between);
  CHECK_FALSE(methods().reduced_once);
  m.source = "MosaicML llm-foundry MPT training benchmarks";
  m.no_sync = true;
  CHECK(methods().gathers_between);
  CHECK(methods().reduced_once);
}

TEST_CASE("gradients are reduced beside backward on Hopper and later, under FSDP and where printed") {
  Measurement m = fixtures::complete();
  m.gpus.front().type = "A100-80GB-SXM";
  m.precision = "bf16";
  CHECK_FALSE(fixtures::expressed(m).overlaps_sync);
  m.overlap = std::vector<std::string>{"grad_reduce"};
  CHECK(fixtures::expressed(m).overlaps_sync);
  m.overlap.reset();
  m.zero = 3;
  CHECK(fixtures::expressed(m).overlaps_sync);
}

TEST_CASE("trainers that are compiled as a whole schedule exchanges, and stop recompute early, as torchtitan does") {
  Measurement m = fixtures::complete();
  const auto methods = [&] { return fixtures::expressed(m).stages.front().parts.front().shape.methods; };
  m.framework = "MaxText (JAX)";
  CHECK(methods().scheduled);
  CHECK(methods().early_stop);
  CHECK(methods().gather_barrier == 0);
  m.gather_barrier = 512e6;
  CHECK(methods().gather_barrier == 512e6);
  for (const char* trainer : {"torchtitan", "somebody's (PyTorch FSDP2)", "fms-fsdp", "AutoModel"}) {
    m.framework = trainer;
    CHECK_FALSE(methods().scheduled);
    CHECK(methods().early_stop);
    CHECK(methods().copied_exchanges);
    CHECK(methods().tensor_forward_alone);
  }
  m.framework = "Megatron-LM";
  CHECK_FALSE(methods().early_stop);
}

TEST_CASE("Megatron-Core's optimizers of experts and of the rest each gather all parameters") {
  Measurement m = fixtures::complete();
  m.gpus = {{"H100", 16, 8}};
  m.model = {};
  m.model.name = "Mixtral 8x7B";
  const auto methods = [&] { return fixtures::expressed(m).stages.front().parts.front().shape.methods; };
  CHECK_FALSE(methods().gathered_by_each_optimizer);
  m.ep = 2;
  CHECK(methods().gathered_by_each_optimizer);
  m.framework = "torchtitan";
  CHECK_FALSE(methods().gathered_by_each_optimizer);
}

TEST_CASE("attention's output projection is recomputed where that is printed") {
  Measurement m = fixtures::complete();
  const auto methods = [&] { return fixtures::expressed(m).stages.front().parts.front().shape.methods; };
  m.recompute_modules = {"layernorm", "core_attn", "mlp"};
  CHECK_FALSE(methods().output_again);
  m.recompute_modules.emplace_back("out_proj");
  CHECK(methods().output_again);
}

TEST_CASE("activations of so many layers wait on the host, one layer's are on their way") {
  Measurement m = fixtures::complete();  // eight layers
  const auto peak = [&] {
    const auto prediction = predict(fixtures::expressed(m), {});
    REQUIRE(prediction);
    return prediction->peak_allocated;
  };
  CHECK(fixtures::expressed(m).kept_on_gpu == 1);
  const double all = peak();
  m.offloaded_layers = 4;
  CHECK(fixtures::expressed(m).kept_on_gpu == Approx(5.0 / 8));
  CHECK(peak() < all);
  m.offloaded_layers = 100;
  CHECK(fixtures::expressed(m).kept_on_gpu == 0);
  m.offloaded_layers = 4;
  m.pp = 2;  // Megatron-Core has it for one stage alone
  CHECK(fixtures::expressed(m).kept_on_gpu == 1);
}

TEST_CASE("submissions to MLPerf keep parameters in 8 bits and gradients in 16, on AMD's GPUs, too") {
  Measurement m = fixtures::complete();
  m.gpus = {{"MI300X-192GB", 16, 8}};
  m.precision = "fp8";
  CHECK_FALSE(fixtures::expressed(m).model.job.narrow_parameters);
  CHECK(fixtures::expressed(m).model.job.transpose_cache);
  m.source = "MLPerf Training v5.1 AMD MI300X_EPYC_9575F";
  CHECK(fixtures::expressed(m).model.job.narrow_parameters);
  CHECK_FALSE(fixtures::expressed(m).model.job.transpose_cache);
  CHECK(fixtures::expressed(m).model.job.gradient_bytes == 2);
}

TEST_CASE("NVIDIA's recipes for performance add gradients up in 16 bits, but where XLA compiles them") {
  Measurement m = fixtures::complete();
  m.source = "NVIDIA DGX Cloud benchmarking recipes v25.04 nemotron/README.md";
  CHECK(fixtures::expressed(m).model.job.gradient_bytes == 2);
  m.gradient_dtype = "fp32";
  CHECK(fixtures::expressed(m).model.job.gradient_bytes == 4);
  m.gradient_dtype = "";
  m.framework = "MaxText (JAX)";
  CHECK(fixtures::expressed(m).model.job.gradient_bytes == 4);
}
