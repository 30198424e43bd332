#include "model_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tangram/export/megatron_arguments.hpp"

namespace tangram::importing {

namespace {

// Written in several ways (patterns), padded or left at a default that does not matter.
constexpr std::array<std::string_view, 6> kNotCompared{"vocab-size",     "max-position-embeddings",
                                                       "window-size",    "window-attn-skip-freq",
                                                       "moe-layer-freq", "moe-token-dispatcher-type"};

// Of the switches, those that change the work of a layer or the parameters.
constexpr std::array<std::string_view, 4> kSwitches{"swiglu", "untie-embeddings-and-output-weights",
                                                    "multi-latent-attention", "group-query-attention"};

const ModelArgument* find(const Job& job, std::string_view name) {
  const auto found = std::ranges::find(job.model, name, &ModelArgument::name);
  return found == job.model.end() ? nullptr : &*found;
}

constexpr const char* kHint = "give the --model that the job trains";

}  // namespace

Diagnostics differences(const Job& job, const model::Model& model) {
  Diagnostics wrong;
  if (job.model.empty()) return wrong;
  const exporting::Arguments expected = exporting::model_arguments(model);
  for (const exporting::Argument& argument : expected) {
    const ModelArgument* written = find(job, argument.name);
    const bool compared = std::ranges::find(kNotCompared, argument.name) == kNotCompared.end();
    if (written == nullptr || argument.values.empty() || !compared) continue;
    if (written->value == argument.values.front()) continue;
    wrong.push_back(
        at(written->place, "model-differs",
           fmt::format("the job has --{} {}, the model {}", argument.name, written->value, argument.values.front()),
           kHint));
  }
  for (const std::string_view name : kSwitches) {
    const ModelArgument* written = find(job, name);
    const bool of_model = std::ranges::find(expected, name, &exporting::Argument::name) != expected.end();
    if ((written != nullptr) == of_model) continue;
    Place place = written != nullptr ? written->place : Place{};
    if (written == nullptr) place.where.file = job.model.front().place.where.file;
    wrong.push_back(at(std::move(place), "model-differs",
                       fmt::format("the job {} --{}, the model {}", of_model ? "lacks" : "has", name,
                                   of_model ? "asks for it" : "does not"),
                       kHint));
  }
  return wrong;
}

}  // namespace tangram::importing
