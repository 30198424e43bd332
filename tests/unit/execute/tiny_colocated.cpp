#include "unit/execute/tiny_colocated.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "tangram/base/expected.hpp"
#include "tangram/model/split.hpp"

namespace tangram::execute::tiny {

namespace {

std::string encoder_text(const EncoderSpec& encoder, std::size_t number) {
  std::string text = fmt::format(
      "    - name: e{}\n      hidden: 512\n      layers: {}\n      heads: 8\n      ffn_hidden: 1024\n      gated: "
      "false\n"
      "      tokens_in: 24\n      tokens_out: 24\n",
      number, encoder.layers);
  if (encoder.connector) text += "      connector: {kind: mlp, widths: [512, 512]}\n";
  return text;
}

std::string freeze_text(const std::vector<EncoderSpec>& encoders, bool trained_language) {
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (std::size_t e = 0; e < encoders.size(); ++e) {
    if (!encoders[e].trained) add(fmt::format("e{}", e));
    if (encoders[e].connector && !encoders[e].trained_connector) add(fmt::format("e{}.connector", e));
  }
  if (!trained_language) add("language");
  return names.empty() ? "" : "  freeze: [" + names + "]\n";
}

std::string data_text(const std::vector<EncoderSpec>& encoders) {
  std::string text;
  for (std::size_t e = 0; e < encoders.size(); ++e) {
    if (encoders[e].some_without) text += fmt::format("  e{}: {{items: image, mean: 1, none: 0.33}}\n", e);
  }
  return text.empty() ? "" : "data:\n" + text;
}

}  // namespace

model::Model make_multimodal(const std::vector<EncoderSpec>& encoders, int layers, bool trained_language) {
  std::string list;
  for (std::size_t e = 0; e < encoders.size(); ++e) list += encoder_text(encoders[e], e);
  const std::string text = fmt::format(
      "schema: tangram.model/1\nname: tiny\narchitecture:\n  vocabulary: 4000\n  hidden: 512\n  layers: {}\n"
      "  heads: 8\n  ffn_hidden: 1024\n  encoders:\n{}training:\n  sequence_length: 64\n  global_batch_samples: "
      "1\n{}{}",
      layers, list, freeze_text(encoders, trained_language), data_text(encoders));
  auto model = model::read_model(text, "tiny.yaml");
  if (!model) throw std::logic_error(render(model.error()));
  return *std::move(model);
}

plan::LaunchPlan make_colocated(const std::vector<EncoderSpec>& encoders, int layers,
                                const std::vector<PipelineSpec>& pipelines) {
  model::Model whole = make_multimodal(encoders, layers);
  plan::LaunchPlan plan = make_plan(model::language_of(whole), pipelines);
  // The model says one sample: make_plan has added those of the pipelines.
  whole.job.global_batch = --plan.model.job.global_batch;
  plan::ColocatedEncoders colocated;
  colocated.turns =
      pipelines.front().stages.size() == 1 ? cost::EncoderTurns::kPerMicrobatch : cost::EncoderTurns::kThreePhases;
  for (std::size_t e = 0; e < encoders.size(); ++e) {
    colocated.encoders.push_back({model::encoder_name(whole, static_cast<int>(e)), encoders[e].layout});
  }
  colocated.language = std::move(plan.model);
  plan.model = std::move(whole);
  plan.colocated = std::move(colocated);
  return plan;
}

}  // namespace tangram::execute::tiny
