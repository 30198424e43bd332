#include "files.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

// A config of `type` with the common keys of small size; `extra` adds or repeats none of them.
Model import(const std::string& type, const std::string& extra = {}) {
  const std::string text = R"({"model_type": ")" + type +
                           R"(", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 8, "vocab_size": 100, "max_position_embeddings": 2048)" +
                           (extra.empty() ? "" : ", " + extra) + "}";
  return valid(read_hf_config(text, "dir/config.json"));
}

std::string windows(const Model& model) {
  std::string out;
  for (int i = 0; i < model.block_count(); ++i) out += model.block(i).attention.sliding_window > 0 ? 'w' : '-';
  return out;
}

std::string experts(const Model& model) {
  std::string out;
  for (int i = 0; i < model.block_count(); ++i) out += model.block(i).feed_forward.is_moe() ? 'm' : 'd';
  return out;
}

}  // namespace

TEST_CASE("hugging face: the job a bare config gets") {
  const Model model = import("llama");
  CHECK(model.name == "dir");
  CHECK(model.job.sequence_length == 2048);
  CHECK(model.job.global_batch == 256);
  CHECK(model.job.precision == DType::kBf16);
  CHECK(model.job.optimizer.state_bytes_per_parameter == 12);
  CHECK(model.assumed ==
        "the model file says nothing of the job: a batch of 256 samples and samples of 2048 tokens are taken; "
        "--global-batch and --seq-len say otherwise");
  const std::string text = R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 256,
    "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 100, "max_position_embeddings": 2048})";
  CHECK(valid(read_hf_config(text, "c.json", {1024, {}, {}})).assumed ==
        "the model file says nothing of the job: a batch of 256 samples is taken; --global-batch says otherwise");
  CHECK(valid(read_hf_config(text, "c.json", {1024, 8, {}})).assumed.empty());
  CHECK(hf_model("llama-3.1-405b").job.sequence_length == 4096);  // made for 131072
  CHECK(hf_model("gpt2").job.sequence_length == 1024);
}

TEST_CASE("hugging face: null is absent, keys of no interest are passed over") {
  const Model model = import("llama", R"("head_dim": null, "num_key_value_heads": null, "rope_scaling": {"a": [1]})");
  CHECK(model.types[0].attention.head_dim == 8);
  CHECK(model.types[0].attention.kv_heads == 8);
}

TEST_CASE("hugging face: defaults of the families") {
  CHECK_FALSE(import("llama").tied_embeddings);
  CHECK(import("llama", R"("tie_word_embeddings": true)").tied_embeddings);
  CHECK(import("gemma", R"("num_key_value_heads": 8)").tied_embeddings);
  CHECK(import("gemma", R"("num_key_value_heads": 8)").types[0].attention.head_dim == 256);
  CHECK(import("mistral").types[0].attention.kv_heads == 8);
  CHECK(import("phi3").types[0].attention.kv_heads == 8);  // as many as heads
  CHECK_FALSE(import("phi3", R"("attention_bias": true)").types[0].attention.qkv_bias);
  CHECK(import("qwen2", R"("num_key_value_heads": 4)").types[0].attention.qkv_bias);
  CHECK_FALSE(import("qwen2", R"("num_key_value_heads": 4)").types[0].attention.output_bias);
  CHECK(import("qwen3", R"("num_key_value_heads": 4)").types[0].attention.qk_norm);
  CHECK(import("llama", R"("attention_bias": true)").types[0].attention.output_bias);
  CHECK(import("llama", R"("mlp_bias": true)").types[0].feed_forward.bias);

  const Model neox = import("gpt_neox");
  CHECK(neox.types[0].parallel_attention);
  CHECK(neox.types[0].norm_bias);
  CHECK(neox.final_norm_bias);
  CHECK_FALSE(neox.types[0].feed_forward.gated);
  CHECK_FALSE(import("gpt_neox", R"("use_parallel_residual": false)").types[0].parallel_attention);
}

TEST_CASE("hugging face: sliding windows") {
  JobOverrides longer;
  longer.sequence_length = 8192;
  const auto at_8k = [&](const std::string& name) {
    const std::string path = source_path("configs/models/hf/" + name + ".json");
    return valid(read_hf_config(content(path), path, longer));
  };
  CHECK(at_8k("mistral-7b").types[0].attention.sliding_window == 4096);
  CHECK(windows(at_8k("gemma-2-9b")).substr(0, 6) == "w-w-w-");
  CHECK(windows(hf_model("gpt-neo-2.7b")).substr(0, 6) == "-w-w-w");
  CHECK(windows(at_8k("gpt-oss-20b")).substr(0, 6) == "w-w-w-");
  const std::string oss = R"("num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 64, )";
  CHECK(windows(import("gpt_oss", oss + R"("layer_types": ["full_attention", "sliding_attention"])")) == "-ww-");
  CHECK(windows(import("mistral", R"("sliding_window": null)")) == "----");
  CHECK(windows(import("phi3", R"("sliding_window": 64)")) == "wwww");
  CHECK(windows(import("phi3")) == "----");
  const std::string qwen = R"("num_key_value_heads": 4, "sliding_window": 64, "max_window_layers": 3, )";
  CHECK(windows(import("qwen2", qwen + R"("use_sliding_window": true)")) == "---w");
  CHECK(windows(import("qwen2", qwen + R"("use_sliding_window": false)")) == "----");
}

TEST_CASE("hugging face: which layers are mixtures of experts") {
  const std::string qwen =
      R"("num_key_value_heads": 4, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  CHECK(experts(import("qwen3_moe", qwen)) == "mmmm");
  CHECK(experts(import("qwen3_moe", qwen + R"(, "decoder_sparse_step": 2)")) == "dmdm");
  CHECK(experts(import("qwen3_moe", qwen + R"(, "mlp_only_layers": [0, 3])")) == "dmmd");
  CHECK(import("qwen3_moe", qwen + R"(, "mlp_only_layers": [0])").types[0].feed_forward.hidden == 256);
  const Model shared = import("qwen2_moe", qwen + R"(, "shared_expert_intermediate_size": 48)");
  CHECK(shared.types[0].feed_forward.shared_hidden == 48);
  CHECK(shared.types[0].feed_forward.shared_gate);

  const std::string deepseek = R"("kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8)";
  const std::string routed =
      deepseek +
      R"(, "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  CHECK(experts(import("deepseek_v2", deepseek)) == "dddd");
  const Model v2 = import("deepseek_v2", routed + R"(, "first_k_dense_replace": 1)");
  CHECK(experts(v2) == "dmmm");
  CHECK(v2.block(1).feed_forward.shared_hidden == 64);
  CHECK_FALSE(v2.block(1).feed_forward.router_bias);
  CHECK(experts(import("deepseek_v2", routed + R"(, "first_k_dense_replace": 1, "moe_layer_freq": 2)")) == "ddmd");
  CHECK(import("deepseek_v3", routed).block(1).feed_forward.router_bias);
}

TEST_CASE("hugging face: groups that a token's experts are in") {
  const std::string routed =
      R"("kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 16,)"
      R"( "num_experts_per_tok": 2, "moe_intermediate_size": 32)";
  const auto groups = [&](const std::string& type, const std::string& more) {
    const FeedForward f = import(type, routed + more).block(1).feed_forward;
    return std::pair(f.expert_groups, f.groups_per_token);
  };
  CHECK(groups("deepseek_v3", "") == std::pair(8, 4));
  CHECK(groups("deepseek_v3", R"(, "n_group": 4, "topk_group": 2)") == std::pair(4, 2));
  CHECK(groups("deepseek_v3", R"(, "n_group": 1, "topk_group": 1)") == std::pair(1, 1));
  const std::string limited = R"(, "n_group": 8, "topk_group": 3, "topk_method": )";
  CHECK(groups("deepseek_v2", limited + R"("group_limited_greedy")") == std::pair(8, 3));
  CHECK(groups("deepseek_v2", limited + R"("greedy")") == std::pair(1, 1));
  const FeedForward v3 = hf_model("deepseek-v3").types.back().feed_forward;
  CHECK(std::pair(v3.expert_groups, v3.groups_per_token) == std::pair(8, 4));
  CHECK(hf_model("kimi-k2").types.back().feed_forward.expert_groups == 1);
}

TEST_CASE("hugging face: OPT-350M has projections and no final norm") {
  const Model model = hf_model("opt-350m");
  CHECK(model.embedding_projection == 512);
  CHECK_FALSE(model.final_norm);
  CHECK(model.learned_positions == 2050);
  // Rows 2049 and 2050 serve the offset: a sequence may not use them.
  JobOverrides longer;
  longer.sequence_length = 2049;
  const std::string path = source_path("configs/models/hf/opt-350m.json");
  const auto refused = read_hf_config(content(path), path, longer);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().message == "sequence length 2049 is longer than the 2048 learned positions");
}

TEST_CASE("hugging face: Falcon's two generations") {
  const Model falcon = hf_model("falcon-7b");
  CHECK(falcon.types[0].attention.kv_heads == 1);
  CHECK(falcon.types[0].norms == 1);
  const Model grouped = import("falcon", R"("new_decoder_architecture": true, "num_kv_heads": 2)");
  CHECK(grouped.types[0].attention.kv_heads == 2);
  CHECK(grouped.types[0].norms == 2);
}

TEST_CASE("hugging face: told from tangram.model/1 by content") {
  const std::string path = source_path("configs/models/hf/gpt2.json");
  CHECK(valid(read_any_model(content(path), path)).block_count() == 12);
  CHECK(valid(read_any_model(write_model(hf_model("gpt2")), "x.json")).block_count() == 12);
}
