// A multimodal model taken apart: parameters of the parts are those of the whole, and what cannot be taken apart is
// said.
#include "tangram/model/split.hpp"

#include <cmath>

#include "files.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

Model multimodal(const std::string& vision, const std::string& rest = "") {
  return valid(
      read_model("schema: tangram.model/1\nname: m\narchitecture:\n  vocabulary: 1000\n  hidden: 64\n  layers: 3\n"
                 "  heads: 4\n  ffn_hidden: 128\n  encoders:\n    - {name: vision, hidden: 32, layers: 2, heads: 2, "
                 "ffn_hidden: 64, gated: false" +
                     vision + "}\n" + rest + "training: {sequence_length: 256, global_batch_samples: 8}\n",
                 "m.yaml"));
}

}  // namespace

TEST_CASE("split: the parameters of encoders and language model are those of the whole") {
  const Model whole = multimodal(", tokens_in: 64, tokens_out: 16, connector: {kind: merger, widths: [128, 64]}");
  REQUIRE(why_not_split(whole).empty());
  const Model language = language_of(whole);
  const Model encoder = encoder_of(whole, 0);
  CHECK(language.block_count() == 3);
  CHECK(encoder.block_count() == 2);
  CHECK(encoder_blocks(language) == 0);
  CHECK(language.types.size() == 1);
  CHECK(language.total_parameters() + encoder.total_parameters() == whole.total_parameters());
  CHECK(language.trained_parameters() + encoder.trained_parameters() == whole.trained_parameters());
  CHECK(encoder_name(whole, 0) == "vision");
  CHECK(encoder_output_bytes(whole, 0) == 16 * 64 * 2);
}

TEST_CASE("split: a frozen encoder is frozen in its own model, and its language model is not") {
  const Model whole = multimodal(", tokens_in: 64, tokens_out: 16, connector: {kind: merger, widths: [128, 64]}");
  JobOverrides freeze;
  freeze.freeze = {"vision", "vision.connector"};
  const auto frozen = read_model(write_model(whole), "m.yaml", freeze);
  REQUIRE(frozen);
  CHECK(encoder_of(*frozen, 0).trained_parameters() == 0);
  CHECK(language_of(*frozen).trained_parameters() == language_of(whole).trained_parameters());
}

TEST_CASE("split: what is no encoder in front of a language model is named") {
  CHECK(why_not_split(
            valid(read_model("schema: tangram.model/1\nname: m\narchitecture: {vocabulary: 100, hidden: 64, layers: 2, "
                             "heads: 4, ffn_hidden: 128}\ntraining: {sequence_length: 8, global_batch_samples: 8}\n",
                             "t.yaml"))) == "it has no encoders");
  JobOverrides freeze;
  freeze.freeze = {"language"};
  const Model whole = multimodal(", tokens_in: 64, tokens_out: 16, connector: {kind: merger, widths: [128, 64]}");
  const auto frozen = read_model(write_model(whole), "m.yaml", freeze);
  REQUIRE(frozen);
  CHECK(why_not_split(*frozen) == "its language model is frozen");
}

TEST_CASE("split: the variation of samples is that of the lognormal with their 95th percentile") {
  // exp(1.645 s - s^2 / 2), s^2 = ln(1 + v^2): 1.55 for v = 0.3, 2.13 for 0.6.
  const Model data = multimodal(", tokens_in: 64, tokens_out: 16, connector: {kind: merger, widths: [128, 64]}",
                                "data:\n  vision: {mean: 1, p95: 2.13, none: 0.25}\n");
  const EncoderSpread spread = encoder_spread(data, 0);
  CHECK(std::abs(spread.variation - 0.6) < 0.01);
  CHECK(spread.none == 0.25);
  CHECK(encoder_spread(multimodal(", tokens_per_sample: 64"), 0).variation == 0);
}
