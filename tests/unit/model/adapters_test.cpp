// Low-rank adapters: what files say, what is trained, and counts that PEFT prints.
#include "tangram/model/adapters.hpp"

#include <fmt/format.h>

#include "files.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

std::string text_of(const std::string& config, const std::string& lora, const std::string& more = "") {
  return fmt::format(
      "schema: tangram.model/1\nfrom: {}\ntraining:\n  sequence_length: 2048\n  global_batch_samples: 8\n  lora: "
      "{}\n{}",
      source_path("configs/models/hf/" + config + ".json"), lora, more);
}

Model with_lora(const std::string& config, const std::string& lora) {
  return valid(read_model(text_of(config, lora), "m.yaml"));
}

Diagnostic refused(const std::string& config, const std::string& lora, const std::string& more = "") {
  const auto model = read_model(text_of(config, lora, more), "m.yaml");
  REQUIRE_FALSE(model);
  return model.error().front();
}

}  // namespace

TEST_CASE("adapters: parameters are those that PEFT prints") {
  // "trainable params: 41,943,040" of Llama 3 8B with rank 16 beside all linear layers, 4,194,304 of Llama 2 7B with
  // rank 8 beside queries and values.
  CHECK(with_lora("llama-3-8b", "{r: 16}").trained_parameters() == 41'943'040);
  CHECK(with_lora("llama-3-8b", "{r: 16}").total_parameters() == 8'030'261'248 + 41'943'040);
  CHECK(with_lora("llama-2-7b", "{r: 8, target_modules: [q_proj, v_proj]}").trained_parameters() == 4'194'304);
}

TEST_CASE("adapters: all else of the language model is frozen, and gradients pass it") {
  const Model model = with_lora("llama-3-8b", "{r: 16}");
  CHECK(model.block(0).gradients == Gradients{false, true});
  CHECK(model.end_gradients() == Gradients{false, true});
  CHECK(model.trained_embedding_parameters() == 0);
  CHECK(model.trained_head_parameters() == 0);
  CHECK(frozen_parts(model.graph).empty());
  CHECK(adapters_of(model) == model.graph.language().adapters);
  CHECK_FALSE(adapters_of(valid(read_hf_config(content(source_path("configs/models/hf/llama-3-8b.json")), "c.json"))));
}

TEST_CASE("adapters: routed experts, latent attention and recurrences have fewer matrices for them") {
  const auto names = [](const Model& model, int block) {
    return fmt::format("{}", fmt::join(names_of(model.block(block).adapters.targets), " "));
  };
  CHECK(names(with_lora("mixtral-8x7b", "{r: 4}"), 0) == "q_proj k_proj v_proj o_proj");
  const Model deepseek = with_lora("deepseek-v2-lite", "{r: 4}");
  CHECK(names(deepseek, 0) == "o_proj gate_proj up_proj down_proj");  // dense, 10944 wide
  CHECK(names(deepseek, 1) == "o_proj gate_proj up_proj down_proj");  // shared experts, 2816 wide
  CHECK(trained_parameters(deepseek.block(0)).total() == 4 * (2 * 2048 + 3 * (2048 + 10944)));
  CHECK(trained_parameters(deepseek.block(1)).total() == 4 * (2 * 2048 + 3 * (2048 + 2816)));
}

TEST_CASE("adapters: written and read again they are the same") {
  for (const char* lora : {"{r: 16}", "{r: 8, lora_alpha: 32, target_modules: [down_proj, q_proj]}"}) {
    const Model model = with_lora("llama-3-8b", lora);
    const Model again = valid(read_model(write_model(model), "again.json"));
    CHECK(again.graph == model.graph);
    CHECK(again.types == model.types);
    CHECK(again.digest == model.digest);
  }
  CHECK(with_lora("llama-3-8b", "{r: 8}").graph.language().adapters.alpha == 8);
}

TEST_CASE("adapters: modules that are written out may leave matrices and trainable out") {
  const Model model = with_lora("llama-3-8b", "{r: 16}");
  std::string text = write_model(model);
  const auto cut = [&](const std::string& from, const std::string& to, const std::string& instead) {
    const std::size_t first = text.find(from);
    REQUIRE(first != std::string::npos);
    text.replace(first, text.find(to, first) + to.size() - first, instead);
  };
  cut("\"target_modules\"", "]", "\"lora_alpha\": 16");
  cut("\"lora_alpha\"", ",", "");
  cut("\"trainable\"", ",", "");
  CHECK(valid(read_model(text, "again.json")).graph == model.graph);
}

TEST_CASE("adapters: options and measurements say the same as files") {
  const Model file = with_lora("llama-3-8b", "{r: 8, target_modules: [q_proj, v_proj]}");
  const std::vector<std::string> words{"8", "q_proj", "v_proj"};
  JobOverrides overrides;
  overrides.adapters = *read_adapters(words);
  const std::string plain = text_of("llama-3-8b", "{r: 8}").replace(text_of("llama-3-8b", "").size() - 10, 16, "\n");
  const Model option = valid(read_model(plain, "m.yaml", overrides));
  CHECK(option.types == file.types);
  CHECK(option.graph == file.graph);
  Model set = valid(read_model(plain, "m.yaml"));
  set_adapters(set, *overrides.adapters);
  CHECK(set.types == file.types);
  CHECK(set.graph == file.graph);
}

TEST_CASE("adapters: beside a language model that an encoder feeds the encoder is trained unless it is frozen") {
  JobOverrides overrides;
  overrides.adapters = Adapters{16, 16, {}};
  const std::string path = source_path("configs/models/llava-1.5-7b.yaml");
  const Model all = valid(read_model(content(path), path, overrides));
  CHECK(all.block(0).gradients == Gradients{});
  CHECK(all.block(24).gradients == Gradients{false, true});
  overrides.freeze = {"vision"};
  const Model projector = valid(read_model(content(path), path, overrides));
  CHECK(projector.block(0).gradients == Gradients{false, false});
  CHECK(projector.block(23).connector->gradients == Gradients{true, false});
  CHECK(projector.trained_parameters() == 20'979'712 + 39'976'960);  // of Llama 2 7B with rank 16
}

TEST_CASE("adapters: FLOPs are those of frozen weights and of products beside them") {
  const Model model = with_lora("llama-3-8b", "{r: 16}");
  Model frozen = model;
  for (BlockType& type : frozen.types) type.adapters = {};
  const double own = 2.0 * 2048 * 41'943'040;
  const double forward = forward_flops(model.block(0)).value() - forward_flops(frozen.block(0)).value();
  CHECK(32 * forward == Approx(own));
  CHECK(model_flops_per_iteration(model).value() - model_flops_per_iteration(frozen).value() == Approx(8 * 3 * own));
}

TEST_CASE("adapters: what cannot be is refused with its place") {
  const Diagnostic unknown = refused("llama-3-8b", "{r: 8, target_modules: [qproj]}");
  CHECK(unknown.message == "unknown matrix \"qproj\"");
  CHECK(unknown.hint == "did you mean \"q_proj\"?");
  CHECK(unknown.pointer == "/training/lora/target_modules");
  const Diagnostic absent = refused("mixtral-8x7b", "{r: 8, target_modules: [q_proj, up_proj]}");
  CHECK(absent.message == "no layer of the language model has a \"up_proj\"");
  CHECK(absent.hint == "there are q_proj, k_proj, v_proj, o_proj");
  CHECK(refused("llama-3-8b", "{r: 0}").pointer == "/training/lora/r");
  CHECK(refused("llama-3-8b", "{rank: 8}").message == "missing key \"r\"");
  const auto option = [](std::vector<std::string> words) { return read_adapters(words).error().front().message; };
  CHECK(option({}) == "\"\" is no rank between 1 and 65536");
  CHECK(option({"q_proj"}) == "\"q_proj\" is no rank between 1 and 65536");
  CHECK(option({"8", "q"}) == "unknown matrix \"q\"");
}

TEST_CASE("adapters: a quantized base is read and written, and computes in 16 bits alone") {
  const Model model = with_lora("llama-3-8b", "{r: 16, base_quantization: nf4-double}");
  CHECK(model.block(0).adapters.base == BaseQuantization::kNf4Double);
  const Model again = valid(read_model(write_model(model), "m.yaml"));
  CHECK(again.types == model.types);
  CHECK(again.digest == model.digest);
  CHECK(model.digest != with_lora("llama-3-8b", "{r: 16}").digest);
  // Norms and biases are not matrices, nor is a router one that is quantized.
  const BlockType experts = with_lora("mixtral-8x7b", "{r: 4, base_quantization: nf4}").block(0);
  CHECK(quantized_parameters(experts).total() ==
        2 * 4096 * 4096 + 2 * 4096 * 1024 + std::int64_t{8} * 3 * 4096 * 14336);
  CHECK(linear_parameters(experts).total() == quantized_parameters(experts).total() + 8 * 4096);
  CHECK(quantized_parameters(with_lora("mixtral-8x7b", "{r: 4}").block(0)).total() == 0);
  const Diagnostic narrow = refused("llama-3-8b", "{r: 16, base_quantization: nf4}", "  precision: fp8\n");
  CHECK(narrow.code == "inconsistent-value");
  CHECK(narrow.message.find("fp8") != std::string::npos);
  CHECK(refused("llama-3-8b", "{r: 16, base_quantization: int4}").code == "unknown-value");
}
