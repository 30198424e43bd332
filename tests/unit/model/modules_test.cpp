// Modules as files describe them: what is read, what is written, what crosses cuts, and what is wrong.
#include <fmt/format.h>

#include <algorithm>

#include "files.hpp"
#include "tangram/model/slice.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

constexpr const char* kShortJob = "\ntraining: {sequence_length: 64, global_batch_samples: 4}\n";

/// Two layers of 16 that see nine patches each, in front of three of 32.
std::string with_vision(const std::string& vision, const std::string& behind = "") {
  return "schema: tangram.model/1\narchitecture:\n  vocabulary: 100\n  hidden: 32\n  layers: 3\n  heads: 4\n"
         "  ffn_hidden: 64\n  encoders:\n    - {name: vision, hidden: 16, layers: 2, heads: 2, ffn_hidden: 32, " +
         vision + "}\n" + behind + kShortJob;
}

Model model_of(const std::string& text) { return valid(read_model(text, "model.yaml")); }

Diagnostic mistake(const std::string& text) {
  const auto model = read_model(text, "model.yaml");
  REQUIRE_FALSE(model);
  INFO(render(model.error()));
  CHECK(model.error().size() == 1);
  return model.error().front();
}

Model shipped(const std::string& name) {
  const std::string path = source_path("configs/models/" + name + ".yaml");
  return valid(read_model(content(path), path));
}

constexpr const char* kMerger =
    "tokens_in: 8, tokens_out: 2, patch_parameters: 5, connector: {kind: merger, widths: [64, 40, 32]}";

}  // namespace

TEST_CASE("modules: a file that says nothing new of them stays as it was") {
  const Model plain = model_of(with_vision("tokens_per_sample: 9, patch_parameters: 5, projector_parameters: 7"));
  CHECK(plain.graph.empty());
  CHECK(plain.extra_embedding_parameters == 12);
  CHECK(write_model(plain).find("modules") == std::string::npos);
  // What encoders had before: their own tokens and width, and the text beside them.
  CHECK(cut_bytes(plain, 1) == 2 * (9 * 16 + 64 * 32));
  CHECK(cut_bytes(plain, 2) == 2 * (9 * 16 + 64 * 32));
}

TEST_CASE("modules: encoders, connectors and items") {
  const Model model =
      model_of(with_vision(kMerger, "data:\n  vision: {items: tile, mean: 1.5, p95: 4, max: 6, none: 0.1}\n"));
  REQUIRE(model.graph.modules.size() == 2);
  const Module& vision = model.graph.modules.front();
  CHECK(vision.blocks == BlockRange{0, 2});
  CHECK(vision.sample_tokens_in() == 12);
  CHECK(vision.sample_tokens_out() == 3);
  CHECK(vision.items == Items{"tile", 1.5, 4, 6, 0.1});
  CHECK(model.graph.language().name == "language");
  CHECK(model.graph.edges == std::vector<Edge>{{0, 1, {}, {}}});
  // A tile of 8 tokens sees itself alone.
  CHECK(model.block(0).tokens == 12);
  CHECK(model.block(0).attention.sliding_window == 8);
  CHECK_FALSE(model.block(0).connector);
  REQUIRE(model.block(1).connector);
  // 64 x 40 + 40 and 40 x 32 + 32
  CHECK(parameters(*model.block(1).connector).total() == 2600 + 1312);
  CHECK(forward_flops(*model.block(1).connector) == Flops(2.0 * 3 * (2560 + 1280)));
  CHECK(model.extra_embedding_parameters == 5);
  CHECK(model.total_parameters() == model.embedding_parameters() + model.head_parameters() +
                                        2 * parameters(model.block(0)).total() + 3912 +
                                        3 * parameters(model.block(2)).total());
}

TEST_CASE("modules: what crosses cuts are tokens out, as wide as the language model") {
  const Model model = model_of(with_vision(kMerger));
  const std::int64_t text = 64 * 32;
  CHECK(cut_bytes(model, 1) == 2 * (8 * 16 + text));
  CHECK(cut_bytes(model, 2) == 2 * (2 * 32 + text));
  CHECK(cut_bytes(model, 3) == 2 * text);
}

TEST_CASE("modules: InternVL2-76B sends a quarter of its tokens on") {
  const Model model = shipped("internvl2-76b");
  const std::int64_t text = 8192 * 8192;
  CHECK(model.block(0).tokens == 6150);
  CHECK(model.block(0).attention.sliding_window == 1025);
  CHECK(cut_bytes(model, 10) == 2 * (6150 * 3200 + text));
  CHECK(cut_bytes(model, 45) == 2 * (6 * 256 * 8192 + text));
  CHECK(cut_bytes(model, 46) == 2 * text);
  // norm of 12800, 12800 -> 8192 -> 8192 with biases
  CHECK(parameters(*model.block(44).connector).total() == 172'008'448);
}

TEST_CASE("modules: deepstack widens the first cuts of the language model") {
  const std::string edges = "  edges:\n    - {from: vision, to: language, from_layers: [0], into_layers: [1]}\n";
  const Model model = model_of(with_vision(kMerger, edges));
  const std::int64_t text = 64 * 32, image = 2 * 32;
  CHECK(model.block(1).connector->copies == 2);
  // Behind layer 0 of the encoder its output travels twice: as the activation and as what was tapped.
  CHECK(cut_bytes(model, 1) == 2 * (2 * 8 * 16 + text));
  CHECK(cut_bytes(model, 2) == 2 * (2 * image + text));
  CHECK(cut_bytes(model, 3) == 2 * (text + image));
  CHECK(cut_bytes(model, 4) == 2 * text);
}

TEST_CASE("modules: a resampler's parameters and products") {
  const Model model = model_of(with_vision(
      "tokens_in: 8, tokens_out: 4, connector: {kind: resampler, widths: [16, 24, 32], queries: 4, norm: layernorm}"));
  const Connector& connector = *model.block(1).connector;
  // 16x24 keys in, 24x48 keys and values, 24x24 queries, 24x24 output, 24x32 out, four queries of 24; biases; norm of
  // 16
  CHECK(parameters(connector).sharded == 384 + 1152 + 576 + 576 + 768 + 96);
  CHECK(parameters(connector).replicated == 24 + 48 + 24 + 24 + 32 + 32);
  CHECK(forward_flops(connector) == Flops(2.0 * (8 * (384 + 1152) + 4 * (576 + 576 + 768)) + 4.0 * 4 * 8 * 24));
}

TEST_CASE("modules: the explicit form, with a generator") {
  const std::string text =
      "schema: tangram.model/1\narchitecture:\n  vocabulary: 100\n  hidden: 32\n"
      "  extra_embedding_parameters: 5\n  types:\n"
      "    - {name: vision, hidden: 16, heads: 2, ffn_hidden: 32, causal: false, tokens: 8}\n"
      "    - {name: dense, heads: 4, ffn_hidden: 64}\n"
      "    - {name: talker, hidden: 8, heads: 2, ffn_hidden: 16, tokens: 20}\n"
      "  blocks: [{type: vision, count: 2}, {type: dense, count: 3}, {type: talker, count: 2}]\n"
      "  modules:\n"
      "    - {name: vision, kind: encoder, blocks: 2, tokens_in: 8, tokens_out: 2,"
      " patch_parameters: 5, connector: {kind: merger, widths: [64, 32]}}\n"
      "    - {name: thinker, kind: language, blocks: 3}\n"
      "    - {name: talker, kind: generator, blocks: 2, connector: {widths: [32, 8]}}\n";
  const Model model = model_of(text + kShortJob);
  CHECK(model.graph.language().name == "thinker");
  CHECK(model.graph.edges == std::vector<Edge>{{0, 1, {}, {}}, {1, 2, {}, {}}});
  CHECK_FALSE(model.block(4).connector);
  CHECK(model.block(5).connector);
  // The head is in the last stage: the language model's output passes the generator.
  CHECK(cut_bytes(model, 5) == 2 * 64 * 32);
  CHECK(cut_bytes(model, 6) == 2 * (20 * 8 + 64 * 32));
  CHECK(write_model(model_of(write_model(model))) == write_model(model));
}

TEST_CASE("modules: mistakes have their place") {
  const auto at = [](const std::string& text) {
    const Diagnostic wrong = mistake(text);
    return wrong.pointer + ": " + wrong.message;
  };
  CHECK(at(with_vision("tokens_in: 8, tokens_out: 2, connector: {widths: [16, 30]}")) ==
        "/architecture/encoders/0/connector/widths: the connector's output is 30 wide, \"language\" 32");
  CHECK(at(with_vision("tokens_in: 8, tokens_out: 2, connector: {widths: [20, 32]}")) ==
        "/architecture/encoders/0/connector/widths: the connector's input is 20 wide, what it reads 16");
  CHECK(at(with_vision("tokens_in: 8, tokens_out: 3, connector: {kind: merger, widths: [64, 32]}")) ==
        "/architecture/encoders/0/tokens_out: 3 tokens out of 8 tokens in, of which 4 become one");
  CHECK(at(with_vision("tokens_in: 8, tokens_out: 9")) ==
        "/architecture/encoders/0/tokens_out: 9 tokens out of 8 tokens in");
  CHECK(at(with_vision("tokens_in: 8, tokens_per_sample: 9")) ==
        "/architecture/encoders/0/tokens_per_sample: \"tokens_per_sample\" has no meaning with \"tokens_in\"");
  CHECK(at(with_vision("tokens_in: 8, connector: {widths: [16]}")) ==
        "/architecture/encoders/0/connector/widths: a connector has two widths at least: input and output");
  CHECK(at(with_vision("tokens_in: 8, connector: {widths: [16, x]}")) ==
        "/architecture/encoders/0/connector/widths/1: \"widths\" must be a list of integers between 1 and 4000000");
  CHECK(at(with_vision("tokens_in: 8, connector: {widths: [16, 32]}, projector_parameters: 7")) ==
        "/architecture/encoders/0/projector_parameters: \"projector_parameters\" has no meaning with \"connector\"");
  CHECK(at(with_vision(kMerger, "data: {visoin: {mean: 2}}\n")) == "/data/visoin: there is no encoder \"visoin\"");
  CHECK(at(with_vision(kMerger, "data: {vision: {mean: 2, max: 1}}\n")) ==
        "/data/vision/max: \"max\" (1) is less than \"mean\" (2)");
  CHECK(at(with_vision(kMerger, "data: {vision: {tokens_in: 16}}\n")) ==
        "/data/vision/tokens_in: missing key \"tokens_out\": tokens become fewer in this module");
  CHECK(at(with_vision(kMerger, "data: {vision: {tokens_in: 4, tokens_out: 2}}\n")) ==
        "/data/vision/tokens_out: 2 tokens out of 4 tokens in, of which 4 become one");
  CHECK(at(with_vision(kMerger, "data: {vision: {mean: 40}}\n")) ==
        "/training/sequence_length: encoders make 80 tokens of a sample, which are among its 64");
  CHECK(at(with_vision(kMerger, "  edges: [{from: vision, to: talker}]\n")) ==
        "/architecture/edges/0/to: there is no module \"talker\"");
  CHECK(at(with_vision(kMerger, "  edges: [{from: vision, to: vision}]\n")) ==
        "/architecture/edges/0/to: \"vision\" cannot feed \"vision\"");
  CHECK(at(with_vision(kMerger, "  edges: [{from: vision, to: language, from_layers: [0], into_layers: [3]}]\n")) ==
        "/architecture/edges/0/into_layers: \"language\" has no layer 3: it has 3, counted from 0");
}
