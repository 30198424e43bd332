#include "files.hpp"
#include "tangram/model/slice.hpp"
#include "tangram/model/techniques.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

// `architecture` and `training` are bodies of flow mappings.
std::string text_of_file(const std::string& architecture, const std::string& training) {
  return "schema: tangram.model/1\nname: test\narchitecture: {" + architecture + "}\ntraining: {" + training + "}\n";
}

Model read(const std::string& architecture, const std::string& training, const JobOverrides& overrides = {}) {
  return valid(read_model(text_of_file(architecture, training), "test.yaml", overrides));
}

const std::string kDense = "vocabulary: 100, hidden: 8, layers: 4, heads: 2, ffn_hidden: 32";
const std::string kTraining = "sequence_length: 16, global_batch_samples: 8";

}  // namespace

TEST_CASE("read: defaults") {
  const Model model = read(kDense, kTraining);
  CHECK(model.name == "test");
  CHECK(model.block_count() == 4);
  REQUIRE(model.types.size() == 1);
  const BlockType& block = model.types[0];
  CHECK(block.name == "dense");
  CHECK(block.tokens == 16);
  CHECK(block.attention.kv_heads == 2);
  CHECK(block.attention.head_dim == 4);
  CHECK(block.attention.causal);
  CHECK(block.feed_forward.gated);
  CHECK(block.norms == 2);
  CHECK_FALSE(model.tied_embeddings);
  CHECK(model.job.global_batch == 8);
  CHECK(model.job.precision == DType::kBf16);
  CHECK(model.job.microbatch == 0);
  CHECK(model.job.allow == Techniques{});
  CHECK(model.job.loss_normalization == "global_token_mean");
}

TEST_CASE("read: bytes per parameter follow precision and optimizer") {
  // Megatron-LM's dist_optimizer documentation: 18 bytes with bf16 parameters, 16 with fp32.
  const auto bytes = [](const std::string& extra) {
    const Job job = read(kDense, kTraining + extra).job;
    return std::vector<std::int64_t>{job.parameter_bytes, job.gradient_bytes, job.optimizer.state_bytes_per_parameter};
  };
  using List = std::vector<std::int64_t>;
  CHECK(bytes("") == List{2, 4, 12});
  CHECK(bytes(", precision: fp8") == List{2, 4, 12});
  CHECK(bytes(", precision: fp4") == List{2, 4, 12});
  CHECK(bytes(", precision: fp16") == List{2, 2, 12});
  CHECK(bytes(", precision: fp32") == List{4, 4, 8});
  CHECK(bytes(", precision: tf32") == List{4, 4, 8});
  CHECK(bytes(", optimizer: sgd") == List{2, 4, 8});
  CHECK(bytes(", optimizer: {name: sgd}, precision: fp32") == List{4, 4, 4});
  CHECK(bytes(", optimizer: {name: adam8bit}") == List{2, 4, 6});
  CHECK(bytes(", optimizer: {name: mine, state_bytes_per_parameter: 9}") == List{2, 4, 9});
  CHECK(bytes(", optimizer: {state_bytes_per_parameter: 16}, gradient_bytes_per_parameter: 2") == List{2, 2, 16});
}

TEST_CASE("read: a precision-aware optimizer keeps of bf16 parameters' master copy what they lack") {
  const auto job = [](const std::string& precision) {
    return read(kDense, kTraining + ", optimizer: {precision_aware: true}, precision: " + precision).job;
  };
  const auto bytes = [&](const std::string& precision) { return job(precision).optimizer.state_bytes_per_parameter; };
  CHECK(bytes("bf16") == 10);
  CHECK(bytes("fp16") == 12);
  CHECK(bytes("fp4") == 10);
  CHECK(bytes("fp8") == 10);
  CHECK(bytes("fp8, fp8_recipe: tensorwise") == 12);
  CHECK(bytes("fp8, narrow_parameters: true") == 12);
  CHECK(reads_main_gradients(job("fp16")));
  CHECK(reads_main_gradients(job("fp8")));
  CHECK_FALSE(reads_main_gradients(job("fp8, fp8_recipe: mxfp8")));
  CHECK_FALSE(reads_main_gradients(read(kDense, kTraining).job));
  CHECK(read(kDense, kTraining + ", optimizer: {precision_aware: true, state_bytes_per_parameter: 6}")
            .job.optimizer.state_bytes_per_parameter == 6);
  const Model model = read(kDense, kTraining + ", optimizer: {name: adamw, precision_aware: true}");
  CHECK(valid(read_model(write_model(model), "copy.json")).job == model.job);
}

TEST_CASE("read: layers at either end that compute in 16 bits are types of their own, under fp8 and fp4 alone") {
  const auto widths = [](const Model& model) {
    std::string text;
    for (int b = 0; b < model.block_count(); ++b) text += model.block(b).wide ? 'w' : '-';
    return text;
  };
  const std::string five_layers = "vocabulary: 100, hidden: 8, layers: 5, heads: 2, ffn_hidden: 32";
  const std::string wide = ", wide_layers: {first: 1, last: 2}, precision: ";
  const Model model = read(five_layers, kTraining + wide + "fp4");
  CHECK(widths(model) == "w--ww");
  CHECK(model.types.size() == 2);
  CHECK(widths(read(five_layers, kTraining + wide + "bf16")) == "-----");
  const Model again = valid(read_model(write_model(model), "copy.json"));
  CHECK(again.types == model.types);
  CHECK(again.blocks == model.blocks);
  CHECK(again.job == model.job);
  CHECK(own_job(model.block(0), model.job)->precision == DType::kBf16);
  CHECK_FALSE(own_job(model.block(1), model.job));
  const Model all = read(five_layers, kTraining + ", wide_layers: {first: 9}, precision: fp8");
  CHECK(widths(all) == "wwwww");
}

TEST_CASE("read: a batch in tokens is a batch of whole samples") {
  CHECK(read(kDense, "sequence_length: 16, global_batch_tokens: 64").job.global_batch == 4);
}

TEST_CASE("read: overrides come before the checks") {
  JobOverrides longer;
  longer.sequence_length = 32;
  const Model model = read(kDense, "sequence_length: 16, global_batch_tokens: 64", longer);
  CHECK(model.job.sequence_length == 32);
  CHECK(model.types[0].tokens == 32);
  CHECK(model.job.global_batch == 2);
  JobOverrides batch;
  batch.global_batch = 6;
  batch.microbatch = 3;
  CHECK(read(kDense, kTraining + ", microbatch: 4", batch).job.microbatch == 3);

  JobOverrides wrong;
  wrong.sequence_length = 0;
  const auto refused = read_model("", "x.yaml", wrong);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().kind == ErrorKind::kUsage);
}

TEST_CASE("read: allow and forbid") {
  Techniques only = no_techniques();
  only.tp = only.zero1 = only.zero2 = only.zero3 = true;
  CHECK(read(kDense, kTraining + ", allow: [tp, zero]").job.allow == only);
  Techniques most;
  most.recompute_selective = most.recompute_full = most.mixed_stages = false;
  CHECK(read(kDense, kTraining + ", forbid: [recompute, mixed-stages]").job.allow == most);
  CHECK(read(kDense, kTraining + ", forbid: ep").job.allow.ep == false);
  CHECK(read(kDense, kTraining + ", forbid: [pp, mixed]").job.allow ==
        read(kDense, kTraining + ", forbid: [pipeline, mixed_stages]").job.allow);
  CHECK(read(kDense, kTraining + ", forbid: pp").job.allow.pipeline == false);
  Techniques all;
  for (const TechniqueName& name : technique_names()) CHECK(set_technique(all, name.name, false));
  CHECK(all == no_techniques());
  CHECK_FALSE(set_technique(all, "magic", true));
}

TEST_CASE("read: first layers dense, then every n-th a mixture of experts") {
  const std::string moe = ", moe: {experts: 4, experts_per_token: 2, expert_hidden: 16, ";
  const std::string base = "vocabulary: 100, hidden: 8, layers: 6, heads: 2, ffn_hidden: 32";
  const auto kinds = [](const Model& model) {
    std::string out;
    for (int i = 0; i < model.block_count(); ++i) out += model.block(i).feed_forward.is_moe() ? 'm' : 'd';
    return out;
  };
  CHECK(kinds(read(base + moe + "first_dense_layers: 2}", kTraining)) == "ddmmmm");
  CHECK(kinds(read(base + moe + "every: 2}", kTraining)) == "dmdmdm");
  CHECK(kinds(read(base + moe + "first_dense_layers: 3, every: 2}", kTraining)) == "dddmdm");
  const Model model = read(base + moe + "first_dense_layers: 2}", kTraining);
  CHECK(model.block(0).feed_forward.hidden == 32);
  CHECK(model.block(5).feed_forward.hidden == 0);
}

TEST_CASE("read: windows that span the sequence are none") {
  const std::string windowed = kDense + ", sliding_window: 8, full_attention_every: 2";
  const Model model = read(windowed, kTraining);
  REQUIRE(model.types.size() == 2);
  CHECK(model.types[0].name == "dense-window");
  CHECK(model.types[1].name == "dense");
  CHECK(model.blocks == std::vector<int>{0, 1, 0, 1});
  CHECK(read(windowed, "sequence_length: 8, global_batch_samples: 8").types.size() == 1);
}

TEST_CASE("read: encoders come before the decoder and see both ways") {
  const Model model = read(kDense +
                               ", encoders: [{name: vision, hidden: 6, layers: 2, heads: 2, ffn_hidden: 24,"
                               " tokens_per_sample: 9, patch_parameters: 50, projector_parameters: 7}]",
                           kTraining);
  CHECK(model.blocks == std::vector<int>{0, 0, 1, 1, 1, 1});
  CHECK(model.types[0].name == "vision");
  CHECK(model.types[0].tokens == 9);
  CHECK(model.types[0].hidden == 6);
  CHECK_FALSE(model.types[0].attention.causal);
  CHECK(model.types[1].attention.causal);
  CHECK(model.embedding_parameters() == 100 * 8 + 57);
  // The image of 9 x 6 values and the text of 16 x 8, two bytes each.
  CHECK(cut_bytes(model, 1) == 2 * (54 + 128));
  CHECK(cut_bytes(model, 3) == 2 * 128);
}

TEST_CASE("read: the explicit form says the same") {
  const Model uniform = read(kDense, kTraining);
  const Model spelt = read(
      "vocabulary: 100, hidden: 8, types: [{name: dense, heads: 2, ffn_hidden: 32}], blocks: [{type: dense, count: 3},"
      " {type: dense}]",
      kTraining);
  CHECK(write_model(uniform) == write_model(spelt));
  CHECK(uniform.digest == spelt.digest);
}

TEST_CASE("read: the digest is of the content") {
  const Model model = read(kDense, kTraining);
  CHECK(model.digest == read(kDense + ", gated: true", kTraining).digest);
  CHECK(model.digest != read(kDense + ", gated: false", kTraining).digest);
  CHECK(model.digest != read(kDense, kTraining + ", precision: fp16").digest);
}

TEST_CASE("read: every shipped job is valid and written as it was read") {
  const std::vector<std::string> jobs = files_of("configs/models", ".yaml");
  CHECK(jobs.size() >= 16);
  for (const std::string& path : jobs) {
    INFO(path);
    const Model model = valid(read_any_model(content(path), path));
    CHECK(model.name == std::filesystem::path(path).stem().string());
    const std::string text = write_model(model);
    const Model again = valid(read_model(text, "copy.json"));
    CHECK(write_model(again) == text);
    CHECK(again.digest == model.digest);
    CHECK(again.types == model.types);
    CHECK(again.blocks == model.blocks);
    CHECK(again.job == model.job);
    CHECK(again.total_parameters() == model.total_parameters());
    CHECK(again.head_parameters() == model.head_parameters());
    CHECK(again.embedding_projection == model.embedding_projection);
    CHECK(model_flops_per_iteration(again).value() == model_flops_per_iteration(model).value());
  }
}

TEST_CASE("read: the written form keeps what is not a default") {
  const Model model = read(
      "vocabulary: 100, hidden: 8, layers: 2, tied_embeddings: true, norm: layernorm, final_norm: false,"
      " learned_positions: 20, embedding_projection: 4, extra_embedding_parameters: 3, parallel_attention: true,"
      " norms_per_block: 1, heads: 2, mla: {kv_lora_rank: 4, qk_nope_head_dim: 3, qk_rope_head_dim: 1, v_head_dim: 2},"
      " sliding_window: 5, causal: false, qkv_bias: true, output_bias: true, gated: false, ffn_bias: true,"
      " moe: {experts: 4, experts_per_token: 2, expert_hidden: 16, shared_hidden: 8, shared_gate: true,"
      " router_bias: true, expert_groups: 2, groups_per_token: 1}",
      kTraining +
          ", precision: fp32, optimizer: {name: mine, state_bytes_per_parameter: 5}, flash_attention: false,"
          " gradient_bytes_per_parameter: 2, loss_normalization: sample_mean, microbatch: 4, forbid: [cp, zero],"
          " attention_kernel: native, fused_kernels: true, eager_operators: [gates, norms], cuda_graphs: step, "
          "grouped_gemm: "
          "true, expert_dispatch: "
          "hybridep, "
          "context_exchange: all-to-all,"
          " overlap_expert_communication: true, routing_imbalance: 1.25, recompute_modules: [moe, layernorm],"
          " in_place_loss: true, fused_loss: te, overlap_parameter_gather: true, gradient_bucket: 128, fp8_recipe: "
          "mxfp8,"
          " narrow_parameters: true, narrow_inputs: false, wide_experts: true");
  CHECK(model.job.fp8_recipe == Fp8Recipe::kMxfp8);
  CHECK(model.job.narrow_parameters);
  CHECK_FALSE(model.job.narrow_inputs);
  CHECK(model.job.wide_experts);
  CHECK(model.job.attention_kernel == AttentionKernel::kNative);
  CHECK(model.job.fused_kernels);
  CHECK(model.job.eager_operators == model::EagerOperators{EagerOperator::kNorms, EagerOperator::kGates});
  CHECK(model.job.cuda_graphs == model::kGraphOfStep);
  CHECK(model.job.grouped_gemm);
  CHECK(model.job.expert_dispatch == ExpertDispatch::kHybridEp);
  CHECK(model.job.context_exchange == ContextExchange::kAllToAll);
  CHECK(model.job.overlap_experts);
  CHECK(model.job.routing_imbalance == 1.25);
  CHECK(model.job.in_place_loss);
  CHECK(model.job.fused_loss == FusedLoss::kTransformerEngine);
  CHECK(model.job.overlap_gather);
  CHECK(model.job.gradient_bucket == 128);
  CHECK(model.job.recompute_modules == RecomputeModules{RecomputeModule::kExperts, RecomputeModule::kNorms});
  const Model again = valid(read_model(write_model(model), "copy.json"));
  CHECK(again.types == model.types);
  CHECK(again.job == model.job);
  CHECK(write_model(again) == write_model(model));
  CHECK(again.total_parameters() == model.total_parameters());
  CHECK(again.learned_positions == 20);
  CHECK_FALSE(again.final_norm);
}

TEST_CASE("read: weights in 8 bits may be transposed in each backward pass, but for scales of 32 values") {
  const auto text = [](const std::string& more) { return kTraining + ", transpose_cache: false" + more; };
  const Model model = read(kDense, text(", precision: fp8, fp8_recipe: blockwise"));
  CHECK_FALSE(model.job.transpose_cache);
  CHECK(valid(read_model(write_model(model), "copy.json")).job == model.job);
  CHECK(read(kDense, kTraining).job.transpose_cache);
  for (const char* other : {"", ", precision: fp4", ", precision: fp8, fp8_recipe: mxfp8"}) {
    INFO(other);
    const auto refused = read_model(text_of_file(kDense, text(other)), "test.yaml");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().front().code == "conflicting-keys");
  }
}

TEST_CASE("read: gate and up may be kept in 8 bits where they have 16") {
  const Model model = read(kDense, kTraining + ", narrow_gates: true");
  CHECK(model.job.narrow_gates);
  CHECK(valid(read_model(write_model(model), "copy.json")).job == model.job);
  const auto refused =
      read_model(text_of_file(kDense, kTraining + ", narrow_gates: true, precision: fp32"), "test.yaml");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "conflicting-keys");
}

TEST_CASE("read: the ranks that ZeRO shards over are a word or a number") {
  using Kind = ShardingGroup::Kind;
  const auto group = [](const std::string& text) {
    const Model model = read(kDense, kTraining + text);
    CHECK(valid(read_model(write_model(model), "copy.json")).job.sharding_group == model.job.sharding_group);
    return model.job.sharding_group;
  };
  CHECK(group("") == ShardingGroup{});
  CHECK(group(", sharding_group: any") == ShardingGroup{});
  CHECK(group(", sharding_group: all") == ShardingGroup{Kind::kAll, 0});
  CHECK(group(", sharding_group: node") == ShardingGroup{Kind::kNode, 0});
  CHECK(group(", sharding_group: 8") == ShardingGroup{Kind::kRanks, 8});
}

TEST_CASE("read: a name is the file's where none is given") {
  const std::string text = "schema: tangram.model/1\narchitecture: {" + kDense + "}\ntraining: {" + kTraining + "}\n";
  CHECK(valid(read_model(text, "/a/b/small.yaml")).name == "small");
  CHECK(valid(read_model(text, "-")).name == "model");
}
