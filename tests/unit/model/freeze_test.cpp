// Freezing: which gradients backward works out, which parameters have state, and which FLOPs count.
#include <fmt/format.h>

#include "files.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

Model llava(std::vector<std::string> frozen) {
  const std::string path = source_path("configs/models/llava-1.5-7b.yaml");
  JobOverrides overrides;
  overrides.freeze = std::move(frozen);
  return valid(read_model(content(path), path, overrides));
}

/// "wi" where gradients of weights and of inputs are worked out.
std::string text_of(const Gradients& gradients) {
  return fmt::format("{}{}", gradients.weights ? "w" : "-", gradients.inputs ? "i" : "-");
}

/// Of the encoder, its connector, the language model and its ends.
std::string gradients(const Model& model) {
  return fmt::format("{} {} {} {}", text_of(model.block(0).gradients), text_of(model.block(23).connector->gradients),
                     text_of(model.block(24).gradients), text_of(model.end_gradients()));
}

Diagnostic refused_freeze(std::vector<std::string> frozen) {
  const std::string path = source_path("configs/models/llava-1.5-7b.yaml");
  JobOverrides overrides;
  overrides.freeze = std::move(frozen);
  const auto model = read_model(content(path), path, overrides);
  REQUIRE_FALSE(model);
  return model.error().front();
}

}  // namespace

TEST_CASE("freeze: a module needs gradients of its input where something upstream is trained") {
  CHECK(gradients(llava({})) == "wi wi wi wi");
  CHECK(gradients(llava({"vision"})) == "-- w- wi wi");                        // instruction tuning
  CHECK(gradients(llava({"vision", "language"})) == "-- w- -i -i");            // the projector alone
  CHECK(gradients(llava({"vision", "vision.connector"})) == "-- -- wi wi");    // the language model alone
  CHECK(gradients(llava({"language", "vision.connector"})) == "wi -i -i -i");  // the encoder alone
}

TEST_CASE("freeze: parameters that are trained") {
  const Model all = llava({});
  CHECK(all.trained_parameters() == all.total_parameters());
  // 1024 -> 4096 -> 4096 with biases
  CHECK(llava({"vision", "language"}).trained_parameters() == 20'979'712);
  // 24 layers and what embeds patches
  const std::int64_t vision = 24 * parameters(plain(all.block(0))).total() + 1'196'032;
  CHECK(llava({"vision"}).trained_parameters() == all.total_parameters() - vision);
  CHECK(llava({"language", "vision.connector"}).trained_parameters() == vision);
  CHECK(llava({"vision"}).total_parameters() == all.total_parameters());
}

TEST_CASE("freeze: FLOPs of an iteration") {
  const auto forward = [](const Model& model, int first, int last) {
    double flops = 0;
    for (int i = first; i < last; ++i) flops += forward_flops(plain(model.block(i))).value();
    return flops;
  };
  const Model all = llava({});
  const double vision = forward(all, 0, 24);
  const double connector = forward_flops(*all.block(23).connector).value();
  const double language = forward(all, 24, 56) + head_forward_flops(all).value();
  const double batch = 128;
  CHECK(model_flops_per_iteration(all).value() == Approx(3 * (vision + connector + language) * batch));
  CHECK(model_flops_per_iteration(llava({"vision"})).value() ==
        Approx((vision + 2 * connector + 3 * language) * batch));
  // Behind a projector that is trained, products with frozen weights are done once more, those of attention, which are
  // 2048 tokens seen by half: 2 x 2 x 2048 x 1024 x 4096 a layer, twice.
  const double attention = 32 * 4.0 * 2048 * 1024 * 4096;
  CHECK(model_flops_per_iteration(llava({"vision", "language"})).value() ==
        Approx((vision + 2 * connector + 2 * (language - attention) + 3 * attention) * batch));
}

TEST_CASE("freeze: files and options say the same") {
  const std::string path = source_path("configs/models/llava-1.5-7b.yaml");
  const Model by_file = valid(read_model(content(path) + "  freeze: [vision, language]\n", path));
  const Model by_option = llava({"vision", "language"});
  CHECK(write_model(by_file) == write_model(by_option));
  CHECK(by_file.digest == by_option.digest);
  CHECK(by_file.digest != llava({}).digest);
  CHECK(frozen_parts(by_file.graph) == std::vector<std::string>{"vision", "language"});
  CHECK(gradients(valid(read_model(write_model(by_file), "again.json"))) == gradients(by_file));
}

TEST_CASE("freeze: a file that says nothing of modules has them, too") {
  const std::string text =
      "schema: tangram.model/1\narchitecture: {vocabulary: 100, hidden: 32, layers: 3, heads: 4, ffn_hidden: 64,"
      " encoders: [{name: vision, hidden: 16, layers: 2, heads: 2, ffn_hidden: 32, tokens_per_sample: 9,"
      " patch_parameters: 50, projector_parameters: 7}]}\n"
      "training: {sequence_length: 8, global_batch_samples: 4, freeze: vision}\n";
  const Model model = valid(read_model(text, "model.yaml"));
  CHECK(text_of(model.block(0).gradients) == "--");
  CHECK(text_of(model.block(2).gradients) == "wi");
  // The projector is held with the embedding and trained.
  CHECK(model.trained_embedding_parameters() == 100 * 32 + 7);

  const Model written =
      valid(read_model(write_model(valid(read_model(text.substr(0, text.find(", freeze")) + "}\n", "model.yaml"))),
                       "again.json", {{}, {}, {}, {"vision"}}));
  CHECK(text_of(written.block(1).gradients) == "--");
}

TEST_CASE("freeze: what cannot be frozen") {
  const Diagnostic unknown = refused_freeze({"visoin"});
  CHECK(unknown.message == "no module to freeze is called \"visoin\"");
  CHECK(unknown.hint == "did you mean \"vision\"?");
  CHECK(refused_freeze({"vision", "vision.connector", "language"}).message ==
        "every module is frozen: nothing would be trained");
  const std::string path = source_path("configs/models/llama-3-8b.yaml");
  const auto model = read_model(content(path), path, {{}, {}, {}, {"language"}});
  REQUIRE_FALSE(model);
  CHECK(model.error().front().message == "every module is frozen: nothing would be trained");

  const auto in_file =
      read_model(content(source_path("configs/models/llava-1.5-7b.yaml")) + "  freeze: [audio]\n", "l.yaml");
  REQUIRE_FALSE(in_file);
  CHECK(in_file.error().front().pointer == "/training/freeze");
  CHECK(in_file.error().front().hint == "there are vision, vision.connector, language");
}
