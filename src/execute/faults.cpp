#include "faults.hpp"

#include <algorithm>
#include <array>

#include "tangram/base/at.hpp"
#include "tangram/model/split.hpp"

namespace tangram::execute {

namespace {

constexpr std::array<FaultName, 19> kFaults{{
    {Fault::kSwappedRanks, "swapped-ranks", "two ranks take each other's place", "rank-order"},
    {Fault::kDroppedTransfer, "dropped-transfer", "a boundary lacks a transfer", "transfer-missing"},
    {Fault::kGradientScale, "gradient-scale", "a stage doubles its gradients", "gradient-scale"},
    {Fault::kMissingAllReduce, "missing-all-reduce", "a stage does not sum its gradients", "gradient-not-reduced"},
    {Fault::kLayerRange, "layer-range", "a stage ends at another layer", "layer-range"},
    {Fault::kMissingMicrobatch, "missing-microbatch", "a pipeline runs one microbatch too few", "microbatch-missing"},
    {Fault::kSwappedChunks, "swapped-chunks", "two stages take each other's last model chunk", "layer-range"},
    {Fault::kMissingWraparound, "missing-wraparound", "no boundary leads from the last stage to the first",
     "transfer-missing"},
    {Fault::kWrongGroup, "wrong-group", "a group has a microbatch more than the warm-ups fit", "deadlock"},
    {Fault::kDroppedWeightGradient, "dropped-weight-gradient", "a stage forgets weight gradients that it put off",
     "gradient-differs"},
    {Fault::kMissingReplicaSum, "missing-replica-sum", "sharding groups of a stage do not sum their gradients",
     "gradient-not-reduced"},
    {Fault::kEncoderScale, "encoder-scale",
     "a colocated encoder's gradients are off by its DP over the language model's", "gradient-scale"},
    {Fault::kReversedEmbeddings, "reversed-embeddings", "what lanes of an encoder made is put together in reverse",
     "encoder-embedding-misplaced"},
    {Fault::kReversedGradients, "reversed-gradients", "lanes of an encoder get the gradients of each other's samples",
     "encoder-gradient-misplaced"},
    {Fault::kWrongStage, "wrong-stage", "encoders get the gradients of another stage than the first",
     "encoder-gradient-differs"},
    {Fault::kOwnNorms, "own-norms", "encoders step before the norm of all gradients is known", "norm-differs"},
    {Fault::kFrozenStep, "frozen-step", "frozen weights of an encoder are updated", "frozen-updated"},
    {Fault::kDroppedTextOnly, "dropped-text-only", "microbatches without items are left out", "microbatch-missing"},
    {Fault::kFreedEarly, "freed-early", "encoders free their activations before the backward phase", "held-differs"},
}};

bool swap_ranks(plan::LaunchPlan& plan) {
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      if (part.strategy.degrees.gpus() < 2) continue;
      const auto first = plan.ranks.begin() + part.first_rank;
      plan::Rank& a = first[0];
      plan::Rank& b = first[1];
      for (int plan::Rank::* coordinate :
           {&plan::Rank::tp, &plan::Rank::cp, &plan::Rank::dp, &plan::Rank::ep, &plan::Rank::etp, &plan::Rank::edp}) {
        std::swap(a.*coordinate, b.*coordinate);
      }
      return true;
    }
  }
  if (plan.ranks.size() < 2) return false;
  for (int plan::Rank::* place : {&plan::Rank::stage, &plan::Rank::part, &plan::Rank::replica}) {
    std::swap(plan.ranks[0].*place, plan.ranks[1].*place);
  }
  return true;
}

bool drop_transfer(plan::LaunchPlan& plan) {
  for (plan::Boundary& boundary : plan.boundaries) {
    if (boundary.transfers.empty()) continue;
    boundary.transfers.pop_back();
    return true;
  }
  return false;
}

// A stage loses its last layer; one that has no other takes the next stage's first as well.
bool move_layer(plan::LaunchPlan& plan) {
  plan::Stage& stage = plan.stages.front();
  model::BlockRange& chunk = stage.chunks.front();
  if (chunk.count() > 1) {
    --chunk.last;
  } else if (chunk.last < plan.pipelined().block_count()) {
    ++chunk.last;
  } else {
    return false;
  }
  return true;
}

bool drop_microbatch(plan::LaunchPlan& plan) {
  if (plan.pipelines.front().microbatches < 2) return false;
  --plan.pipelines.front().microbatches;
  return true;
}

bool swap_chunks(plan::LaunchPlan& plan) {
  const std::vector<int>& stages = plan.pipelines.front().stages;
  if (!plan.is_interleaved() || stages.size() < 2) return false;
  plan::Stage& first = at(plan.stages, stages[0]);
  plan::Stage& second = at(plan.stages, stages[1]);
  std::swap(first.chunks.back(), second.chunks.back());
  std::swap(first.head, second.head);
  return true;
}

bool drop_wraparound(plan::LaunchPlan& plan) {
  if (!plan.is_interleaved()) return false;
  const std::vector<int>& stages = plan.pipelines.front().stages;
  return std::erase_if(plan.boundaries, [&](const plan::Boundary& boundary) {
           return boundary.from == stages.back() && boundary.to == stages.front();
         }) > 0;
}

/// The last stage then begins with a backward pass whose forward pass has not come yet.
bool lengthen_group(plan::LaunchPlan& plan) {
  const auto has_more = [&](const plan::Pipeline& pipeline) { return pipeline.microbatches > plan.group; };
  if (!plan.is_interleaved() || !std::ranges::any_of(plan.pipelines, has_more)) return false;
  ++plan.group;
  return true;
}

bool trains(const plan::LaunchPlan& plan, const plan::Stage& stage) {
  const model::Model& model = plan.pipelined();
  const std::vector<int> blocks = stage.blocks();
  return ((stage.embedding || stage.head) && model.end_gradients().weights) || std::ranges::any_of(blocks, [&](int b) {
           return model.block(b).gradients.weights || model.block(b).adapters.any();
         });
}

/// The first stage that trains anything; -1: there is none.
int stage_that_trains(const plan::LaunchPlan& plan) {
  const auto found = std::ranges::find_if(plan.stages, [&](const plan::Stage& stage) { return trains(plan, stage); });
  return found == plan.stages.end() ? -1 : found->id;
}

/// The first stage whose gradients are summed over anything; -1: there is none.
int stage_that_reduces(const plan::LaunchPlan& plan) {
  for (const plan::Stage& stage : plan.stages) {
    if (!trains(plan, stage)) continue;
    for (const plan::Part& part : stage.parts) {
      if (part.strategy.degrees.dp * part.strategy.degrees.cp > 1) return stage.id;
    }
  }
  const bool several_holders = plan.pipelines.size() > 1 ||
                               std::ranges::any_of(plan.stages, [](const auto& s) { return s.parts.size() > 1; }) ||
                               (plan.model.tied_embeddings && plan.stages.size() > 1);
  return several_holders ? stage_that_trains(plan) : -1;
}

/// The first stage that ZeRO shards inside groups; -1: there is none.
int stage_with_groups(const plan::LaunchPlan& plan) {
  const auto found = std::ranges::find_if(plan.stages, [](const plan::Stage& stage) {
    return std::ranges::any_of(stage.parts, [](const plan::Part& p) {
      return p.strategy.degrees.dp_replicate > 1 && p.strategy.policy.shards();
    });
  });
  return found != plan.stages.end() ? found->id : -1;
}

/// -1: there is none.
int stage_that_puts_off(const plan::LaunchPlan& plan) {
  const auto found = std::ranges::find_if(plan.stages, &plan::Stage::puts_off);
  return plan.zero_bubble && found != plan.stages.end() ? found->id : -1;
}

/// The first encoder that is trained with another DP than that of the first stage; its gradients would be taken as
/// often as the two differ.
bool scale_encoder(const plan::LaunchPlan& plan, Misbehaviour& misbehaviour) {
  const auto replicas = std::int64_t{plan.stages.front().parts.front().strategy.degrees.dp};
  for (std::size_t e = 0; e < plan.colocated->encoders.size(); ++e) {
    const std::int64_t lanes = plan.lanes_of(plan.colocated->encoders[e].layout).of_pipeline;
    if (lanes == replicas || !model::trains_encoder(plan.model, static_cast<int>(e))) continue;
    misbehaviour.scaled_encoder = static_cast<int>(e);
    misbehaviour.encoder_scale = static_cast<double>(replicas) / static_cast<double>(lanes);
    return true;
  }
  return false;
}

/// Whether a replica of the first stage reads several samples of a microbatch of an encoder: of three in a row, one may
/// be without items (mark_absent() of reduction.cpp). `trained`: of one that is.
bool reads_several(const plan::LaunchPlan& plan, bool trained) {
  const plan::Pipeline& pipeline = plan.pipelines.front();
  const std::int64_t samples = plan.stage(pipeline.stages.front()).parts.front().samples_per_replica();
  for (int e = 0; e < static_cast<int>(plan.colocated->encoders.size()); ++e) {
    const bool some_without = model::encoder_spread(plan.model, e).none > 0;
    if (trained && !model::trains_encoder(plan.model, e)) continue;
    if (samples > (some_without ? 2 : 1)) return true;
  }
  return false;
}

bool freezes_any(const plan::LaunchPlan& plan) {
  for (int b = 0; b < model::encoder_blocks(plan.model); ++b) {
    if (!plan.model.block(b).gradients.weights) return true;
  }
  return false;
}

/// Whether a microbatch without any items is among those that are executed.
bool has_text_only(const plan::LaunchPlan& plan) {
  for (std::size_t e = 0; e < plan.colocated->encoders.size(); ++e) {
    if (!(model::encoder_spread(plan.model, static_cast<int>(e)).none > 0)) return false;
  }
  return plan.pipelines.front().microbatches > 1;
}

bool inject_in_encoders(Fault fault, const plan::LaunchPlan& plan, Misbehaviour& misbehaviour) {
  if (!plan.colocated) return false;
  const bool trained = model::trains_encoders(plan.model);
  switch (fault) {
    case Fault::kEncoderScale: return scale_encoder(plan, misbehaviour);
    case Fault::kReversedEmbeddings: return misbehaviour.reversed_embeddings = reads_several(plan, false);
    case Fault::kReversedGradients: return misbehaviour.reversed_gradients = reads_several(plan, true);
    case Fault::kWrongStage:
      return misbehaviour.gradients_of_next = trained && plan.pipelines.front().stages.size() > 1;
    case Fault::kOwnNorms: return misbehaviour.own_norms = trained;
    case Fault::kFrozenStep: return misbehaviour.steps_frozen = freezes_any(plan);
    case Fault::kDroppedTextOnly: return misbehaviour.skips_absent = has_text_only(plan);
    case Fault::kFreedEarly: return misbehaviour.frees_early = trained;
    default: return false;
  }
}

}  // namespace

std::span<const FaultName> fault_names() { return kFaults; }

bool inject(Fault fault, plan::LaunchPlan& plan, Misbehaviour& misbehaviour) {
  switch (fault) {
    case Fault::kSwappedRanks: return swap_ranks(plan);
    case Fault::kDroppedTransfer: return drop_transfer(plan);
    case Fault::kGradientScale:
      misbehaviour.scaled_stage = stage_that_trains(plan);
      return misbehaviour.scaled_stage >= 0;
    case Fault::kMissingAllReduce:
      misbehaviour.unreduced_stage = stage_that_reduces(plan);
      return misbehaviour.unreduced_stage >= 0;
    case Fault::kLayerRange: return move_layer(plan);
    case Fault::kMissingMicrobatch: return drop_microbatch(plan);
    case Fault::kSwappedChunks: return swap_chunks(plan);
    case Fault::kMissingWraparound: return drop_wraparound(plan);
    case Fault::kWrongGroup: return lengthen_group(plan);
    case Fault::kDroppedWeightGradient:
      misbehaviour.forgetful_stage = stage_that_puts_off(plan);
      return misbehaviour.forgetful_stage >= 0;
    case Fault::kMissingReplicaSum:
      misbehaviour.divided_stage = stage_with_groups(plan);
      return misbehaviour.divided_stage >= 0;
    default: return inject_in_encoders(fault, plan, misbehaviour);
  }
}

}  // namespace tangram::execute
