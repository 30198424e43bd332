#include "holdings.hpp"

#include <algorithm>
#include <iterator>

#include "tangram/base/at.hpp"

namespace tangram::evolve {

namespace {

constexpr int kTokens = -1;
constexpr int kEmbeddingRest = -2;
constexpr int kHead = -3;

struct Shard {
  int index = 0;
  int of = 1;
};

Interval part_of(const Interval& whole, const Shard& shard) {
  const std::int64_t size = whole.size();
  return {whole.begin + size / shard.of * shard.index + size % shard.of * shard.index / shard.of,
          whole.begin + size / shard.of * (shard.index + 1) + size % shard.of * (shard.index + 1) / shard.of};
}

/// What of all parameters a rank computes with, and which of the ranks that compute with the same it is.
struct Place {
  Shard tensor;
  Shard experts;
  Shard shard;         ///< of the dense part: ZeRO divides what is in `tensor` among these
  Shard expert_shard;  ///< of the experts
};

/// Neighbours share what ZeRO shards.
Place place_of(const plan::Rank& rank, const cost::Degrees& degrees) {
  const int shards = std::max(1, degrees.dp_shard()) * degrees.cp;
  const int expert_shards = std::max(1, degrees.edp() / std::max(1, degrees.expert_replicate()));
  return {{rank.tp, degrees.tp},
          {rank.ep * degrees.etp + rank.etp, degrees.ep * degrees.etp},
          {(rank.dp * degrees.cp + rank.cp) % shards, shards},
          {rank.edp % expert_shards, expert_shards}};
}

/// Recompute holds nothing of its own.
std::vector<cost::BlockRun> sharded_alike(const cost::MemoryPolicy& policy, const plan::Stage& stage) {
  if (policy.is_mixed()) return policy.runs;
  return {{stage.block_count(), {policy.zero}}};
}

/// Of the stage's blocks, counted through its chunks, `count` from `before` on.
std::vector<model::BlockRange> ranges_of(const plan::Stage& stage, int before, int count) {
  std::vector<model::BlockRange> ranges;
  int passed = 0;
  for (const model::BlockRange& chunk : stage.chunks) {
    const int first = chunk.first + std::max(0, before - passed);
    const int last = chunk.first + std::min(chunk.count(), before + count - passed);
    if (first < last) ranges.push_back({first, last});
    passed += chunk.count();
  }
  return ranges;
}

class Holder {
 public:
  Holder(const plan::LaunchPlan& plan, const std::set<int>& cuts, Holdings& holdings)
      : plan_(plan),
        cuts_(cuts),
        holdings_(holdings),
        offset_(plan.colocated ? model::encoder_blocks(plan.model) : 0) {}

  void add(const plan::Rank& rank) {
    const plan::Stage& stage = plan_.stage(rank.stage);
    const cost::Strategy& strategy = at(stage.parts, rank.part).strategy;
    gpu_ = {rank.host, rank.gpu};
    place_ = place_of(rank, strategy.degrees);
    int before = 0;
    for (const cost::BlockRun& run : sharded_alike(strategy.policy, stage)) {
      zero_ = run.policy.zero;
      for (const model::BlockRange& range : ranges_of(stage, before, run.blocks)) {
        cut_blocks(range.first + offset_, range.last + offset_);
      }
      before += run.blocks;
    }
    zero_ = strategy.policy.zero;
    ends(stage);
    if (plan_.colocated) encoders(rank, at(stage.parts, rank.part));
  }

 private:
  /// As the model counts them.
  void cut_blocks(int first, int last) {
    for (auto cut = cuts_.lower_bound(first); *cut < last; ++cut) blocks(*cut, *std::next(cut));
  }

  /// The ranks of a part are lanes of tp in their order. What embeds the encoders' input is told of the first stage
  /// alone, as where they are blocks of the pipeline.
  void encoders(const plan::Rank& rank, const plan::Part& part) {
    const std::vector<model::BlockRange> ranges = model::encoder_ranges(plan_.model);
    for (std::size_t e = 0; e < ranges.size(); ++e) {
      const cost::EncoderLayout& layout = plan_.colocated->encoders[e].layout;
      place_ = {};
      place_.tensor = {(rank.rank - part.first_rank) % layout.tp, layout.tp};
      place_.shard = {rank.rank / layout.tp, std::max<int>(1, static_cast<int>(std::ssize(plan_.ranks)) / layout.tp)};
      zero_ = layout.zero1 ? 1 : 0;
      cut_blocks(ranges[e].first, ranges[e].last);
    }
  }

  /// Run by run of equal blocks.
  void blocks(int first, int last) {
    for (int begin = first; begin < last;) {
      const int type = at(plan_.model.blocks, begin);
      int end = begin;
      while (end < last && at(plan_.model.blocks, end) == type) ++end;
      const model::BlockParameters one = model::parameters(at(plan_.model.types, type));
      const model::BlockParameters trained = model::trained_parameters(at(plan_.model.types, type));
      const std::int64_t count = end - begin;
      hold({begin, end, type, Sharing::kTensor}, count * (one.attention + one.feed_forward),
           count * (trained.attention + trained.feed_forward));
      hold({begin, end, type, Sharing::kReplicated}, count * one.replicated, count * trained.replicated);
      hold({begin, end, type, Sharing::kExperts}, count * one.expert, count * trained.expert);
      begin = end;
    }
  }

  /// A tied token matrix is held by both ends.
  void ends(const plan::Stage& stage) {
    const model::Model& model = plan_.model;
    const std::int64_t tokens =
        model.vocabulary * (model.embedding_projection > 0 ? model.embedding_projection : model.hidden);
    const std::int64_t trained = model.end_gradients().weights ? tokens : 0;
    const bool table = stage.embedding || (stage.head && model.tied_embeddings);
    if (table) hold({kTokens, 0, 0, Sharing::kTensor}, tokens, trained);
    if (stage.embedding) {
      hold({kEmbeddingRest, 0, 0, Sharing::kReplicated}, model.embedding_parameters() - tokens,
           model.trained_embedding_parameters() - trained);
    }
    if (stage.head) hold({kHead, 0, 0, Sharing::kTensor}, model.head_parameters(), model.trained_head_parameters());
  }

  /// Parameters, and the optimizer's state of those that are trained.
  void hold(Tensor tensor, std::int64_t parameters, std::int64_t trained) {
    hold_one(tensor, parameters, zero_ >= 3);
    tensor.optimizer = true;
    hold_one(tensor, trained, zero_ >= 1);
  }

  void hold_one(const Tensor& tensor, std::int64_t parameters, bool sharded) {
    if (parameters <= 0) return;
    const bool experts = tensor.sharing == Sharing::kExperts;
    Interval interval{0, parameters};
    if (experts) interval = part_of(interval, place_.experts);
    if (tensor.sharing == Sharing::kTensor) interval = part_of(interval, place_.tensor);
    const Interval piece = part_of(interval, experts ? place_.expert_shard : place_.shard);
    holdings_[tensor].push_back({gpu_, sharded ? piece : interval});
  }

  const plan::LaunchPlan& plan_;
  const std::set<int>& cuts_;
  Holdings& holdings_;
  int offset_;  ///< of a stage's blocks in the model
  Gpu gpu_;
  Place place_;
  int zero_ = 0;
};

}  // namespace

std::set<int> cuts_of(const plan::LaunchPlan& plan) {
  std::set<int> cuts;
  const int offset = plan.colocated ? model::encoder_blocks(plan.model) : 0;
  for (const model::BlockRange& range : model::encoder_ranges(plan.model)) {
    if (plan.colocated) cuts.insert({range.first, range.last});
  }
  for (const plan::Stage& stage : plan.stages) {
    for (const model::BlockRange& held : plan.blocks_held(stage)) cuts.insert({held.first, held.last});
    for (const plan::Part& part : stage.parts) {
      int before = 0;
      for (const cost::BlockRun& run : part.strategy.policy.runs) {
        for (const model::BlockRange& range : ranges_of(stage, before, run.blocks)) cuts.insert(range.last + offset);
        before += run.blocks;
      }
    }
  }
  return cuts;
}

Holdings holdings_of(const plan::LaunchPlan& plan, const std::set<int>& cuts) {
  Holdings holdings;
  Holder holder(plan, cuts, holdings);
  for (const plan::Rank& rank : plan.ranks) holder.add(rank);
  return holdings;
}

}  // namespace tangram::evolve
