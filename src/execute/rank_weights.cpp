// Which groups a rank belongs to and which slices of which weights it holds, from the degrees of its part and its
// coordinates. Groups are made from the order of ranks, as runtimes make them (tp fastest, then cp, then dp; of experts
// expert-tp, then ep); slices from the coordinates the plan wrote. Where the two disagree, numbers come out wrong.
#include <algorithm>
#include <functional>
#include <limits>

#include "rank.hpp"

#include "tangram/base/at.hpp"

namespace tangram::execute {

namespace {

std::string label(const JobStage& stage, const JobPart& part) {
  std::string text = "stage " + std::to_string(stage.id);
  if (stage.parts.size() > 1) text += " part " + std::to_string(&part - stage.parts.data());
  return text;
}

}  // namespace

void RankProgram::find_groups() {
  const cost::Degrees& d = part_.degrees;
  const int index = place_.rank - part_.first_rank;
  const std::string where = label(stage_, part_);
  const auto group = [&](const std::string& what, const std::function<bool(int)>& belongs) {
    std::vector<int> members;
    for (int i = 0; i < d.gpus(); ++i) {
      if (belongs(i)) members.push_back(part_.first_rank + i);
    }
    return place_.ranks.group(what + " of " + where, std::move(members));
  };
  const int expert_ranks = d.ep * d.etp;
  place_.tensor = group("tp", [&](int i) { return i / d.tp == index / d.tp; });
  place_.context =
      group("cp", [&](int i) { return i % d.tp == index % d.tp && i / (d.tp * d.cp) == index / (d.tp * d.cp); });
  place_.experts = group("ep", [&](int i) { return i / expert_ranks == index / expert_ranks; });
  // Ranks with the same piece are `stride` apart; so many of them in a row share its shards.
  const auto copies = [&](const std::string& what, int stride, int replicas) {
    Copies found;
    found.all = found.shards = group(what, [&](int i) { return i % stride == index % stride; });
    const int span = d.gpus() / replicas;
    if (replicas > 1) {
      found.shards =
          group("sharding " + what, [&](int i) { return i % stride == index % stride && i / span == index / span; });
    }
    found.replicas = group("replicated " + what, [&](int i) { return i % span == index % span; });
    return found;
  };
  copies_ = copies("dp x cp", d.tp, d.dp_replicate);
  expert_copies_ = copies("expert dp", expert_ranks, d.expert_replicate());
}

/// Makes slices of whole matrices and hands out pointers; the parameters live in the rank's list.
struct RankProgram::Layout {
  RankProgram& rank;
  std::vector<Parameter*>* list = nullptr;  // of the block or the end that is being made
  int order = 0;
  int zero = 0;

  static Range all(int n) { return {0, n}; }

  Parameter* make(const std::string& name, int rows, int columns, Range row_range, Range column_range) {
    return add(name, {rows, columns, row_range, column_range}, rank.copies_);
  }
  /// The same on every tp rank; `partial`: each has a part of the gradient.
  Parameter* replicated(const std::string& name, int rows, int columns, bool partial) {
    Parameter* p = make(name, rows, columns, all(rows), all(columns));
    p->first_copy = rank.place_.tp == 0;
    if (partial && rank.place_.degrees.tp > 1) p->partial = rank.place_.tensor;
    return p;
  }
  Parameter* norm(const std::string& name) {
    return replicated(name, 1, rank.job_.model.width, rank.place_.sequence_parallel());
  }
  Parameter* table(const std::string& name) {
    const int rows = rank.job_.model.vocabulary;
    return make(name, rows, rank.job_.model.width, piece(rows, rank.place_.tp, rank.place_.degrees.tp),
                all(rank.job_.model.width));
  }
  /// `width`: of what it reads and gives.
  FeedForwardWeights feed_forward(const std::string& name, int width, int hidden, bool gated, int index, int count,
                                  const Copies& copies) {
    const Range own = piece(hidden, index, count);
    FeedForwardWeights weights;
    weights.up = add(name + " up", {width, hidden, all(width), own}, copies);
    if (gated) weights.gate = add(name + " gate", {width, hidden, all(width), own}, copies);
    weights.down = add(name + " down", {hidden, width, own, all(width)}, copies);
    return weights;
  }
  Parameter* add(const std::string& name, const Slice& slice, Copies copies) {
    if (zero == 0) copies = {copies.all, copies.all, nullptr};
    rank.parameters_.push_back(make_parameter(name, order++, slice, copies, rank.place_.rank, zero));
    list->push_back(&rank.parameters_.back());
    return list->back();
  }

  AttentionWeights attention(const std::string& name, const SmallBlock& shape) {
    const int width = rank.job_.model.width;
    const int tp = rank.place_.degrees.tp;
    const Range heads = piece(shape.heads, rank.place_.tp, tp);
    const int group = shape.heads / shape.kv_heads;
    const Range kv_heads{heads.first / group, (heads.last - 1) / group + 1};
    const auto columns = [&](Range of_heads) {
      return Range{of_heads.first * shape.head_width, of_heads.last * shape.head_width};
    };
    AttentionWeights weights;
    weights.shape = shape;
    if (shape.latent) weights.latent = replicated(name + " latent", width, rank.job_.model.latent_width, true);
    const int source = shape.latent ? rank.job_.model.latent_width : width;
    const int all_heads = shape.heads * shape.head_width;
    const int all_kv_heads = shape.kv_heads * shape.head_width;
    weights.query = make(name + " query", width, all_heads, all(width), columns(heads));
    weights.key = make(name + " key", source, all_kv_heads, all(source), columns(kv_heads));
    weights.value = make(name + " value", source, all_kv_heads, all(source), columns(kv_heads));
    if (shape.output_gate) weights.gate = make(name + " output gate", width, all_heads, all(width), columns(heads));
    weights.output = make(name + " output", all_heads, width, columns(heads), all(width));
    if (tp > shape.kv_heads) share_key_values(weights, tp / shape.kv_heads);
    return weights;
  }
  /// Heads and groups are split over tp; of vectors a rank of cp has the gradient of the heads that it scans.
  RecurrenceWeights recurrence(const std::string& name, const SmallRecurrence& shape) {
    const int width = rank.job_.model.width;
    const bool delta = shape.kind == model::RecurrenceKind::kGatedDelta;
    const auto split = [&](const std::string& what, int rows, int columns) {
      return make(name + what, rows, columns, all(rows), piece(columns, rank.place_.tp, rank.place_.degrees.tp));
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
    weights.output =
        make(name + " output", inner, width, piece(inner, rank.place_.tp, rank.place_.degrees.tp), all(width));
    return weights;
  }
  /// Several tp ranks hold the same key-value heads, each with the gradient of its own queries.
  void share_key_values(const AttentionWeights& weights, int ranks) {
    const auto& tensor = rank.place_.tensor->members;
    const int first = rank.place_.tp / ranks * ranks;
    std::vector<int> members(tensor.begin() + first, tensor.begin() + first + ranks);
    Group* group = rank.place_.ranks.group("key-value heads in " + rank.place_.tensor->name, std::move(members));
    for (Parameter* p : {weights.key, weights.value}) {
      p->partial = group;
      p->first_copy = rank.place_.tp == first;
    }
  }

  void block(const SmallBlock& shape, const cost::BlockPolicy& policy) {
    const std::string name = "block " + std::to_string(shape.index);
    const Place& place = rank.place_;
    Block& block = rank.blocks_.emplace_back();
    list = &block.weights;
    zero = policy.zero;
    block.recompute = policy.recompute == cost::RecomputeMode::kFull;
    block.keep_probabilities = policy.recompute != cost::RecomputeMode::kSelective;
    block.parallel_attention = shape.parallel_attention;
    if (shape.mixes()) block.first_norm = norm(name + " first norm");
    if (shape.feeds_forward() && !shape.parallel_attention) block.second_norm = norm(name + " second norm");
    if (shape.recurrence) block.recurrence = recurrence(name, *shape.recurrence);
    if (shape.heads > 0) block.attention = attention(name, shape);
    const auto wide = [&](const std::string& what, int hidden) {
      if (hidden == 0) return;
      block.wide.push_back(feed_forward(name + what, rank.job_.model.width, hidden, shape.gated, place.tp,
                                        place.degrees.tp, rank.copies_));
    };
    wide("", shape.hidden);
    wide(" shared expert", shape.shared_hidden);
    if (shape.experts > 0) block.experts = experts(name, shape);
    if (!rank.stage_.puts_off) return;
    for (Parameter* p : block.weights) p->puts_off = p != block.first_norm && p != block.second_norm;
    if (!block.recurrence) return;
    const RecurrenceWeights& r = *block.recurrence;
    for (Parameter* p : {r.value_convolution, r.key_convolution, r.query_convolution, r.rate, r.bias, r.skip, r.norm}) {
      if (p != nullptr) p->puts_off = false;  // in no product
    }
  }
  ExpertsWeights experts(const std::string& name, const SmallBlock& shape) {
    const Place& place = rank.place_;
    ExpertsWeights weights;
    weights.experts = shape.experts;
    weights.chosen = shape.experts_per_token;
    weights.router = replicated(name + " router", rank.job_.model.width, shape.experts, true);
    int width = rank.job_.model.width;
    if (shape.latent_experts) {
      const int latent = rank.job_.model.latent_width;
      weights.down = replicated(name + " latent down", width, latent, true);
      weights.up = replicated(name + " latent up", latent, width, true);
      width = latent;
    }
    const Range held = piece(shape.experts, place.ep, place.degrees.ep);
    for (int e = held.first; e < held.last; ++e) {
      weights.held.push_back(feed_forward(name + " expert " + std::to_string(e), width, shape.expert_hidden,
                                          shape.gated, place.etp, place.degrees.etp, rank.expert_copies_));
    }
    return weights;
  }
};

void RankProgram::make_weights() {
  constexpr int kPerBlock = 10'000;  // more weights than a block has
  constexpr const char* kTable = "token table";
  Layout layout{*this};
  const SmallModel& model = job_.model;
  layout.zero = part_.zero_of_ends;
  if (stage_.embedding) {
    layout.list = &embedding_list_;
    embedding_.tokens = layout.table(kTable);
    if (model.encoder_blocks > 0) embedding_.patches = layout.table("patch table");
    embedding_.positions =
        layout.replicated("position table", model.positions, model.width, place_.sequence_parallel());
  }
  std::size_t position = 0;
  for (const Range& chunk : stage_.chunks) {
    for (int b = chunk.first; b < chunk.last; ++b) {
      layout.order = (b + 1) * kPerBlock;
      layout.block(at(model.blocks, b), part_.blocks[position++]);
    }
  }
  if (!stage_.head) return;
  layout.zero = part_.zero_of_ends;
  layout.list = &head_list_;
  if (model.tied && stage_.embedding) {
    head_.table = embedding_.tokens;
    head_list_.push_back(head_.table);
  } else {
    layout.order = model.tied ? 0 : std::numeric_limits<int>::max() - 1;
    head_.table = layout.table(model.tied ? kTable : "output table");
  }
  layout.order = std::numeric_limits<int>::max() - 2;
  head_.norm = layout.norm("last norm");
}

}  // namespace tangram::execute
