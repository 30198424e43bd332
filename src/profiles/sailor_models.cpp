#include "sailor_models.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reading.hpp"

namespace tangram::profiles {
namespace {

constexpr double kParameterTolerance = 0.02;
// As tangram.profile/1 takes them.
constexpr std::int64_t kMostWidth = 1'000'000;
constexpr std::int64_t kMostTokens = 100'000'000;
constexpr std::int64_t kMostLayers = 10'000;

double value(const io::Node& object, std::string_view key) {
  const io::Node* node = object.find(key);
  const bool known = node != nullptr && (node->kind == io::NodeKind::kInteger || node->kind == io::NodeKind::kNumber);
  return known && node->number > 0 && node->number < 1e15 ? node->number : 0;
}

std::string text(const io::Node& object, std::string_view key) {
  const io::Node* node = object.find(key);
  return node != nullptr && node->kind == io::NodeKind::kString ? node->text : "";
}

bool is_config(const io::Node& root) {
  return value(root, "hidden_size") > 0 && value(root, "num_layers") > 0 && value(root, "sequence_length") > 0;
}

const io::Node* first_member(const io::Node* node) {
  return node != nullptr && node->kind == io::NodeKind::kObject && !node->members.empty() ? &node->members.front().value
                                                                                          : nullptr;
}

bool is_info(const io::Node& root) {
  const io::Node* layer = first_member(first_member(first_member(&root)));
  return layer != nullptr && layer->kind == io::NodeKind::kObject && layer->find("params_floats") != nullptr;
}

/// h with 12 h^2 + 13 h parameters (GPT-2's block with its biases and norms), if there is a whole one.
std::optional<std::int64_t> gpt_hidden(double parameters) {
  const double h = (std::sqrt(169 + 48 * parameters) - 13) / 24;
  const double whole = std::round(h);
  return std::abs(h - whole) < 1e-6 ? std::optional(static_cast<std::int64_t>(whole)) : std::nullopt;
}

}  // namespace

bool SailorModels::take(const io::Document& document, Context&) {
  if (document.root.kind != io::NodeKind::kObject) return false;
  if (is_config(document.root)) {
    take_config(document);
    return true;
  }
  if (is_info(document.root)) {
    take_info(document);
    return true;
  }
  return false;
}

void SailorModels::take_config(const io::Document& document) {
  const io::Node& root = document.root;
  const auto hidden = static_cast<std::int64_t>(value(root, "hidden_size"));
  const auto tokens = static_cast<std::int64_t>(value(root, "sequence_length"));
  const auto heads = static_cast<std::int64_t>(value(root, "heads"));
  const bool sane = hidden <= kMostWidth && tokens <= kMostTokens && heads >= 1 && heads <= hidden;
  if (!sane || hidden % heads != 0 || value(root, "num_layers") > kMostLayers) return;
  Dimensions out;
  out.block = gpt_block(hidden, static_cast<int>(heads), tokens);
  out.blocks = static_cast<int>(value(root, "num_layers"));
  out.vocabulary = static_cast<std::int64_t>(value(root, "vocab_size"));
  out.hidden = hidden;
  out.sequence_length = tokens;
  out.dtype = DType::kFp32;
  configs_[text(root, "model")] = out;
}

void SailorModels::take_info(const io::Document& document) {
  for (const io::Member& model : document.root.members) {
    for (const io::Member& tp : model.value.members) {
      const auto degree = whole_number(tp.key);
      if (!degree) continue;
      for (const io::Member& layer : tp.value.members) {
        const auto number = whole_number(layer.key);
        if (!number) continue;
        info_[model.key][*degree][*number] = {value(layer.value, "params_floats"),
                                              value(layer.value, "act_output_floats"),
                                              value(layer.value, "act_mem_bytes")};
      }
    }
  }
}

std::optional<Dimensions> SailorModels::dimensions(const std::string& name, const std::string& file, Context& context) {
  if (context.request.model) {
    auto found = context.dimensions(file);
    // The tool measures 32-bit layers; a 16-bit job is no reason to believe otherwise.
    if (found && bytes_of(found->dtype) < 4) found->dtype = DType::kFp32;
    return found;
  }
  const auto config = configs_.find(name);
  if (config != configs_.end()) return config->second;
  return from_info(name, file, context);
}

std::optional<Dimensions> SailorModels::from_info(const std::string& name, const std::string& file, Context& context) {
  const auto found = info_.find(name);
  if (found == info_.end() || !found->second.contains(1)) {
    context.add_file_error(file, "unknown-model", fmt::format("nothing says what the blocks of \"{}\" look like", name),
                           "give --model, or Sailor's training_config of it, or its llm_info.json, among the files");
    return std::nullopt;
  }
  const Layers& layers = found->second.at(1);
  const auto facts = [&](int layer) { return layers.contains(layer) ? layers.at(layer) : LayerFacts{}; };
  const LayerFacts block = facts(1);
  const auto hidden = gpt_hidden(block.parameters);
  if (!hidden || *hidden < 64 || *hidden > kMostWidth || *hidden % 64 != 0 || layers.size() < 3) {
    context.add_file_error(
        file, "unknown-model",
        fmt::format("{:.0f} parameters a layer of \"{}\" are no GPT-2 block of 12 h^2 + 13 h", block.parameters, name),
        "give --model");
    return std::nullopt;
  }
  // llm_info does not hold heads. GPT-3's table 2.1 has 64 values a head in its small models, 128 from h = 4096 on.
  const int head_dim = *hidden >= 4096 && *hidden % 128 == 0 ? 128 : 64;
  Dimensions out;
  out.sequence_length = std::llround(block.output / static_cast<double>(*hidden));
  out.block = gpt_block(*hidden, static_cast<int>(*hidden / head_dim), out.sequence_length);
  out.blocks = static_cast<int>(layers.size()) - 2;
  out.hidden = *hidden;
  out.vocabulary = std::llround(facts(0).parameters / static_cast<double>(*hidden)) - out.sequence_length;
  out.dtype = DType::kFp32;
  const bool sane = out.sequence_length >= 1 && out.sequence_length <= kMostTokens && out.vocabulary >= 1;
  if (!sane || out.vocabulary > kMostTokens) {
    context.add_file_error(file, "unknown-model",
                           fmt::format("the sizes of \"{}\" in llm_info do not fit together", name), "give --model");
    return std::nullopt;
  }
  context.notes.detected(
      "dimensions", file,
      fmt::format("from llm_info: hidden {}, {} tokens, {} blocks, padded vocabulary {} with a table of "
                  "positions; {} heads of {} are assumed, --model says it exactly",
                  out.hidden, out.sequence_length, out.blocks, out.vocabulary, out.block.attention.heads, head_dim));
  return out;
}

bool SailorModels::agrees(const std::string& name, const Dimensions& dimensions, const std::string& file,
                          Context& context) const {
  const auto found = info_.find(name);
  if (found == info_.end() || !found->second.contains(1) || !found->second.at(1).contains(1)) return true;
  const double told = found->second.at(1).at(1).parameters;
  const auto counted = static_cast<double>(model::parameters(dimensions.block).total());
  if (std::abs(told - counted) <= kParameterTolerance * counted) return true;
  context.notes.left_out(
      "other-model", file,
      fmt::format("{}: llm_info counts {:.1f} M parameters in a block, the dimensions make {:.1f} M; "
                  "give the --model that was profiled",
                  name, told / 1e6, counted / 1e6));
  return false;
}

double SailorModels::activation(const std::string& name, int tp, int blocks) const {
  const auto found = info_.find(name);
  if (found == info_.end() || !found->second.contains(tp)) return 0;
  std::vector<double> values;
  for (const auto& [layer, facts] : found->second.at(tp)) {
    if (layer >= 1 && layer <= blocks) values.push_back(facts.activation);
  }
  return median(std::move(values));
}

}  // namespace tangram::profiles
