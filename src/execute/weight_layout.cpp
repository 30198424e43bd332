#include "weight_layout.hpp"

#include <utility>

namespace tangram::execute {

namespace {

constexpr int kAdapterRank = 2;

Range all(int n) { return {0, n}; }

}  // namespace

Parameter* WeightLayout::add(const std::string& name, const Slice& slice, Copies group) {
  if (zero == 0) group = {group.all, group.all, nullptr};
  parameters.push_back(make_parameter(name, order++, slice, group, place.rank, zero));
  Parameter& made = parameters.back();
  made.encoder = encoder;
  made.trained = trained;
  list->push_back(&made);
  return &made;
}

Parameter* WeightLayout::make(const std::string& name, int rows, int columns, Range row_range, Range column_range) {
  return add(name, {rows, columns, row_range, column_range}, copies);
}

/// The same on every tp rank; `partial`: each has a part of the gradient.
Parameter* WeightLayout::replicated(const std::string& name, int rows, int columns, bool partial) {
  Parameter* p = make(name, rows, columns, all(rows), all(columns));
  p->first_copy = place.tp == 0;
  if (partial && place.degrees.tp > 1) p->partial = place.tensor;
  return p;
}

Parameter* WeightLayout::norm(const std::string& name) {
  return replicated(name, 1, model.width, place.sequence_parallel());
}

Parameter* WeightLayout::positions(const std::string& name) {
  return replicated(name, model.positions, model.width, place.sequence_parallel());
}

Parameter* WeightLayout::table(const std::string& name) {
  const int rows = model.vocabulary;
  return make(name, rows, model.width, piece(rows, place.tp, place.degrees.tp), all(model.width));
}

/// `width`: of what it reads and gives; `own`: the rank's columns inside.
FeedForwardWeights WeightLayout::feed_forward(const std::string& name, int width, int hidden, bool gated, Range own,
                                              const Copies& group) {
  FeedForwardWeights weights;
  weights.up = add(name + " up", {width, hidden, all(width), own}, group);
  if (gated) weights.gate = add(name + " gate", {width, hidden, all(width), own}, group);
  weights.down = add(name + " down", {hidden, width, own, all(width)}, group);
  return weights;
}

FeedForwardWeights WeightLayout::wide_feed_forward(const std::string& name, int hidden, bool gated) {
  return feed_forward(name, model.width, hidden, gated, piece(hidden, place.tp, place.degrees.tp), copies);
}

AttentionWeights WeightLayout::attention(const std::string& name, const SmallBlock& shape) {
  const int width = model.width;
  const int tp = place.degrees.tp;
  const Range heads = piece(shape.heads, place.tp, tp);
  const int group = shape.heads / shape.kv_heads;
  const Range kv_heads{heads.first / group, (heads.last - 1) / group + 1};
  const auto columns = [&](Range of_heads) {
    return Range{of_heads.first * shape.head_width, of_heads.last * shape.head_width};
  };
  AttentionWeights weights;
  weights.shape = shape;
  if (shape.latent) weights.latent = replicated(name + " latent", width, model.latent_width, true);
  const int source = shape.latent ? model.latent_width : width;
  const int all_heads = shape.heads * shape.head_width;
  const int all_kv_heads = shape.kv_heads * shape.head_width;
  weights.query = make(name + " query", width, all_heads, all(width), columns(heads));
  weights.key = make(name + " key", source, all_kv_heads, all(source), columns(kv_heads));
  weights.value = make(name + " value", source, all_kv_heads, all(source), columns(kv_heads));
  if (shape.output_gate) weights.gate = make(name + " output gate", width, all_heads, all(width), columns(heads));
  weights.output = make(name + " output", all_heads, width, columns(heads), all(width));
  add_adapters(weights, shape.adapted);
  if (tp > shape.kv_heads) share_key_values(weights, tp / shape.kv_heads);
  return weights;
}

/// Several tp ranks hold the same key-value heads, each with the gradient of its own queries.
void WeightLayout::share_key_values(const AttentionWeights& weights, int ranks) {
  const auto& tensor = place.tensor->members;
  const int first = place.tp / ranks * ranks;
  std::vector<int> members(tensor.begin() + first, tensor.begin() + first + ranks);
  Group* group = place.ranks.group("key-value heads in " + place.tensor->name, std::move(members));
  for (Parameter* p : {weights.key, weights.value, weights.key->adapter_out, weights.value->adapter_out}) {
    if (p == nullptr) continue;
    p->partial = group;
    p->first_copy = place.tp == first;
  }
}

void WeightLayout::add_adapter(Parameter* beside, bool splits_input) {
  if (beside == nullptr) return;
  const bool was_trained = std::exchange(trained, true);
  const Slice slice = beside->slice;
  const std::string in = beside->name + " adapter in";
  const std::string out = beside->name + " adapter out";
  if (splits_input) {
    beside->adapter_in = make(in, slice.rows, kAdapterRank, slice.row_range, all(kAdapterRank));
    beside->adapter_out = replicated(out, kAdapterRank, slice.columns, true);
  } else {
    beside->adapter_in = replicated(in, slice.rows, kAdapterRank, true);
    beside->adapter_out = make(out, kAdapterRank, slice.columns, all(kAdapterRank), slice.column_range);
  }
  trained = was_trained;
}

void WeightLayout::add_adapters(const AttentionWeights& weights, const model::AdapterTargets& adapted) {
  using enum model::AdapterTarget;
  if (adapted.has(kQuery)) {
    add_adapter(weights.query, false);
    add_adapter(weights.gate, false);
  }
  if (adapted.has(kKey)) add_adapter(weights.key, false);
  if (adapted.has(kValue)) add_adapter(weights.value, false);
  if (adapted.has(kOutput)) add_adapter(weights.output, true);
}

void WeightLayout::add_adapters(const FeedForwardWeights& weights, const model::AdapterTargets& adapted) {
  using enum model::AdapterTarget;
  if (adapted.has(kGate)) add_adapter(weights.gate, false);
  if (adapted.has(kUp)) add_adapter(weights.up, false);
  if (adapted.has(kDown)) add_adapter(weights.down, true);
}

/// Heads and groups are split over tp; of vectors a rank of cp has the gradient of the heads that it scans.
RecurrenceWeights WeightLayout::recurrence(const std::string& name, const SmallRecurrence& shape) {
  const int width = model.width;
  const bool delta = shape.kind == model::RecurrenceKind::kGatedDelta;
  const auto split = [&](const std::string& what, int rows, int columns) {
    return make(name + what, rows, columns, all(rows), piece(columns, place.tp, place.degrees.tp));
  };
  const int inner = shape.heads * shape.head_width;
  const int keys = shape.groups * shape.key_width;
  const int taps = shape.convolution + 1;  // and the bias
  RecurrenceWeights weights;
  weights.shape = shape;
  weights.gate = split(" gate", width, inner);
  weights.value = split(" value", width, inner);
  weights.key = split(" key", width, keys);
  weights.query = split(" query", width, keys);
  weights.step = split(" step", width, shape.heads);
  if (delta) weights.strength = split(" strength", width, shape.heads);
  weights.value_convolution = split(" value convolution", taps, inner);
  weights.key_convolution = split(" key convolution", taps, keys);
  weights.query_convolution = split(" query convolution", taps, keys);
  weights.rate = split(" rate", 1, shape.heads);
  weights.bias = split(" step bias", 1, shape.heads);
  if (!delta) weights.skip = split(" skip", 1, shape.heads);
  weights.norm = delta ? replicated(name + " head norm", 1, shape.head_width, true) : split(" head norm", 1, inner);
  weights.output = make(name + " output", inner, width, piece(inner, place.tp, place.degrees.tp), all(width));
  return weights;
}

ExpertsWeights WeightLayout::experts(const std::string& name, const SmallBlock& shape) {
  ExpertsWeights weights;
  weights.experts = shape.experts;
  weights.chosen = shape.experts_per_token;
  weights.groups = shape.expert_groups;
  weights.chosen_groups = shape.groups_per_token;
  weights.router = replicated(name + " router", model.width, shape.experts, true);
  int width = model.width;
  if (shape.latent_experts) {
    const int latent = model.latent_width;
    weights.down = replicated(name + " latent down", width, latent, true);
    weights.up = replicated(name + " latent up", latent, width, true);
    width = latent;
  }
  const Range held = piece(shape.experts, place.ep, place.degrees.ep);
  const Range own = piece(shape.expert_hidden, place.etp, place.degrees.etp);
  for (int e = held.first; e < held.last; ++e) {
    weights.held.push_back(feed_forward(name + " expert " + std::to_string(e), width, shape.expert_hidden, shape.gated,
                                        own, expert_copies));
  }
  return weights;
}

/// Norms, and what is in no product, have their gradients in the backward pass.
void WeightLayout::put_products_off(const Block& block) {
  for (Parameter* p : block.weights) p->puts_off = p != block.first_norm && p != block.second_norm;
  if (!block.recurrence) return;
  const RecurrenceWeights& r = *block.recurrence;
  for (Parameter* p : {r.value_convolution, r.key_convolution, r.query_convolution, r.rate, r.bias, r.skip, r.norm}) {
    if (p != nullptr) p->puts_off = false;
  }
}

Block WeightLayout::block(const std::string& name, const SmallBlock& shape, const cost::BlockPolicy& policy) {
  Block block;
  list = &block.weights;
  zero = policy.zero;
  trained = shape.trained;
  block.recompute = policy.recompute == cost::RecomputeMode::kFull;
  block.keep_probabilities = policy.recompute != cost::RecomputeMode::kSelective;
  block.parallel_attention = shape.parallel_attention;
  if (shape.mixes()) block.first_norm = norm(name + " first norm");
  if (shape.feeds_forward() && !shape.parallel_attention) block.second_norm = norm(name + " second norm");
  if (shape.recurrence) block.recurrence = recurrence(name, *shape.recurrence);
  if (shape.heads > 0) block.attention = attention(name, shape);
  const auto wide = [&](const std::string& what, int hidden) {
    if (hidden == 0) return;
    block.wide.push_back(wide_feed_forward(name + what, hidden, shape.gated));
    add_adapters(block.wide.back(), shape.adapted);
  };
  wide("", shape.hidden);
  wide(" shared expert", shape.shared_hidden);
  if (shape.experts > 0) block.experts = experts(name, shape);
  if (puts_off) put_products_off(block);
  list = nullptr;
  return block;
}

}  // namespace tangram::execute
