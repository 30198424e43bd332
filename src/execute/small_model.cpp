// The model at small widths: as many heads, columns, experts and vocabulary rows as every degree of the plan divides,
// and no more than that.
#include <algorithm>
#include <numeric>
#include <optional>

#include "reduction.hpp"
#include "tangram/model/split.hpp"

namespace tangram::execute {

namespace {

constexpr int kLeastHidden = 4;

struct CommonDegrees {
  int tp = 1, ep = 1, etp = 1;  ///< least common multiples
  int positions = 1;            ///< of cp x tp
  int scanned = 1;              ///< of tp x the cp that is kept
  std::vector<int> tps;
  std::vector<int> sharers;  ///< tp x cp of the plan
};

CommonDegrees common_degrees(const plan::LaunchPlan& plan, int folds) {
  CommonDegrees common;
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      const cost::Degrees& d = part.strategy.degrees;
      common.tp = std::lcm(common.tp, d.tp);
      common.ep = std::lcm(common.ep, d.ep);
      common.etp = std::lcm(common.etp, d.etp);
      common.positions = std::lcm(common.positions, d.tp * d.cp);
      common.scanned = std::lcm(common.scanned, d.tp * (d.cp / folds));
      common.tps.push_back(d.tp);
      common.sharers.push_back(d.tp * d.cp);
    }
  }
  if (!plan.colocated) return common;
  for (const plan::ColocatedEncoders::Encoder& encoder : plan.colocated->encoders) {
    common.tp = std::lcm(common.tp, encoder.layout.tp);
    common.positions = std::lcm(common.positions, encoder.layout.tp);
    common.tps.push_back(encoder.layout.tp);
  }
  return common;
}

/// The smallest multiple of `unit` that is at least `least`.
int at_least(int least, int unit) { return (least + unit - 1) / unit * unit; }

void set_recurrence(SmallBlock& small, const model::Recurrence& from, const CommonDegrees& common) {
  SmallRecurrence own;
  own.kind = from.kind;
  own.groups = at_least(2, common.scanned);
  own.heads = from.heads == from.groups ? own.groups : 2 * own.groups;
  small.recurrence = own;
}

/// Ranks of tp share heads, of tp x cp where these exchange them: as far as the cp is kept, so that as many key-value
/// heads as the model has need not divide among them where they are too few for all.
void set_heads(SmallBlock& small, const model::Attention& attention, const CommonDegrees& common) {
  small.output_gate = attention.output_gate;
  small.latent = attention.kind == model::AttentionKind::kLatent;
  const bool all_alike = small.latent || attention.kv_heads == attention.heads;
  const bool exchanges = small.exchanges_heads;
  const int ranks = exchanges ? common.scanned : common.tp;
  const bool replicated = !all_alike && std::ranges::any_of(exchanges ? common.sharers : common.tps,
                                                            [&](int all) { return all > attention.kv_heads; });
  const int too_few = exchanges ? 1 : attention.kv_heads;
  small.kv_heads = replicated ? too_few : at_least(2, ranks);
  small.heads = std::lcm(small.kv_heads, ranks);
  if (!all_alike && (exchanges || small.heads == small.kv_heads)) small.heads *= 2;
}

void set_feed_forward(SmallBlock& small, const model::FeedForward& from, const CommonDegrees& common) {
  small.gated = from.gated;
  if (from.hidden > 0) small.hidden = at_least(kLeastHidden, common.tp);
  if (!from.is_moe()) return;
  if (from.shared_hidden > 0) small.shared_hidden = at_least(kLeastHidden, common.tp);
  small.experts = at_least(std::min(4, from.experts), common.ep);
  small.experts_per_token = std::min({2, from.experts_per_token, small.experts});
  small.expert_hidden = at_least(2, common.etp);
  constexpr int kGroups = 2;  // of which one is chosen
  const bool grouped = from.groups_per_token < from.expert_groups;
  if (grouped && small.experts % kGroups == 0 && small.experts_per_token <= small.experts / kGroups) {
    small.expert_groups = kGroups;
  }
  small.latent_experts = from.latent_hidden > 0;
}

SmallBlock small_block(const model::Model& model, int index, int positions, const CommonDegrees& common) {
  const model::BlockType& type = model.block(index);
  SmallBlock block;
  block.exchanges_heads = model.job.context_exchange == model::ContextExchange::kAllToAll;
  block.index = index;
  block.trained = type.gradients.weights;
  block.adapted = type.adapters.targets;
  block.causal = type.attention.causal;
  block.window = type.attention.sliding_window > 0 ? positions / 2 : 0;
  if (type.attention.packed_length > 0) block.packed = positions / 2 - 1;  // the last one is shorter
  block.parallel_attention = type.parallel_attention;
  block.heads = 0;
  if (type.recurrence) set_recurrence(block, *type.recurrence, common);
  if (type.attends()) set_heads(block, type.attention, common);
  set_feed_forward(block, type.feed_forward, common);
  return block;
}

}  // namespace

SmallModel small_model(const plan::LaunchPlan& plan, const std::vector<int>& blocks, int folds) {
  constexpr int kLeastVocabulary = 11;
  constexpr int kLeastPositions = 8;
  const model::Model& model = plan.pipelined();
  const CommonDegrees common = common_degrees(plan, folds);
  SmallModel small;
  small.vocabulary = at_least(kLeastVocabulary, common.tp);
  small.positions = at_least(kLeastPositions * folds, common.positions) / folds;
  small.connector_width = at_least(kLeastHidden, common.tp);
  small.tied = model.tied_embeddings;
  small.trained_ends = model.end_gradients().weights;
  small.trained_patches = model.block_count() == 0 || model.block(0).gradients.weights;
  bool causal_behind = false;
  for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) {
    const SmallBlock block = small_block(model, *it, small.positions, common);
    // An encoder block attends both ways and has a causal block behind it.
    causal_behind = causal_behind || block.causal;
    if (!block.causal && causal_behind && small.encoder_blocks == 0) {
      small.encoder_blocks = static_cast<int>(blocks.rend() - it);
    }
    small.blocks.push_back(block);
  }
  std::ranges::reverse(small.blocks);
  return small;
}

std::vector<JobEncoder> small_encoders(const plan::LaunchPlan& plan, int positions) {
  std::vector<JobEncoder> encoders;
  if (!plan.colocated) return encoders;
  const CommonDegrees common = common_degrees(plan, 1);
  for (const plan::ColocatedEncoders::Encoder& from : plan.colocated->encoders) {
    const model::Model model = model::encoder_of(plan.model, static_cast<int>(encoders.size()));
    JobEncoder& encoder = encoders.emplace_back();
    encoder.name = from.module;
    encoder.layout = from.layout;
    encoder.trained_patches = model.end_gradients().weights && model.block(0).gradients.weights;
    for (const int b : ends_and_changes(model)) {
      encoder.blocks.push_back(small_block(model, b, positions, common));
    }
    const std::optional<model::Connector>& connector = model.block(model.block_count() - 1).connector;
    encoder.connector = connector.has_value();
    encoder.trained_connector = connector && connector->gradients.weights;
  }
  return encoders;
}

}  // namespace tangram::execute
