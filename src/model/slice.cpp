#include "tangram/model/slice.hpp"

#include "tangram/base/assert.hpp"
#include "tangram/base/at.hpp"

namespace tangram::model {

std::string to_string(const BlockRange& blocks) {
  return std::to_string(blocks.first) + "-" + std::to_string(blocks.last - 1);
}

namespace {

std::int64_t activation_width(const Model& model) { return model.job.parameter_bytes; }

// What crosses a cut of a model whose modules are known, in values of one sample.
class CrossingValues {
 public:
  CrossingValues(const Model& model, int cut) : model_(model), graph_(model.graph), cut_(cut) {}

  [[nodiscard]] std::int64_t count() const {
    std::int64_t values = cut_ <= graph_.language().blocks.first ? sequence() : 0;
    for (int m = 0; m < std::ssize(graph_.modules); ++m) values += of_module(m);
    for (const Edge& edge : graph_.edges) values += of_inner_layers(edge);
    return values;
  }

 private:
  [[nodiscard]] std::int64_t sequence() const { return model_.job.sequence_length * model_.hidden; }

  [[nodiscard]] std::int64_t of_block_before() const {
    const BlockType& block = model_.block(cut_ - 1);
    return block.tokens * block.hidden;
  }

  /// The module's activation where it is cut, and its output from its end until its target begins.
  [[nodiscard]] std::int64_t of_module(int m) const {
    const Module& module = at(graph_.modules, m);
    if (cut_ <= module.blocks.first) return 0;
    if (cut_ < module.blocks.last) return of_block_before();
    if (module.kind == ModuleKind::kLanguage) return sequence();  // for the head, and generators on the way
    if (module.kind == ModuleKind::kGenerator) return 0;          // its loss is where it ends
    const Edge* edge = graph_.edge_of(m);
    const bool awaited = edge != nullptr && cut_ <= at(graph_.modules, edge->to).blocks.first;
    return awaited ? module.sample_tokens_out() * width_out(module) : 0;
  }

  [[nodiscard]] std::int64_t width_out(const Module& module) const {
    return module.connector ? module.connector->widths.back() : model_.block(module.blocks.last - 1).hidden;
  }

  /// Deepstack: what is tapped from inner layers, until the encoder's end as it is, then as the connector makes it.
  [[nodiscard]] std::int64_t of_inner_layers(const Edge& edge) const {
    const Module& from = at(graph_.modules, edge.from);
    const int target = at(graph_.modules, edge.to).blocks.first;
    std::int64_t values = 0;
    for (const int layer : edge.from_layers) {
      const bool tapped = from.blocks.first + layer < cut_ && cut_ < from.blocks.last;
      if (tapped) values += of_block_before();
    }
    for (const int layer : edge.into_layers) {
      const bool awaited = from.blocks.last <= cut_ && cut_ <= target + layer;
      if (awaited) values += from.sample_tokens_out() * width_out(from);
    }
    return values;
  }

  const Model& model_;
  const ModuleGraph& graph_;
  int cut_;
};

}  // namespace

int encoder_blocks(const Model& model) {
  bool causal_behind = false;
  for (int i = model.block_count() - 1; i >= 0; --i) {
    if (model.block(i).attention.causal) {
      causal_behind = true;
    } else if (causal_behind) {
      return i + 1;
    }
  }
  return 0;
}

BlockRange language_blocks(const Model& model) {
  if (!model.graph.empty()) return model.graph.language().blocks;
  return {encoder_blocks(model), model.block_count()};
}

std::vector<BlockRange> encoder_ranges(const Model& model) {
  std::vector<BlockRange> ranges;
  const int all = encoder_blocks(model);
  for (const Module& module : model.graph.modules) {
    if (module.kind == ModuleKind::kEncoder && module.blocks.last <= all) ranges.push_back(module.blocks);
  }
  if (model.graph.empty() && all > 0) ranges.push_back({0, all});
  return ranges;
}

int SliceSignature::block_count() const {
  int count = 0;
  for (const auto& [type, blocks] : runs) count += blocks;
  return count;
}

std::int64_t cut_bytes(const Model& model, int cut) {
  TANGRAM_ASSERT(cut > 0 && cut < model.block_count());
  if (!model.graph.empty()) return CrossingValues(model, cut).count() * activation_width(model);
  const BlockType& before = model.block(cut - 1);
  std::int64_t values = before.tokens * before.hidden;
  const int encoders = encoder_blocks(model);
  if (cut <= encoders) {
    // The first stage holds the token embedding, the decoder needs its output and that of every finished encoder.
    values += model.job.sequence_length * model.hidden;
    for (int i = 1; i < cut; ++i) {
      const bool ends_encoder = at(model.blocks, i) != at(model.blocks, i - 1);
      if (ends_encoder) values += model.block(i - 1).tokens * model.block(i - 1).hidden;
    }
  }
  return values * activation_width(model);
}

SliceSignature signature(const Model& model, int first, int last) {
  TANGRAM_ASSERT(first >= 0 && first < last && last <= model.block_count());
  SliceSignature out;
  for (int i = first; i < last; ++i) {
    const int type = at(model.blocks, i);
    if (out.runs.empty() || out.runs.back().first != type) out.runs.emplace_back(type, 0);
    ++out.runs.back().second;
  }
  out.embedding = first == 0;
  out.head = last == model.block_count();
  out.tied_elsewhere = model.tied_embeddings && out.embedding != out.head;
  out.entry_bytes = out.embedding ? 0 : cut_bytes(model, first);
  out.exit_bytes = out.head ? 0 : cut_bytes(model, last);
  return out;
}

std::int64_t slice_parameters(const Model& model, const SliceSignature& slice) {
  std::int64_t total = 0;
  for (const auto& [type, count] : slice.runs) {
    total += count * parameters(at(model.types, type)).total();
  }
  if (slice.embedding) total += model.embedding_parameters();
  if (slice.head) total += model.head_parameters();
  if (slice.head && slice.tied_elsewhere) {
    total += model.vocabulary * (model.embedding_projection > 0 ? model.embedding_projection : model.hidden);
  }
  return total;
}

double held_parameters(const Model& model, const SliceSignature& slice) {
  auto held = static_cast<double>(slice_parameters(model, slice));
  for (const auto& [index, count] : slice.runs) {
    const BlockType& type = at(model.types, index);
    const auto quantized = static_cast<double>(quantized_parameters(type).total());
    held -= count * quantized * spared_share(type, model.job.parameter_bytes);
  }
  return held;
}

}  // namespace tangram::model
