// Multimodal Hugging Face configs: parameters against the publishers' totals, what encoders make of an image, and which
// defaults were taken.
#include <fmt/format.h>

#include "files.hpp"
#include "tangram/model/slice.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

/// Totals in millions, as the sums over the tensors of the published weights round.
struct Published {
  const char* file;
  std::int64_t millions;
};

constexpr Published kPublished[] = {
    {"llava-1.5-7b", 7'063},       {"llava-onevision-7b", 8'030},   {"qwen2.5-vl-3b", 3'755},
    {"qwen2.5-vl-7b", 8'292},      {"qwen2.5-vl-32b", 33'453},      {"qwen2.5-vl-72b", 73'411},
    {"qwen3-vl-4b", 4'438},        {"qwen3-vl-8b", 8'767},          {"qwen3-vl-32b", 33'357},
    {"qwen3-vl-30b-a3b", 31'071},  {"qwen3-vl-235b-a22b", 235'670}, {"internvl3-8b", 7'944},
    {"internvl3-38b", 38'388},     {"internvl3-78b", 78'408},       {"llama-4-scout", 108'642},
    {"llama-4-maverick", 401'584}, {"gemma-3-4b", 4'300},           {"gemma-3-12b", 12'187},
    {"gemma-3-27b", 27'432},       {"kimi-vl-a3b", 16'408},         {"qwen2.5-omni-7b", 8'932},
};

std::int64_t rounded_millions(std::int64_t count) { return (count + 500'000) / 1'000'000; }

/// "vision 577->576", module by module.
std::string tokens_of(const Model& model) {
  std::string out;
  for (const Module& module : model.graph.modules) {
    if (module.kind != ModuleKind::kEncoder) continue;
    out += fmt::format("{}{} {}->{}", out.empty() ? "" : ", ", module.name, module.tokens_in, module.tokens_out);
  }
  return out;
}

Diagnostics import_refused(const std::string& text) {
  const auto model = read_hf_config(text, "config.json");
  REQUIRE_FALSE(model);
  return model.error();
}

std::string vision_windows(const Model& model) {
  std::string out;
  for (int i = 0; i < 32; ++i) out += model.block(i).attention.sliding_window > 0 ? 'w' : '-';
  return out;
}

}  // namespace

TEST_CASE("multimodal: parameters are the publishers'") {
  for (const Published& published : kPublished) {
    INFO(published.file);
    CHECK(rounded_millions(hf_model(published.file).total_parameters()) == published.millions);
  }
}

TEST_CASE("multimodal: exact where the weights have every tensor of the class") {
  CHECK(hf_model("llava-1.5-7b").total_parameters() == 7'063'427'072);  // llava-hf/llava-1.5-7b-hf
  CHECK(hf_model("gemma-3-4b").total_parameters() == 4'300'079'472);    // google/gemma-3-4b-it
}

TEST_CASE("multimodal: tokens into and out of encoders") {
  CHECK(tokens_of(hf_model("llava-1.5-7b")) == "vision 577->576");
  CHECK(tokens_of(hf_model("llava-onevision-7b")) == "vision 729->729");
  CHECK(tokens_of(hf_model("qwen2.5-vl-7b")) == "vision 4096->1024");
  CHECK(tokens_of(hf_model("qwen3-vl-8b")) == "vision 4096->1024");
  CHECK(tokens_of(hf_model("internvl3-8b")) == "vision 1025->256");
  CHECK(tokens_of(hf_model("llama-4-scout")) == "vision 577->144");
  CHECK(tokens_of(hf_model("gemma-3-4b")) == "vision 4096->256");
  CHECK(tokens_of(hf_model("kimi-vl-a3b")) == "vision 4096->1024");
  CHECK(tokens_of(hf_model("qwen2.5-omni-7b")) == "vision 4096->1024, audio 1500->750");
}

TEST_CASE("multimodal: connectors") {
  const auto connector = [](const char* file) { return *hf_model(file).graph.modules.front().connector; };
  CHECK(connector("llava-1.5-7b").widths == std::vector<std::int64_t>{1024, 4096, 4096});
  CHECK(connector("qwen2.5-vl-7b").widths == std::vector<std::int64_t>{5120, 5120, 3584});
  CHECK(connector("internvl3-78b").widths == std::vector<std::int64_t>{12800, 8192, 8192});
  CHECK(connector("llama-4-scout").widths == std::vector<std::int64_t>{5632, 4096, 4096, 5120});
  CHECK_FALSE(connector("llama-4-scout").bias);
  CHECK(connector("gemma-3-4b").kind == ConnectorKind::kPool);
  CHECK(connector("kimi-vl-a3b").widths == std::vector<std::int64_t>{4608, 4608, 2048});
}

TEST_CASE("multimodal: layers of encoders and language models") {
  CHECK(vision_windows(hf_model("qwen2.5-vl-7b")) == "wwwwwww-wwwwwww-wwwwwww-wwwwwww-");
  const Model qwen = hf_model("qwen2.5-vl-7b");
  CHECK(qwen.block(0).attention.sliding_window == 64);  // 112 pixels are 8 patches
  CHECK(qwen.block(0).feed_forward.gated);
  CHECK(qwen.block_count() == 60);
  CHECK(qwen.graph.language().blocks == BlockRange{32, 60});

  const Model deep = hf_model("qwen3-vl-4b");
  CHECK(deep.graph.edges.front().from_layers == std::vector<int>{5, 11, 17});
  CHECK(deep.graph.edges.front().into_layers == std::vector<int>{0, 1, 2});
  CHECK(deep.block(23).connector->copies == 4);

  const Model maverick = hf_model("llama-4-maverick");
  CHECK_FALSE(maverick.block(34).feed_forward.is_moe());
  CHECK(maverick.block(35).feed_forward.is_moe());
  CHECK(maverick.block(34).feed_forward.hidden == 16384);
  CHECK(hf_model("llama-4-scout").block(34).feed_forward.is_moe());

  JobOverrides longer;
  longer.sequence_length = 8192;
  const std::string path = source_path("configs/models/hf/gemma-3-4b.json");
  const Model gemma = valid(read_hf_config(content(path), path, longer));
  CHECK(gemma.tied_embeddings);
  std::string windows;
  for (int i = 27; i < 34; ++i) windows += gemma.block(i).attention.sliding_window == 1024 ? 'w' : '-';
  CHECK(windows == "wwwww-w");
}

TEST_CASE("multimodal: what a config leaves out and what was taken") {
  constexpr const char* kJob =
      "the model file says nothing of the job: a batch of 256 samples and samples of 4096 "
      "tokens are taken; --global-batch and --seq-len say otherwise; ";
  CHECK(hf_model("llava-1.5-7b").assumed ==
        std::string(kJob) +
            "text_config leaves out what class llama has as hidden_size 4096, num_attention_heads 32, "
            "intermediate_size 11008, num_hidden_layers 32; "
            "a sample has one image in \"vision\": 577 tokens, 576 behind the connector");
  CHECK(hf_model("gemma-3-4b").assumed ==
        std::string(kJob) +
            "text_config leaves out what class gemma3_text has as vocab_size 262208, max_position_embeddings 131072, "
            "num_attention_heads 8, num_key_value_heads 4, head_dim 256; "
            "a sample has one image in \"vision\": 4096 tokens, 256 behind the connector");
  CHECK(hf_model("internvl3-8b").assumed ==
        std::string(kJob) + "a sample has one tile in \"vision\": 1025 tokens, 256 behind the connector");
  CHECK(hf_model("qwen2.5-omni-7b").assumed ==
        std::string(kJob) +
            "the thinker alone is taken: talker and token2wav are trained after it; "
            "a sample has one image in \"vision\": 4096 tokens, 1024 behind the connector; "
            "a sample has one audio of 30 s in \"audio\": 1500 tokens, 750 behind the connector");
}

TEST_CASE("multimodal: what `data` says of samples is not taken") {
  const std::string text = R"({"schema": "tangram.model/1", "from": "hf/qwen2.5-omni-7b.json",
    "data": {"audio": {"mean": 2}}, "training": {"sequence_length": 8192, "global_batch_samples": 256}})";
  CHECK(valid(read_model(text, source_path("configs/models/omni.json"))).assumed ==
        "the thinker alone is taken: talker and token2wav are trained after it; "
        "a sample has one image in \"vision\": 4096 tokens, 1024 behind the connector");
}

TEST_CASE("multimodal: InternVL in the form of transformers is the same model") {
  const std::string native = R"({"model_type": "internvl", "downsample_ratio": 0.5, "tie_word_embeddings": false,
    "text_config": {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
      "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 151674},
    "vision_config": {"model_type": "internvl_vision", "attention_bias": true, "hidden_size": 1024,
      "image_size": [448, 448], "patch_size": [14, 14], "intermediate_size": 4096, "num_attention_heads": 16,
      "num_hidden_layers": 24}})";
  const Model model = valid(read_hf_config(native, "dir/config.json"));
  const Model chat = hf_model("internvl3-8b");
  CHECK(model.total_parameters() == chat.total_parameters());
  CHECK(model.graph == chat.graph);
}

TEST_CASE("multimodal: cross-attention is refused by name") {
  const Diagnostics why =
      import_refused(R"({"model_type": "mllama", "text_config": {"cross_attention_layers": [3, 8]}})");
  REQUIRE(why.size() == 1);
  CHECK(why.front().code == "unsupported-model");
  CHECK(why.front().where.line == 1);
  CHECK(why.front().message ==
        "\"mllama\" joins images by cross-attention inside its language model, which is no chain of blocks");
  CHECK(why.front().hint.find("llama4, qwen2_5_vl, internvl") != std::string::npos);
}

TEST_CASE("multimodal: mistakes have their place") {
  CHECK(import_refused(R"({"model_type": "llava", "text_config": {"model_type": "llama"}})").front().message ==
        "missing key \"vision_config\"");
  CHECK(import_refused(R"({"model_type": "llava", "text_config": {"model_type": "lama"}, "vision_config": {}})")
            .front()
            .pointer == "/text_config/model_type");
  const Diagnostics encoder =
      import_refused(R"({"model_type": "llava", "text_config": {}, "vision_config": {"model_type": "resnet"}})");
  CHECK(encoder.front().message == "unsupported encoder \"resnet\"");
  const Diagnostics narrow =
      import_refused(R"({"model_type": "qwen2_5_vl", "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 2, "vision_config": {"hidden_size": 1280, "out_hidden_size": 3584}})");
  CHECK(narrow.front().pointer == "/vision_config/out_hidden_size");
  CHECK(narrow.front().message == "\"out_hidden_size\" is 3584, the language model is 2048 wide");
}

TEST_CASE("multimodal: written and read back the same") {
  for (const Published& published : kPublished) {
    INFO(published.file);
    const Model model = hf_model(published.file);
    const std::string text = write_model(model);
    const Model again = valid(read_model(text, "again.json"));
    CHECK(write_model(again) == text);
    CHECK(again.graph == model.graph);
    CHECK(again.types == model.types);
    CHECK(again.digest == model.digest);
    for (int cut = 1; cut < model.block_count(); cut += 7) CHECK(cut_bytes(again, cut) == cut_bytes(model, cut));
  }
}
