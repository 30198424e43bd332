#include "tangram/model/split.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/lognormal.hpp"

namespace tangram::model {

namespace {

/// Null: the model file names no modules.
const Module* encoder_module(const Model& model, int encoder) {
  const BlockRange range = at(encoder_ranges(model), encoder);
  const auto is_it = [&](const Module& m) { return m.kind == ModuleKind::kEncoder && m.blocks == range; };
  const auto found = std::ranges::find_if(model.graph.modules, is_it);
  return found == model.graph.modules.end() ? nullptr : &*found;
}

/// The model with these blocks alone, and the types that they have: what degrees a model can run at goes by its types.
Model with_blocks(const Model& model, const BlockRange& range) {
  Model out = model;
  out.types.clear();
  out.blocks.clear();
  std::vector<int> numbers(model.types.size(), -1);
  for (int i = range.first; i < range.last; ++i) {
    int& number = at(numbers, at(model.blocks, i));
    if (number < 0) {
      number = static_cast<int>(out.types.size());
      out.types.push_back(model.block(i));
    }
    out.blocks.push_back(number);
  }
  return out;
}

/// A graph of one module. Its kind is the one whose training decides for the ends of a model.
ModuleGraph alone(Module module) {
  module.kind = ModuleKind::kLanguage;
  module.blocks = {0, module.blocks.count()};
  module.items = {};
  module.connector.reset();
  return {{std::move(module)}, {}};
}

std::string why_not_graph(const ModuleGraph& graph) {
  for (const Module& module : graph.modules) {
    if (module.kind == ModuleKind::kGenerator) return "it has a generator, \"" + module.name + '"';
  }
  if (!graph.language().trainable) return "its language model is frozen";
  for (const Edge& edge : graph.edges) {
    const Module& from = at(graph.modules, edge.from);
    if (at(graph.modules, edge.to).kind != ModuleKind::kLanguage) {
      return '"' + from.name + "\" feeds another encoder";
    }
    if (!edge.into_layers.empty()) return '"' + from.name + "\" feeds inner layers of the language model";
  }
  return "";
}

}  // namespace

std::string why_not_split(const Model& model) {
  const std::vector<BlockRange> ranges = encoder_ranges(model);
  if (ranges.empty()) return "it has no encoders";
  int next = 0;
  for (const BlockRange& range : ranges) {
    if (range.first != next) return "its encoders are not in front of all other blocks";
    next = range.last;
  }
  if (next != encoder_blocks(model)) return "its encoders are not in front of all other blocks";
  return model.graph.empty() ? "" : why_not_graph(model.graph);
}

Model language_of(const Model& model) {
  TANGRAM_ASSERT(why_not_split(model).empty());
  Model language = with_blocks(model, {encoder_blocks(model), model.block_count()});
  language.graph = {};
  if (model.graph.empty()) {
    language.extra_embedding_parameters = 0;
    return language;
  }
  language.graph = alone(model.graph.language());
  for (const Module& module : model.graph.modules) language.extra_embedding_parameters -= module.patch_parameters;
  return language;
}

Model encoder_of(const Model& model, int encoder) {
  const BlockRange range = at(encoder_ranges(model), encoder);
  const Module* module = encoder_module(model, encoder);
  Model out = with_blocks(model, range);
  out.name = encoder_name(model, encoder);
  out.graph = module == nullptr ? ModuleGraph{} : alone(*module);
  out.vocabulary = 0;
  out.learned_positions = 0;
  out.embedding_projection = 0;
  out.tied_embeddings = false;
  out.final_norm = false;
  out.hidden = model.block(range.first).hidden;
  out.job.sequence_length = model.block(range.first).tokens;
  const std::int64_t unnamed = encoder == 0 ? model.extra_embedding_parameters : 0;
  out.extra_embedding_parameters = module == nullptr ? unnamed : module->patch_parameters;
  return out;
}

std::string encoder_name(const Model& model, int encoder) {
  const Module* module = encoder_module(model, encoder);
  return module == nullptr ? "encoder" : module->name;
}

bool trains_encoder(const Model& model, int encoder) {
  const BlockRange range = at(encoder_ranges(model), encoder);
  for (int b = range.first; b < range.last; ++b) {
    const BlockType& block = model.block(b);
    if (block.gradients.any() || (block.connector && block.connector->gradients.any())) return true;
  }
  return false;
}

bool trains_encoders(const Model& model) {
  for (int e = 0; e < static_cast<int>(encoder_ranges(model).size()); ++e) {
    if (trains_encoder(model, e)) return true;
  }
  return false;
}

std::int64_t encoder_output_bytes(const Model& model, int encoder) {
  const Module* module = encoder_module(model, encoder);
  const BlockType& last = model.block(at(encoder_ranges(model), encoder).last - 1);
  const std::int64_t tokens = module == nullptr ? last.tokens : module->sample_tokens_out();
  return tokens * model.hidden * model.job.parameter_bytes;
}

EncoderSpread encoder_spread(const Model& model, int encoder) {
  const Module* module = encoder_module(model, encoder);
  if (module == nullptr) return {};
  const Items& items = module->items;
  const double deviation = lognormal_deviation(items.mean, items.p95);
  return {std::sqrt(std::expm1(deviation * deviation)), items.none};
}

}  // namespace tangram::model
