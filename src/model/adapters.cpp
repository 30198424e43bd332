#include "tangram/model/adapters.hpp"

#include <algorithm>

#include "graph.hpp"
#include "tangram/base/enum_names.hpp"

namespace tangram::model {

namespace {

void add_matrices_of_attention(const BlockType& block, std::vector<AdaptableMatrix>& out) {
  const Attention& a = block.attention;
  if (!block.attends() || block.recurrence) return;
  const bool latent = a.kind == AttentionKind::kLatent;
  const std::int64_t attended = std::int64_t{a.heads} * (latent ? a.v_head_dim : a.head_dim);
  if (!latent) {
    const std::int64_t shared = std::int64_t{a.kv_heads} * a.head_dim;
    out.push_back({AdapterTarget::kQuery, block.hidden, a.output_gate ? 2 * attended : attended});
    out.push_back({AdapterTarget::kKey, block.hidden, shared});
    out.push_back({AdapterTarget::kValue, block.hidden, shared});
  }
  out.push_back({AdapterTarget::kOutput, attended, block.hidden});
}

void add_matrices_of_feed_forward(const BlockType& block, std::int64_t inner, std::vector<AdaptableMatrix>& out) {
  if (inner == 0) return;
  if (block.feed_forward.gated) out.push_back({AdapterTarget::kGate, block.hidden, inner});
  out.push_back({AdapterTarget::kUp, block.hidden, inner});
  out.push_back({AdapterTarget::kDown, inner, block.hidden});
}

}  // namespace

std::string_view to_string(BaseQuantization quantization) {
  switch (quantization) {
    case BaseQuantization::kNone: break;
    case BaseQuantization::kNf4: return "nf4";
    case BaseQuantization::kNf4Double: return "nf4-double";
  }
  return "none";
}

std::optional<double> quantized_bytes(BaseQuantization quantization) {
  constexpr double kBlock = 64;    // values of a scale
  constexpr double kScales = 256;  // scales of a scale
  switch (quantization) {
    case BaseQuantization::kNone: break;
    case BaseQuantization::kNf4: return 0.5 + 4 / kBlock;
    case BaseQuantization::kNf4Double: return 0.5 + 1 / kBlock + 4 / (kBlock * kScales);
  }
  return std::nullopt;
}

std::vector<std::string_view> names_of(const AdapterTargets& targets) { return names_in(kAdapterTargets, targets); }

std::optional<AdapterTarget> target_called(std::string_view name) {
  const auto found = std::ranges::find(kAdapterTargets, name, [](const auto& row) { return row.first; });
  return found == kAdapterTargets.end() ? std::nullopt : std::optional(found->second);
}

std::vector<AdaptableMatrix> adaptable_matrices(const BlockType& block) {
  std::vector<AdaptableMatrix> all;
  add_matrices_of_attention(block, all);
  add_matrices_of_feed_forward(block, block.feed_forward.hidden, all);
  add_matrices_of_feed_forward(block, block.feed_forward.shared_hidden, all);
  return all;
}

std::vector<AdaptableMatrix> adapted_matrices(const BlockType& block) {
  if (!block.adapters.any()) return {};
  std::vector<AdaptableMatrix> all = adaptable_matrices(block);
  std::erase_if(all, [&](const AdaptableMatrix& matrix) { return !block.adapters.has(matrix.target); });
  return all;
}

AdapterTargets adaptable_targets(const BlockType& block) {
  AdapterTargets targets;
  for (const AdaptableMatrix& matrix : adaptable_matrices(block)) targets.add(matrix.target);
  return targets;
}

void set_adapters(Model& model, Adapters adapters) {
  std::vector<BlockType> chain;
  for (int b = 0; b < model.block_count(); ++b) chain.push_back(model.block(b));
  put_adapters(model.graph, chain, adapters);
  apply_graph(model.graph, chain);
  model.types.clear();
  for (std::size_t b = 0; b < chain.size(); ++b) model.blocks[b] = add_type(model.types, std::move(chain[b]));
}

std::optional<Adapters> adapters_of(const Model& model) {
  if (model.graph.empty() || !model.graph.language().adapters.any()) return std::nullopt;
  return model.graph.language().adapters;
}

}  // namespace tangram::model
