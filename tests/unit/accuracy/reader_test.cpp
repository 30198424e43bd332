// Datasets: what is read, in which units, and the exact place of every mistake.
#include <string>

#include "support/catch.hpp"
#include "tangram/accuracy/measurement.hpp"

using namespace tangram;
using namespace tangram::accuracy;

namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::vector<Measurement> read(const std::string& text) {
  auto rows = read_measurements(text, "data.json");
  if (!rows) FAIL(render(rows.error()));
  return std::move(*rows);
}

/// The one row that has these keys.
Measurement row(const std::string& keys) {
  const auto rows = read("[{" + keys + "}]");
  REQUIRE(rows.size() == 1);
  return rows.front();
}

/// All mistakes of one row, a line each: "line:column message".
std::string mistakes(const std::string& keys) {
  const auto rows = read_measurements("[{" + keys + "}]", "data.json");
  REQUIRE_FALSE(rows);
  std::string text;
  for (const Diagnostic& mistake : rows.error()) {
    CHECK(mistake.code == "wrong-type");
    CHECK(mistake.where.file == "data.json");
    text +=
        std::to_string(mistake.where.line) + ":" + std::to_string(mistake.where.column) + " " + mistake.message + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a nested row has groups of GPUs, a model and degrees") {
  const Measurement m = row(R"("id": "a", "dataset": "d", "quality": "A-", "notes": "n", "interconnect": "i",
    "gpus": [{"type": "A100", "count": 16, "per_node": 8}, {"type": "V100", "count": 4}],
    "model": {"name": "GPT", "hidden": 1024, "ffn": 4096, "vocab": 50257, "layers": 24, "heads": 16, "kv_heads": 4,
              "params_b": 0.35, "gated": true},
    "seq": 2048, "gbs": 512, "mbs": 4, "tp": 2, "pp": 3, "dp": 5, "cp": 6, "ep": 7, "vpp": 8, "zero": 1, "sp": true,
    "flash_attention": false, "attention_kernel": "native", "act_offload": true, "recompute": "full", "precision": "bf16", "variant": "compile",
    "source": "s", "seen": "t", "recipe": "r", "task": "SFT", "cuda_graph": {"impl": "local", "scope": "step"},
    "dispatcher": "deepep", "moe": {"balance": "forced"}, "recompute_modules": ["mlp", "moe"],
    "overlap": ["param_gather", "overlap_moe_expert_parallel_comm"],
    "fsdp": 64, "iter_time_s": 1.5)");
  CHECK(m.source == "s t r");
  CHECK(m.task == "SFT");
  CHECK(m.graphs == GraphFacts{"local", {"step"}});
  CHECK(m.routing == ExpertFacts{"deepep", "forced"});
  CHECK(m.overlap == std::vector<std::string>{"param_gather", "overlap_moe_expert_parallel_comm"});
  CHECK(m.recompute_modules == std::vector<std::string>{"mlp", "moe"});
  CHECK(m.id == "a");
  CHECK(m.dataset == "d");
  CHECK(m.quality == "A-");
  CHECK(m.notes == "n");
  CHECK(m.interconnect == "i");
  CHECK(m.gpus == std::vector<GpuGroup>{{"A100", 16, 8}, {"V100", 4, 0}});
  CHECK(m.model == ModelFacts{"GPT", 1024, 4096, 50257, 24, 16, 4, 0.35e9, true});
  CHECK(m.sequence == 2048);
  CHECK(m.global_batch == 512);
  CHECK(m.microbatch == 4);
  CHECK(m.tp == 2);
  CHECK(m.pp == 3);
  CHECK(m.dp == 5);
  CHECK(m.cp == 6);
  CHECK(m.ep == 7);
  CHECK(m.virtual_stages == 8);
  CHECK(m.zero == 1);
  CHECK(m.sequence_parallel == true);
  CHECK(m.flash_attention == false);
  CHECK(m.attention_kernel == "native");
  CHECK(m.offloads_activations);
  CHECK(m.sharding_group.value_or(0) > 0);
  CHECK(m.recompute == "full");
  CHECK(m.precision == "bf16");
  CHECK(m.variant == "compile");
  CHECK(m.iteration_s == 1.5);
  CHECK_FALSE(m.derived);
  CHECK_FALSE(m.uneven());
}

TEST_CASE("a row may describe a model of experts, and how they are divided") {
  const Measurement m = row(
      R"("etp": 2, "ulysses": 4, "microbatch_group": 5, "model": {"name": "Ours", "dims": {"hidden": 1024, "layers": 12,
    "experts": 8, "top_k": 2, "expert_ffn": 2048, "shared_experts": 1, "shared_expert_ffn": 512, "dense_layers": 3,
    "dense_ffn": 4096, "heads": 16, "kv_heads": 4, "head_dim": 128, "vocab": 32000, "mtp_layers": 1, "params_b": 31.6,
    "gated": false, "bias": true, "attention": "MLA", "pattern": "p"}})");
  CHECK(m.expert_tp == 2);
  CHECK(m.cp == 4);
  CHECK(m.context_exchange == "a2a");
  CHECK(m.microbatch_group == 5);
  const PrintedDims dims{1024, 12,  8,     2, 2048,   1,     512,   3,    4096,  16,
                         4,    128, 32000, 1, 31.6e9, 0.1e9, false, true, "MLA", "p"};
  CHECK(m.model.dims == dims);
  CHECK(row(R"("model": {"dims": {"params_b": 314}})").model.dims.parameters_unit == 1e9);
  CHECK_FALSE(row(R"("etp": null)").cp);
  CHECK(row(R"("cp": 8, "cp_comm_type": "all_gather")").context_exchange == "all_gather");
  const Measurement around = row(R"("cp": 2, "ulysses": 4)");
  CHECK(around.cp == 8);
  CHECK(around.context_exchange == "a2a+p2p");
}

TEST_CASE("a row may have an encoder, and say what its software does") {
  const Measurement m = row(R"("dropout": true, "fused_kernels": false, "fused_loss": true,
    "fused_gradient_accumulation": false, "oom": true, "max_allocated_bytes": 5e9,
    "encoder": {"placement": "colocated", "hidden": 1408, "ffn": 6144, "layers": 40, "heads": 16, "tokens_in": 1025,
                "tokens_out": 256, "items_per_sample": 6, "tp": 2, "dp": 4, "sp": false, "recompute": "full",
                "recompute_num_layers": 40, "offload": true, "fused_loss": false})");
  CHECK(m.kernels == KernelFacts{true, false, true, false});
  CHECK(m.out_of_memory);
  CHECK(m.peak_memory == 5e9);
  CHECK(m.of_allocator);
  const EncoderFacts encoder{Placement::kColocated,
                             1408,
                             6144,
                             40,
                             16,
                             1025,
                             256,
                             6,
                             2,
                             4,
                             false,
                             "full",
                             40,
                             true,
                             KernelFacts{std::nullopt, std::nullopt, false, std::nullopt}};
  CHECK(m.encoder == encoder);
  CHECK(row(R"("encoder": {"placement": "homogeneous"})").encoder->items == 1);
  CHECK_FALSE(row(R"("encoder": null)").encoder);
}

TEST_CASE("a rate of FLOPs has the source's own count of an iteration, or none with an encoder") {
  const std::string keys = R"("gpus": [{"type": "H100", "count": 2}], "tflops_per_gpu": 100, "gbs": 4, "seq": 1024,
    "model": {"hidden": 1024, "layers": 2}, "encoder": {"placement": "disjoint"})";
  CHECK(row(keys).iteration_s == 0);
  const Measurement counted = row(keys + R"(, "flops_per_iteration": 4e14)");
  CHECK(counted.iteration_s == Approx(2));
  CHECK(counted.derived);
}

TEST_CASE("a row may say which layers are in 16 bits, and of which type moments are") {
  const Measurement m = row(R"("wide_layers": {"first": 1, "last": 5}, "optimizer_moments": "bf16")");
  CHECK(m.wide_first == 1);
  CHECK(m.wide_last == 5);
  CHECK(m.moment_dtype == "bf16");
  CHECK(m.state_bytes == 0);
  CHECK(row(R"("optimizer_state_bytes": 6)").state_bytes == 6);
  CHECK(row(R"("gather_barrier_bytes": 536870912)").gather_barrier == 536870912);
  CHECK(row(R"("no_sync": true)").no_sync);
  CHECK(row(R"("wide_layers": {"last": 5})").wide_first == 0);
  CHECK(mistakes(R"("optimizer_moments": "int8")") ==
        "1:24 \"optimizer_moments\" must be \"fp32\", \"bf16\" or \"fp8\"\n");
  CHECK(mistakes(R"("max_mem_gb": 2, "memory_unit": "MB")") ==
        "1:35 \"memory_unit\" must be \"GB\" (10^9 bytes) or \"GiB\"\n");
}

TEST_CASE("a row may say what its model writes in a framework's operators") {
  using enum model::EagerOperator;
  CHECK_FALSE(row(R"("id": "a")").kernels.eager);
  CHECK(row(R"("eager_operators": "all")").kernels.eager == model::kAllEager);
  CHECK(row(R"("eager_operators": "none")").kernels.eager == model::EagerOperators{});
  CHECK(row(R"("eager_operators": ["gates", "rotary"])").kernels.eager == model::EagerOperators{kRotary, kGates});
  CHECK(mistakes(R"("eager_operators": ["gates", "softmax"])") ==
        "1:22 \"eager_operators\" must be none, all, or a list of norms, rotary, gates and adapters\n");
}

TEST_CASE("a row may say what its samples are packed of") {
  CHECK(row(R"("packing": {"mean_length": 180})").packing == model::Packing{180, 0, {}});
  CHECK(row(R"("packing": {"mean_length": 180, "p95_length": 400})").packing == model::Packing{180, 400, {}});
  CHECK_FALSE(row(R"("packing": null)").packing.any());
  CHECK(mistakes(R"("packing": {"p95_length": 400})") == "1:14 \"mean_length\" must be 1 token or more\n");
  CHECK(mistakes(R"("packing": {"mean_length": 0})") == "1:30 \"mean_length\" must be 1 token or more\n");
  CHECK(mistakes(R"("packing": {"mean_length": 180, "p95_length": 90})") ==
        "1:49 \"p95_length\" must be no less than \"mean_length\"\n");
}

TEST_CASE("an encoder without a place, or with another, is a mistake") {
  CHECK(mistakes(R"("encoder": {"placement": "beside"})") ==
        "1:28 \"placement\" must be homogeneous, colocated or disjoint\n");
  CHECK(mistakes(R"("encoder": {"tp": 2})") == "1:14 \"placement\" must be homogeneous, colocated or disjoint\n");
  CHECK(mistakes(R"("encoder": 3)") == "1:14 \"encoder\" must be an object\n");
}

TEST_CASE("a flat row has a number of GPUs in one node, and is graded A") {
  const Measurement m =
      row(R"("gpu": "A100", "gpus": 4, "hidden": 2048, "layers": 12, "heads": 16, "iter_time_ms": 250)");
  CHECK(m.gpus == std::vector<GpuGroup>{{"A100", 4, 4}});
  CHECK(m.model == ModelFacts{"", 2048, 0, 0, 12, 16, 0, 0, std::nullopt});
  CHECK(m.quality == "A");
  CHECK(m.iteration_s == 0.25);
  CHECK(row(R"("model": {"name": "GPT"})").quality.empty());
}

TEST_CASE("a row's own vocabulary stands for one that its model lacks") {
  CHECK(row(R"("model": {"name": "GPT"}, "vocab": 51200)").model.vocabulary == 51200);
  CHECK(row(R"("model": {"vocab": 100}, "vocab": 51200)").model.vocabulary == 100);
}

TEST_CASE("null is absent, and keys of the publication are passed over") {
  const Measurement m = row(R"("id": null, "gpus": null, "model": null, "seq": null, "tp": null, "sp": null,
    "iter_time_s": null, "stage_gpus": null, "stage_replicas": null, "dp": null, "zero": null, "hfu": [1, {}], "mfu": "x")");
  const Measurement empty = row("");
  CHECK(m.id == empty.id);
  CHECK(m.gpus.empty());
  CHECK(m.model == empty.model);
  CHECK_FALSE(m.sequence);
  CHECK_FALSE(m.tp);
  CHECK_FALSE(m.sequence_parallel);
  CHECK_FALSE(m.dp);
  CHECK_FALSE(m.zero);
  CHECK(m.iteration_s == 0);
  CHECK(m.virtual_stages == 1);
  CHECK_FALSE(m.uneven());
}

TEST_CASE("a dataset is an array, or an object with rows") {
  CHECK(read(R"({"note": 1, "rows": [{"id": "a"}, {"id": "b"}]})").at(1).id == "b");
  for (const char* text : {"5", "null", "{}", R"({"rows": {}})", R"("rows")"}) {
    const auto rows = read_measurements(text, "data.json");
    REQUIRE_FALSE(rows);
    CHECK(render(rows.error()) ==
          std::string("data.json:1:1: error: expected an array of measurements, or an object with one under \"rows\"\n"
                      "  ") +
              text +
              "\n  ^\n  hint: each measurement is an object with id, gpus, model, degrees and iter_time_s or "
              "tokens_per_s\n");
  }
}

TEST_CASE("a dataset without a measurement is a mistake") {
  for (const auto& [text, column] : {std::pair{"[]", 1}, std::pair{R"({"rows": []})", 10}}) {
    const auto rows = read_measurements(text, "data.json");
    REQUIRE_FALSE(rows);
    CHECK(rows.error().front().message == "there is no measurement in the array");
    CHECK(rows.error().front().where.column == column);
  }
}

TEST_CASE("a measurement is an object") {
  const auto rows = read_measurements("[\n  {},\n  7\n]", "data.json");
  REQUIRE_FALSE(rows);
  CHECK(render(rows.error()) ==
        "data.json:3:3: error: \"rows\" must be an object for each measurement\n"
        "    7\n"
        "    ^\n");
}

TEST_CASE("text that is no JSON is refused at its place") {
  const auto rows = read_measurements("[{\"id\": }]", "data.json");
  REQUIRE_FALSE(rows);
  CHECK(rows.error().front().where.line == 1);
  CHECK(rows.error().front().where.column == 9);
}

TEST_CASE("every type is checked where it stands") {
  CHECK(mistakes(R"("id": 5)") == "1:9 \"id\" must be a string\n");
  CHECK(mistakes(R"("attention_kernel": "flash-3")") ==
        "1:23 \"attention_kernel\" must be \"flash-2\" or \"native\"\n");
  CHECK(mistakes(R"("overlap": [1])") == "1:15 \"overlap\" must be a string, or an array of strings\n");
  CHECK(mistakes(R"("moe": 1)") == "1:10 \"moe\" must be an object\n");
  CHECK(mistakes(R"("iter_time_s": "1")") == "1:18 \"iter_time_s\" must be 0, or a number from 1e-09 to 1e+18\n");
  CHECK(mistakes(R"("tokens_per_s": -1)") == "1:19 \"tokens_per_s\" must be 0, or a number from 1e-09 to 1e+18\n");
  CHECK(mistakes(R"("seq": 1.5)") == "1:10 \"seq\" must be a whole number up to 1,000,000,000\n");
  CHECK(mistakes(R"("gbs": -8)") == "1:10 \"gbs\" must be a whole number up to 1,000,000,000\n");
  CHECK(mistakes(R"("gbs": 1000000001)") == "1:10 \"gbs\" must be a whole number up to 1,000,000,000\n");
  CHECK(mistakes(R"("tp": "2")") == "1:9 \"tp\" must be a whole number up to 1,000,000\n");
  CHECK(mistakes(R"("tp": 1000001)") == "1:9 \"tp\" must be a whole number up to 1,000,000\n");
  CHECK(mistakes(R"("dp": {})") == "1:9 \"dp\" must be a whole number up to 1,000,000\n");
  CHECK(mistakes(R"("zero": 4)") == "1:11 \"zero\" must be a ZeRO stage, 0 to 3\n");
  CHECK(mistakes(R"("sp": 1)") == "1:9 \"sp\" must be true or false\n");
  CHECK(mistakes(R"("model": "GPT")") == "1:12 \"model\" must be an object\n");
  CHECK(mistakes(R"("model": {"hidden": "big"})") == "1:23 \"hidden\" must be a whole number up to 1,000,000,000\n");
  CHECK(mistakes(R"("gpus": "8")") == "1:11 \"gpus\" must be a number, or an array of objects\n");
  CHECK(mistakes(R"("gpus": [8])") == "1:12 \"gpus\" must be an array of objects\n");
  CHECK(mistakes(R"("gpus": [{"type": 5}])") == "1:21 \"type\" must be a string\n");
  CHECK(mistakes(R"("gpus": 2.5)") == "1:11 \"gpus\" must be a whole number up to 1,000,000\n");
  CHECK(mistakes(R"("stage_gpus": 4)") == "1:17 \"stage_gpus\" must be an array\n");
  CHECK(mistakes(R"("stage_gpus": [4, null])") == "1:21 \"stage_gpus\" must be a whole number up to 1,000,000\n");
  CHECK(mistakes(R"("stage_tp": [4])") == "1:16 \"stage_tp\" must be an array\n");
  CHECK(mistakes(R"("stage_replicas": [{}])") == "1:22 \"stage_replicas\" must be an array\n");
  CHECK(mistakes(R"("stage_replicas": [["A100"]])") == "1:23 \"stage_replicas\" must be an array of objects\n");
}

TEST_CASE("all mistakes of a dataset are told at once") {
  const auto rows = read_measurements("[{\"tp\": -1,\n \"pp\": true},\n {\"id\": []}]", "data.json");
  REQUIRE_FALSE(rows);
  CHECK(render(rows.error()) ==
        "data.json:1:9: error: \"tp\" must be a whole number up to 1,000,000\n"
        "  [{\"tp\": -1,\n"
        "          ^~\n"
        "data.json:2:8: error: \"pp\" must be a whole number up to 1,000,000\n"
        "   \"pp\": true},\n"
        "         ^~~~\n"
        "data.json:3:9: error: \"id\" must be a string\n"
        "   {\"id\": []}]\n"
        "          ^\n");
}

TEST_CASE("plans that are not uniform are read stage by stage") {
  const Measurement m = row(R"("dp": [2, 1], "layers_per_stage": [5, 7], "partition_30_units": [0, 15, 30],
    "recompute_layer_ids": [0, 6], "stage_replicas": [[{"gpu": "A100", "tp": 4}, {"gpu": "V100"}], [{"gpu": "T4", "tp": 2}]],
    "stage_gpus": [4, 2], "stage_tp": [[4], [1, 2]], "stage_num_ops": [30, 31], "stage_recomputed_ops": [9, 0])");
  CHECK_FALSE(m.dp);
  CHECK(m.layers_per_stage == std::vector<int>{5, 7});
  CHECK(m.recomputed_layers == std::vector<int>{0, 6});
  CHECK(m.partition == std::vector<int>{0, 15, 30});
  REQUIRE(m.stage_replicas.size() == 2);
  CHECK(m.stage_replicas[0] == std::vector<ReplicaFacts>{{"A100", 4}, {"V100", 1}});
  CHECK(m.stage_replicas[1] == std::vector<ReplicaFacts>{{"T4", 2}});
  CHECK(m.stage_gpus == std::vector<int>{4, 2});
  CHECK(m.stage_tp == std::vector<std::vector<int>>{{4}, {1, 2}});
  CHECK(m.stage_operators == std::vector<int>{30, 31});
  CHECK(m.stage_recomputed_operators == std::vector<int>{9, 0});
  CHECK(m.uneven());
}

TEST_CASE("rates become times") {
  // 64 samples of 1000 tokens at 32000 tokens/s: 2 s; at 4000 tokens/s on each of 16 GPUs: 1 s.
  const std::string batch = R"("gpus": [{"count": 12}, {"count": 4}], "gbs": 64, "seq": 1000, )";
  CHECK(row(batch + R"("tokens_per_s": 32000)").iteration_s == Approx(2));
  CHECK_FALSE(row(batch + R"("tokens_per_s": 32000)").derived);
  CHECK(row(batch + R"("tokens_per_s_per_gpu": 4000)").iteration_s == Approx(1));
  CHECK(row(batch + R"("tokens_per_s": 32000, "derived_iter_time_s": 9)").iteration_s == Approx(2));
  CHECK(row(batch + R"("derived_iter_time_s": 9)").iteration_s == 9);
  CHECK(row(batch + R"("derived_iter_time_s": 9)").derived);
  CHECK(row(batch + R"("tokens_per_s": 32000, "iter_time_s": 1.9)").iteration_s == 1.9);
  CHECK(row(batch + R"("tokens_per_s": 0)").iteration_s == 0);
  CHECK(row(R"("seq": 1000, "tokens_per_s": 32000)").iteration_s == 0);
  // 72 * 64 * 1000 * 24 * 1024^2 * (1 + 1000 / 6144 + 51200 / (16 * 24 * 1024)) FLOPs on 16 GPUs of 100 TFLOP/s; a full
  // recompute is a third more.
  const std::string model = batch + R"("model": {"layers": 24, "hidden": 1024, "vocab": 51200}, "tflops_per_gpu": 100)";
  const double flops = 72.0 * 64 * 1000 * 24 * 1024 * 1024 * (1 + 1000 / 6144.0 + 51200 / (16.0 * 24 * 1024));
  CHECK(row(model).iteration_s == Approx(flops / 1600e12));
  CHECK(row(model + R"(, "recompute": "full")").iteration_s == Approx(4.0 / 3 * flops / 1600e12));
  CHECK(row(model).derived);
}

TEST_CASE("the batch of an iteration follows from that of a rank") {
  // 4 samples, 8 times, on 2 replicas; a rank's 16 samples on 2 replicas.
  CHECK(row(R"("mbs": 4, "grad_accum": 8, "dp": 2)").global_batch == 64);
  CHECK(row(R"("mbs": 4, "dp": 2)").global_batch == 8);
  const Measurement local = row(R"("mbs_local": 16, "dp": 2)");
  CHECK(local.global_batch == 32);
  CHECK(local.microbatch == 16);
  const Measurement piped = row(R"("mbs_local": 16, "dp": 2, "pp": 4)");
  CHECK(piped.global_batch == 32);
  CHECK(piped.microbatch == 1);
  CHECK(row(R"("mbs": 4, "grad_accum": 8, "dp": 2, "gbs": 60)").global_batch == 60);
  CHECK_FALSE(row(R"("mbs": 4, "grad_accum": 8)").global_batch);
  // 10^18 samples are a slip of the pen.
  CHECK_FALSE(row(R"("mbs": 1000000, "grad_accum": 1000000, "dp": 1000000)").global_batch);
}

TEST_CASE("memory is read in four units") {
  CHECK(row(R"("max_mem_bytes": 1024)").peak_memory == 1024);
  CHECK(row(R"("max_mem_gib": 2)").peak_memory == 2 * kGiB);
  CHECK(row(R"("max_mem_gb": 2)").peak_memory == 2 * kGiB);
  CHECK(row(R"("max_mem_gb": 2, "memory_unit": "GB")").peak_memory == 2e9);
  CHECK(row(R"("max_mem_gb": 2, "source": "Megatron-Bridge's page")").peak_memory == 2e9);
  CHECK(row(R"("max_mem_gb": 2, "source": "Megatron-Bridge's page", "memory_unit": "GiB")").peak_memory == 2 * kGiB);
  CHECK_FALSE(row(R"("max_mem_gb": 2)").of_allocator);
  CHECK(row(R"("max_mem_mb": 512)").peak_memory == kGiB / 2);
  CHECK(row(R"("max_mem_mb": 512)").of_allocator);
  const Measurement stages = row(R"("stage_peak_allocated": "[18506.5 MB, 20480 MB, 13406MB]")");
  CHECK(stages.peak_memory == 20 * kGiB);
  CHECK(stages.of_allocator);
  CHECK(row(R"("stage_peak_allocated": "none")").peak_memory == 0);
  CHECK_FALSE(row("").of_allocator);
}

TEST_CASE("texts of any length are read without running out of stack") {
  const std::string digits(300'000, '7');
  CHECK(row(R"("stage_peak_allocated": ")" + digits + R"( MB")").peak_memory == 0);
  CHECK(row(R"("stage_peak_allocated": "5)" + std::string(300'000, ' ') + R"(MB")").peak_memory == 0);
}

TEST_CASE("software and what memory was read from are facts of a row") {
  const Measurement m = row(R"("framework": "Megatron-DeepSpeed", "launch_blocking": true, "max_mem_gb": 40,
    "memory_from": "nvidia-smi")");
  CHECK(m.framework == "Megatron-DeepSpeed");
  CHECK(m.launch_blocking);
  CHECK(m.of_driver);
  const Measurement plain = row(R"("max_mem_gb": 40)");
  CHECK_FALSE(plain.launch_blocking);
  CHECK_FALSE(plain.of_driver);
  CHECK_FALSE(plain.of_allocator);
  CHECK(row(R"("max_mem_gb": 40, "memory_from": "allocator")").of_allocator);
}
