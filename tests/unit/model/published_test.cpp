// Parameter counts against what the publishers say. "Exact" counts are sums over the tensors of the published weights
// (Hugging Face shows them from the safetensors headers); they must match to the last parameter. Rounded ones come
// from papers and model cards.
#include <cmath>

#include "files.hpp"
#include "tangram/model/slice.hpp"

using namespace tangram::model;
using namespace tangram::model::test;

namespace {

struct Exact {
  const char* file;
  std::int64_t parameters;
};

void check_exact(const Exact& expected) {
  INFO(expected.file);
  CHECK(hf_model(expected.file).total_parameters() == expected.parameters);
}

double billions(std::int64_t count) { return static_cast<double>(count) / 1e9; }

}  // namespace

TEST_CASE("published: Llama 2, meta-llama/Llama-2-{7b,13b,70b}-hf") {
  check_exact({"llama-2-7b", 6'738'415'616});
  check_exact({"llama-2-13b", 13'015'864'320});
  check_exact({"llama-2-70b", 68'976'648'192});
}

TEST_CASE("published: Llama 3, meta-llama/Meta-Llama-3-{8B,70B}, Llama-3.1-405B and Llama-3.2-3B") {
  check_exact({"llama-3-8b", 8'030'261'248});
  check_exact({"llama-3-70b", 70'553'706'496});
  check_exact({"llama-3.1-405b", 405'853'388'800});
  check_exact({"llama-3.2-3b", 3'212'749'824});
}

TEST_CASE("published: Qwen2 and Qwen2.5, Qwen/Qwen2-7B and Qwen2.5-{7B,72B}") {
  check_exact({"qwen2-7b", 7'615'616'512});
  check_exact({"qwen2.5-7b", 7'615'616'512});
  check_exact({"qwen2.5-72b", 72'706'203'648});
}

TEST_CASE("published: Qwen3, Qwen/Qwen3-{8B,32B,30B-A3B,235B-A22B}") {
  check_exact({"qwen3-8b", 8'190'735'360});
  check_exact({"qwen3-32b", 32'762'123'264});
  check_exact({"qwen3-30b-a3b", 30'532'122'624});
  check_exact({"qwen3-235b-a22b", 235'093'634'560});
  // Model cards: "3.3B activated", "22B activated", both to the digits given.
  CHECK(std::abs(billions(hf_model("qwen3-30b-a3b").active_parameters()) - 3.3) < 0.06);
  CHECK(std::abs(billions(hf_model("qwen3-235b-a22b").active_parameters()) - 22) < 0.5);
}

TEST_CASE("published: Qwen1.5-MoE, Qwen/Qwen1.5-MoE-A2.7B") {
  check_exact({"qwen1.5-moe-a2.7b", 14'315'784'192});
  // Model card: 14.3B in total, 2.7B activated.
  CHECK(std::abs(billions(hf_model("qwen1.5-moe-a2.7b").active_parameters()) - 2.7) < 0.05);
}

TEST_CASE("published: Mistral and Mixtral, mistralai/Mistral-7B-v0.1, Mixtral-8x7B-v0.1, Mixtral-8x22B-v0.1") {
  check_exact({"mistral-7b", 7'241'732'096});
  check_exact({"mixtral-8x7b", 46'702'792'704});
  check_exact({"mixtral-8x22b", 140'620'634'112});
  // Mistral AI, "Mixtral of experts": 12.9B used per token; "Cheaper, better, faster, stronger": 39B of 141B.
  CHECK(billions(hf_model("mixtral-8x7b").active_parameters()) == Approx(12.9).epsilon(0.005));
  CHECK(std::abs(billions(hf_model("mixtral-8x22b").active_parameters()) - 39) < 0.5);
}

TEST_CASE("published: Gemma, google/gemma-{2b,7b} and gemma-2-9b") {
  check_exact({"gemma-2b", 2'506'172'416});
  check_exact({"gemma-7b", 8'537'680'896});
  check_exact({"gemma-2-9b", 9'241'705'984});
}

TEST_CASE("published: EleutherAI/gpt-neox-20b, pythia-{160m,410m,1b,1.4b,2.8b,6.9b,12b}, gpt-neo-2.7B") {
  check_exact({"gpt-neox-20b", 20'554'567'680});  // Black et al., arXiv 2204.06745, section 2.1, says the same
  check_exact({"pythia-1.4b", 1'414'647'808});    // Biderman et al., arXiv 2304.01373, table 1
  check_exact({"pythia-2.8b", 2'775'208'960});    // the same
  check_exact({"gpt-neo-2.7b", 2'651'307'520});
  // Biderman et al., table 1.
  check_exact({"pythia-160m", 162'322'944});
  check_exact({"pythia-410m", 405'334'016});
  check_exact({"pythia-1b", 1'011'781'632});
  check_exact({"pythia-6.9b", 6'857'302'016});
  check_exact({"pythia-12b", 11'846'072'320});
}

TEST_CASE("published: OPT, facebook/opt-{125m,350m,1.3b,2.7b,6.7b,30b}; 175B by its name") {
  check_exact({"opt-125m", 125'239'296});
  check_exact({"opt-350m", 331'196'416});
  check_exact({"opt-1.3b", 1'315'758'080});
  check_exact({"opt-2.7b", 2'651'596'800});
  check_exact({"opt-6.7b", 6'658'473'984});
  check_exact({"opt-30b", 29'974'540'288});
  // Zhang et al., arXiv 2205.01068, table 1: 175B.
  CHECK(billions(hf_model("opt-175b").total_parameters()) == Approx(175).epsilon(0.005));
}

TEST_CASE("published: openai-community/gpt2, gpt2-medium, gpt2-large and gpt2-xl") {
  check_exact({"gpt2", 124'439'808});
  check_exact({"gpt2-medium", 354'823'168});
  check_exact({"gpt2-large", 774'030'080});
  check_exact({"gpt2-xl", 1'557'611'200});
}

TEST_CASE("published: TinyLlama/TinyLlama-1.1B") { check_exact({"tinyllama-1.1b", 1'100'048'384}); }

TEST_CASE("published: tiiuae/falcon-7b and falcon-40b") {
  check_exact({"falcon-7b", 6'921'720'704});
  check_exact({"falcon-40b", 41'835'970'560 - 65'024 * 8'192});  // the tied matrix is stored twice
}

TEST_CASE("published: DeepSeek-V2 and V2-Lite, deepseek-ai/DeepSeek-V2, DeepSeek-V2-Lite") {
  check_exact({"deepseek-v2", 235'741'434'880});
  check_exact({"deepseek-v2-lite", 15'706'484'224});
  // arXiv 2405.04434: 236B and 21B activated; 15.7B and 2.4B activated. As its authors count, the input embedding, of
  // which a token reads one row, is not active (DeepSeek-V3, README_WEIGHTS.md).
  const auto active = [](const Model& m) { return billions(m.active_parameters() - m.embedding_parameters()); };
  CHECK(std::abs(active(hf_model("deepseek-v2")) - 21) < 0.5);
  CHECK(std::abs(active(hf_model("deepseek-v2-lite")) - 2.4) < 0.06);
}

TEST_CASE("published: DeepSeek-V3 without multi-token prediction, deepseek-ai/DeepSeek-V3 README_WEIGHTS.md") {
  const Model model = hf_model("deepseek-v3");
  CHECK(hf_model("deepseek-r1").total_parameters() == model.total_parameters());  // trained from it
  // Main model 671B; 36.7B activated with the output head and without the input embedding.
  CHECK(model.total_parameters() == 671'026'419'200);
  CHECK(billions(model.active_parameters() - model.embedding_parameters()) == Approx(36.7).epsilon(0.005));
  CHECK(model.types.size() == 2);
  CHECK(model.block(2).name == "dense");
  CHECK(model.block(3).name == "moe");
}

TEST_CASE("published: Moonlight, moonshotai/Moonlight-16B-A3B") {
  const Model model = hf_model("moonlight-16b-a3b");
  // Model card: 15.29B in total and 2.24B activated, both without embeddings. Hugging Face counts 15,960,111,936, 64
  // for each layer more.
  CHECK(model.total_parameters() == 15'960'111'936 - 27 * 64);
  const double ends = billions(model.embedding_parameters() + model.vocabulary * model.hidden);
  CHECK(std::abs(billions(model.total_parameters()) - ends - 15.29) < 0.005);
  CHECK(std::abs(billions(model.active_parameters()) - ends - 2.24) < 0.005);
}

TEST_CASE("published: Kimi K2, moonshotai/Kimi-K2-Base") {
  // Model card: 1T in total, 32B activated.
  const Model model = hf_model("kimi-k2");
  CHECK(std::abs(billions(model.total_parameters()) - 1000) < 50);
  CHECK(std::abs(billions(model.active_parameters() - model.embedding_parameters()) - 32) < 0.5);
}

TEST_CASE("published: gpt-oss, openai/gpt-oss-20b, arXiv 2508.10925, table 1") {
  const Model model = hf_model("gpt-oss-20b");
  // 20.91B in total, 3.61B active with the output head and without the input embedding; the 64 sinks of each of 24
  // layers are left out.
  check_exact({"gpt-oss-20b", 20'914'757'184 - 24 * 64});
  CHECK(std::abs(billions(model.active_parameters() - model.embedding_parameters()) - 3.61) < 0.005);
}

TEST_CASE("published: Llama 3.1, 3.2 and 3.3, meta-llama/Llama-3.1-{8B,70B}, Llama-3.2-1B, Llama-3.3-70B-Instruct") {
  check_exact({"llama-3.1-8b", 8'030'261'248});
  check_exact({"llama-3.1-70b", 70'553'706'496});
  check_exact({"llama-3.2-1b", 1'235'814'400});
  check_exact({"llama-3.3-70b", 70'553'706'496});
}

TEST_CASE("published: Llama's architecture: Code Llama, DeepSeek LLM, Yi, SOLAR, SmolLM2") {
  check_exact({"codellama-7b", 6'738'546'688});
  check_exact({"codellama-34b", 33'743'970'304});
  check_exact({"deepseek-llm-7b", 6'910'365'696});
  check_exact({"yi-6b", 6'061'035'520});
  check_exact({"yi-34b", 34'388'917'248});
  check_exact({"solar-10.7b", 10'731'524'096});
  check_exact({"smollm2-135m", 134'515'008});
  check_exact({"smollm2-360m", 361'821'120});
  check_exact({"smollm2-1.7b", 1'711'376'384});
}

TEST_CASE("published: Qwen2.5, Qwen/Qwen2.5-{0.5B,1.5B,3B,14B,32B}") {
  check_exact({"qwen2.5-0.5b", 494'032'768});
  check_exact({"qwen2.5-1.5b", 1'543'714'304});
  check_exact({"qwen2.5-3b", 3'085'938'688});
  check_exact({"qwen2.5-14b", 14'770'033'664});
  check_exact({"qwen2.5-32b", 32'763'876'352});
}

TEST_CASE("published: Qwen3, Qwen/Qwen3-{0.6B,1.7B,4B,14B}, Qwen3-Coder-480B-A35B-Instruct") {
  // The tied matrix of the first two is stored twice.
  check_exact({"qwen3-0.6b", 751'632'384 - 151'936 * 1'024});
  check_exact({"qwen3-1.7b", 2'031'739'904 - 151'936 * 2'048});
  check_exact({"qwen3-4b", 4'022'468'096});
  check_exact({"qwen3-14b", 14'768'307'200});
  check_exact({"qwen3-coder-480b-a35b", 480'154'875'392});
  CHECK(std::abs(billions(hf_model("qwen3-coder-480b-a35b").active_parameters()) - 35) < 0.5);  // its card
}

TEST_CASE(
    "published: Phi, microsoft/Phi-3-{mini,medium}-4k-instruct, Phi-3.5-mini-instruct, phi-4, Phi-4-mini-instruct") {
  check_exact({"phi-3-mini", 3'821'079'552});
  check_exact({"phi-3-medium", 13'960'238'080});
  check_exact({"phi-3.5-mini", 3'821'079'552});
  check_exact({"phi-4", 14'659'507'200});
  check_exact({"phi-4-mini", 3'836'021'760});
}

TEST_CASE("published: Gemma, google/gemma-2-{2b,27b} and gemma-3-1b-it") {
  check_exact({"gemma-2-2b", 2'614'341'888});
  check_exact({"gemma-2-27b", 27'227'128'320});
  check_exact({"gemma-3-1b", 999'885'952});
}

TEST_CASE("published: Mistral, mistralai/Mistral-7B-v0.3, Mistral-Nemo-, Mistral-Small-24B-, Ministral-8B-") {
  check_exact({"mistral-7b-v0.3", 7'248'023'552});
  check_exact({"mistral-nemo-12b", 12'247'782'400});
  check_exact({"mistral-small-24b", 23'572'403'200});
  check_exact({"ministral-8b", 8'019'808'256});
}

TEST_CASE("published: a trillion parameters, Narayanan et al., arXiv 2104.04473, table 1") {
  const std::string path = source_path("configs/models/gpt-1t.yaml");
  const Model model = valid(read_model(content(path), path));
  CHECK(billions(model.total_parameters()) == Approx(1008).epsilon(0.005));
}

TEST_CASE("published: FLOPs of an iteration, Narayanan et al., arXiv 2104.04473, equation 3") {
  // F = 72 B s l h^2 (1 + s/(6h) + V/(12 l h)) without recomputation counts the whole attention matrix. Half of it, as
  // here, is s/(12h).
  const std::string path = source_path("configs/models/gpt-1t.yaml");
  const Model model = valid(read_model(content(path), path));
  const double B = 3072, s = 2048, l = 128, h = 25600, V = 51200;
  const double expected = 72 * B * s * l * h * h * (1 + s / (12 * h) + V / (12 * l * h));
  CHECK(model_flops_per_iteration(model).value() == Approx(expected).epsilon(1e-9));
}

TEST_CASE("published: the sizes of further architectures, to the last parameter") {
  const auto parameters = [](const std::string& config) {
    INFO(config);
    return valid(read_hf_config("{" + config + "}", "config.json")).total_parameters();
  };
  // bigscience/bloom-560m, mosaicml/mpt-7b, microsoft/phi-2, EleutherAI/gpt-j-6b, bigcode/starcoderbase-1b and
  // starcoder2-3b.
  CHECK(parameters(R"("model_type": "bloom", "n_embed": 1024, "n_layer": 24, "num_attention_heads": 16,
                      "vocab_size": 250880)") == 559'214'592);
  CHECK(parameters(R"("model_type": "mpt", "d_model": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": 50432,
                      "expansion_ratio": 4, "max_seq_len": 2048)") == 6'649'286'656);
  CHECK(parameters(R"("model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 32,
                      "num_attention_heads": 32, "vocab_size": 51200, "hidden_act": "gelu_new",
                      "tie_word_embeddings": false)") == 2'779'683'840);
  CHECK(parameters(R"("model_type": "gptj", "n_embd": 4096, "n_layer": 28, "n_head": 16, "n_inner": null,
                      "vocab_size": 50400, "n_positions": 2048, "tie_word_embeddings": false)") == 6'050'882'784);
  CHECK(parameters(R"("model_type": "gpt_bigcode", "n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192,
                      "vocab_size": 49152, "n_positions": 8192, "multi_query": true)") == 1'137'207'296);
  CHECK(parameters(R"("model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288,
                      "num_hidden_layers": 30, "num_attention_heads": 24, "num_key_value_heads": 2,
                      "vocab_size": 49152, "use_bias": true, "sliding_window": 4096,
                      "hidden_act": "gelu_pytorch_tanh")") == 3'030'371'328);
  // HuggingFaceTB/SmolLM3-3B, ibm-granite/granite-3.1-8b-instruct, baidu/ERNIE-4.5-0.3B-PT,
  // ByteDance-Seed/Seed-OSS-36B-Instruct, zai-org/glm-4-9b-chat-hf and GLM-4-9B-0414.
  CHECK(parameters(R"("model_type": "smollm3", "hidden_size": 2048, "intermediate_size": 11008,
                      "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
                      "vocab_size": 128256)") == 3'075'098'624);
  CHECK(parameters(R"("model_type": "granite", "hidden_size": 4096, "intermediate_size": 12800,
                      "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 8,
                      "vocab_size": 49155, "tie_word_embeddings": true)") == 8'170'848'256);
  CHECK(parameters(R"("model_type": "ernie4_5", "hidden_size": 1024, "intermediate_size": 3072,
                      "num_hidden_layers": 18, "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128,
                      "vocab_size": 103424, "tie_word_embeddings": true)") == 360'748'032);
  CHECK(parameters(R"("model_type": "seed_oss", "hidden_size": 5120, "intermediate_size": 27648,
                      "num_hidden_layers": 64, "num_attention_heads": 80, "num_key_value_heads": 8, "head_dim": 128,
                      "vocab_size": 155136, "attention_bias": true, "attention_out_bias": false)") == 36'151'104'512);
  const std::string glm = R"("hidden_size": 4096, "intermediate_size": 13696, "num_hidden_layers": 40,
                             "num_attention_heads": 32, "num_key_value_heads": 2, "head_dim": 128,
                             "vocab_size": 151552, "attention_bias": true, "tie_word_embeddings": false)";
  CHECK(parameters(R"("model_type": "glm", )" + glm) == 9'399'951'360);
  CHECK(parameters(R"("model_type": "glm4", )" + glm) == 9'400'279'040);
  // stabilityai/stablelm-3b-4e1t, CohereLabs/c4ai-command-r-v01 and c4ai-command-r7b-12-2024.
  CHECK(parameters(R"("model_type": "stablelm", "hidden_size": 2560, "intermediate_size": 6912,
                      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                      "vocab_size": 50304, "use_qkv_bias": false)") == 2'795'443'200);
  CHECK(parameters(R"("model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
                      "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64,
                      "vocab_size": 256000)") == 34'980'831'232);
  CHECK(parameters(R"("model_type": "cohere2", "hidden_size": 4096, "intermediate_size": 14336,
                      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                      "vocab_size": 256000, "sliding_window": 4096, "sliding_window_pattern": 4)") == 8'028'033'024);
  // ibm-granite/granite-3.0-1b-a400m-instruct, microsoft/Phi-3.5-MoE-instruct.
  CHECK(parameters(R"("model_type": "granitemoe", "hidden_size": 1024, "intermediate_size": 512,
                      "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8,
                      "num_local_experts": 32, "num_experts_per_tok": 8, "vocab_size": 49155,
                      "tie_word_embeddings": true)") == 1'334'628'352);
  CHECK(parameters(R"("model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400,
                      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                      "num_local_experts": 16, "num_experts_per_tok": 2, "vocab_size": 32064,
                      "attention_bias": true, "lm_head_bias": true)") == 41'873'153'344);
}

TEST_CASE("published: GLM-4.5-Air and GLM-4.5 without multi-token prediction, arXiv 2508.06471, table 1") {
  const auto model = [](const std::string& sizes) {
    return valid(read_hf_config(R"({"model_type": "glm4_moe", "vocab_size": 151552, "head_dim": 128,
        "num_attention_heads": 96, "num_key_value_heads": 8, "num_experts_per_tok": 8, "n_shared_experts": 1,
        "attention_bias": true, "tie_word_embeddings": false, )" +
                                    sizes + "}",
                                "config.json"));
  };
  const Model air = model(R"("hidden_size": 4096, "intermediate_size": 10944, "moe_intermediate_size": 1408,
                             "num_hidden_layers": 46, "n_routed_experts": 128, "first_k_dense_replace": 1)");
  CHECK(std::abs(billions(air.total_parameters()) - 106) < 1);
  const auto without_tables = [](const Model& m) {  // as the paper counts what a token activates
    return billions(m.active_parameters() - 2 * m.vocabulary * m.hidden);
  };
  CHECK(std::abs(without_tables(air) - 12) < 0.5);
  const Model large = model(R"("hidden_size": 5120, "intermediate_size": 12288, "moe_intermediate_size": 1536,
                               "num_hidden_layers": 92, "n_routed_experts": 160, "first_k_dense_replace": 3,
                               "use_qk_norm": true)");
  CHECK(std::abs(billions(large.total_parameters()) - 355) < 3);
  CHECK(std::abs(without_tables(large) - 32) < 0.5);
}

TEST_CASE("published: architectures that are refused by name, with the reason") {
  const auto refusal = [](const std::string& config) {
    const auto refused = read_hf_config("{" + config + "}", "config.json");
    REQUIRE_FALSE(refused);
    return refused.error().front().message;
  };
  // allenai/OLMo-2-1124-7B and OLMoE-1B-7B-0924, MiniMaxAI/MiniMax-M2, zai-org/GLM-5.2, LiquidAI/LFM2-1.2B,
  // THUDM/chatglm3-6b, internlm/internlm2_5-7b.
  for (const char* type : {"olmo2", "olmoe", "minimax_m2"}) {
    CHECK(refusal(R"("model_type": ")" + std::string(type) + "\"") ==
          "\"" + std::string(type) +
              "\" has norms of queries and keys over all heads together, which are of a head here");
  }
  CHECK(refusal(R"("model_type": "glm_moe_dsa")") == "\"glm_moe_dsa\" has attention to keys that an indexer chooses");
  CHECK(refusal(R"("model_type": "lfm2")") == "\"lfm2\" has layers of gated short convolutions");
  for (const char* type : {"chatglm", "internlm2"}) {
    CHECK(refusal(R"("model_type": ")" + std::string(type) + "\"")
              .ends_with("has code of its own beside its weights, whose keys are not those of transformers"));
  }
  CHECK(refusal(R"("model_type": "nobodys")") == "unsupported model_type \"nobodys\"");
  // CohereLabs/c4ai-command-r-plus.
  CHECK(refusal(R"("model_type": "cohere", "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "vocab_size": 100, "use_qk_norm": true)") ==
        "\"cohere\" has norms of each head's queries and keys, each its own");
}

TEST_CASE("published: any partition of any shipped config holds all parameters") {
  for (const std::string& path : files_of("configs/models/hf", ".json")) {
    INFO(path);
    const Model model = valid(read_any_model(content(path), path));
    for (int cut = 1; cut < model.block_count(); cut += 5) {
      const std::int64_t sum = slice_parameters(model, signature(model, 0, cut)) +
                               slice_parameters(model, signature(model, cut, model.block_count()));
      const std::int64_t width = model.embedding_projection > 0 ? model.embedding_projection : model.hidden;
      const std::int64_t copy = model.tied_embeddings ? model.vocabulary * width : 0;
      CHECK(sum == model.total_parameters() + copy);
    }
  }
}
