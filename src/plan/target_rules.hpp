// What the runtimes' rules have in common. Goes in: a plan. Comes out: reasons, one per broken rule, with the stages
// that break it.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/plan/launch_plan.hpp"

namespace tangram::plan {

/// Collects reasons; a rule that nobody breaks leaves no trace.
class Rules {
 public:
  explicit Rules(std::string target) { verdict_.target = std::move(target); }

  void refuse(std::string code, std::vector<int> stages, std::string text) {
    verdict_.reasons.push_back({std::move(code), std::move(stages), std::move(text)});
  }

  /// Refuses when `broken(stage)` holds for any of the stages.
  template <class Broken>
  void none(const std::vector<const Stage*>& stages, Broken broken, std::string code, std::string text) {
    std::vector<int> found;
    for (const Stage* stage : stages) {
      if (broken(*stage)) found.push_back(stage->id);
    }
    if (!found.empty()) refuse(std::move(code), std::move(found), std::move(text));
  }

  /// Refuses when `value(stage)` is not the same everywhere; names the stages that differ from the first.
  template <class Value>
  void same(const std::vector<const Stage*>& stages, Value value, std::string code, std::string text) {
    none(
        stages, [&](const Stage& stage) { return value(stage) != value(*stages.front()); }, std::move(code),
        std::move(text));
  }

  [[nodiscard]] TargetVerdict verdict() && {
    verdict_.ok = verdict_.reasons.empty();
    return std::move(verdict_);
  }

 private:
  TargetVerdict verdict_;
};

[[nodiscard]] inline const cost::Degrees& degrees_of(const Stage& stage) {
  return stage.parts.front().strategy.degrees;
}
[[nodiscard]] inline const cost::MemoryPolicy& policy_of(const Stage& stage) {
  return stage.parts.front().strategy.policy;
}

[[nodiscard]] inline std::vector<const Stage*> all_stages(const LaunchPlan& plan) {
  std::vector<const Stage*> stages;
  for (const auto& stage : plan.stages) stages.push_back(&stage);
  return stages;
}

/// Stages that have experts: of the others expert degrees say nothing.
[[nodiscard]] inline std::vector<const Stage*> stages_with_experts(const LaunchPlan& plan,
                                                                   const std::vector<const Stage*>& stages) {
  std::vector<const Stage*> found;
  for (const Stage* stage : stages) {
    bool experts = false;
    for (const int b : stage->blocks()) experts = experts || plan.pipelined().block(b).feed_forward.is_moe();
    if (experts) found.push_back(stage);
  }
  return found;
}

/// Position of a stage in its pipeline, from the first.
[[nodiscard]] inline std::int64_t depth_of(const LaunchPlan& plan, const Stage& stage) {
  const auto& ids = at(plan.pipelines, stage.pipeline).stages;
  return std::ranges::find(ids, stage.id) - ids.begin();
}

/// Runtimes with a fixed 1F1B start stage s of S with S - 1 - s forward passes: S - s microbatches in flight.
[[nodiscard]] inline bool exceeds_classic_warmup(const LaunchPlan& plan, const Stage& stage) {
  if (plan.is_interleaved()) return false;  // its own rules
  const auto& pipeline = at(plan.pipelines, stage.pipeline);
  const auto classic = static_cast<std::int64_t>(pipeline.stages.size()) - 1 - depth_of(plan, stage);
  return stage.warmup > std::min(classic, pipeline.microbatches - 1);
}

/// Replicas of one pipeline can be one pipeline with more data parallelism, if they are cut and run alike.
[[nodiscard]] inline bool differs_from_first_pipeline(const LaunchPlan& plan, const Stage& stage) {
  const auto& own = at(plan.pipelines, stage.pipeline);
  const auto& first = plan.pipelines.front();
  if (own.microbatch != first.microbatch || own.microbatches != first.microbatches ||
      own.stages.size() != first.stages.size()) {
    return true;
  }
  const std::int64_t depth = depth_of(plan, stage);
  if (depth == std::ssize(own.stages)) return true;  // a plan that check refuses: its pipeline does not list the stage
  const Stage& twin = plan.stage(at(first.stages, depth));
  return stage.chunks != twin.chunks || stage.parts.size() != twin.parts.size() ||
         stage.parts.front().strategy != twin.parts.front().strategy;
}

/// Whether some pipeline or microbatch of the stage has fewer samples than others.
[[nodiscard]] inline bool has_uneven_batch(const LaunchPlan& plan, const Stage& stage) {
  const Pipeline& own = at(plan.pipelines, stage.pipeline);
  return own.has_smaller_last() || own.samples != plan.pipelines.front().samples;
}

/// Whether some replica of the stage gets fewer samples of a microbatch than others.
[[nodiscard]] inline bool has_uneven_replicas(const Stage& stage) {
  return std::ranges::any_of(stage.parts, [](const Part& p) { return p.samples % p.strategy.degrees.dp != 0; });
}

/// Runtimes whose backward passes are whole.
inline void refuse_zero_bubble(Rules& rules, const LaunchPlan& plan, const std::string& prefix) {
  if (plan.zero_bubble) {
    rules.refuse(prefix + "_ZERO_BUBBLE", {}, "weight gradients are part of backward passes: none is put off");
  }
}

/// Rules that no runtime but the generic one is free of.
inline void refuse_general(Rules& rules, const LaunchPlan& plan, const std::string& prefix) {
  const auto stages = all_stages(plan);
  refuse_zero_bubble(rules, plan, prefix);
  rules.none(
      stages, [](const Stage& s) { return s.parts.size() > 1; }, prefix + "_MIXED_STAGE",
      "a stage on several islands splits a microbatch unevenly");
  rules.none(
      stages, [&](const Stage& s) { return differs_from_first_pipeline(plan, s); }, prefix + "_PIPELINES_DIFFER",
      "pipelines in data parallel must have the same cuts, degrees and microbatches");
  rules.none(
      stages, [&](const Stage& s) { return has_uneven_batch(plan, s); }, prefix + "_BATCH_UNEVEN",
      "all pipelines and all microbatches have equally many samples");
  rules.none(
      stages, [&](const Stage& s) { return exceeds_classic_warmup(plan, s); }, prefix + "_WARMUP",
      "stage s of S starts with S-1-s forward passes; extra microbatches in flight are not possible");
  rules.none(
      stages, [](const Stage& s) { return policy_of(s).is_mixed(); }, prefix + "_LAYERS_VARY",
      "blocks of a stage are treated alike: one ZeRO stage, one recompute mode");
}

/// --recompute-method block recomputes the first N layers of each stage, of each chunk where chunks are interleaved,
/// and all of a shorter one: uniform means equal up to that.
inline void refuse_uneven_recompute(Rules& rules, const std::vector<const Stage*>& stages, const std::string& prefix,
                                    const std::string& whom) {
  rules.same(
      stages, [](const Stage& s) { return policy_of(s).recompute; }, prefix + "_RECOMPUTE_VARIES",
      "one recompute granularity holds for " + whom);
  int layers = 0;
  for (const Stage* stage : stages) layers = std::max(layers, policy_of(*stage).recompute_layers);
  rules.none(
      stages,
      [&](const Stage& s) {
        return policy_of(s).recompute == cost::RecomputeMode::kFull &&
               policy_of(s).recompute_layers != std::min(layers, s.most_chunk_blocks());
      },
      prefix + "_RECOMPUTE_LAYERS_VARY", "--recompute-num-layers is one number for " + whom);
}

/// Runtimes without an interleaved schedule.
inline void refuse_interleaving(Rules& rules, const LaunchPlan& plan, const std::string& prefix) {
  if (plan.is_interleaved()) {
    rules.refuse(prefix + "_INTERLEAVED", {}, "a stage holds one range of layers: model chunks are not interleaved");
  }
}

/// Whose optimizer state no other rank shares: its ZeRO stage says nothing.
[[nodiscard]] inline bool has_nothing_to_shard(const LaunchPlan& plan, const Stage& stage) {
  const auto& d = degrees_of(stage);
  return d.dp * d.cp * static_cast<int>(plan.pipelines.size()) == 1;
}

/// Execution options of the job that a runtime lacks; codes PREFIX_...
void refuse_options(Rules& rules, const model::Model& model, const runtime::ExecutionOptions& has,
                    const std::string& prefix);

/// Runtimes whose optimizer is sharded over all data-parallel ranks: of the plan, and of what the job wants.
inline void refuse_sharding_groups(Rules& rules, const std::vector<const Stage*>& stages, const std::string& prefix) {
  rules.none(
      stages, [](const Stage& s) { return degrees_of(s).dp_replicate > 1; }, prefix + "_SHARDING_GROUP",
      "the optimizer is sharded over all data-parallel ranks of a stage");
}
inline void refuse_sharding_groups(Rules& rules, const model::Job& job, const std::string& prefix) {
  using Kind = model::ShardingGroup::Kind;
  const Kind kind = job.sharding_group.kind;
  if (kind != Kind::kNode && kind != Kind::kRanks) return;
  rules.refuse(prefix + "_SHARDING_GROUP", {},
               "the job's sharding_group: the optimizer is sharded over all data-parallel ranks of a stage");
}

/// Models that Megatron-LM's arguments cannot describe; codes PREFIX_MODEL_...
void refuse_model(Rules& rules, const model::Model& model, const std::string& prefix);

/// Execution options that Megatron-LM has not together with what the model is; codes MLM_...
void refuse_megatron_options(Rules& rules, const model::Model& model);

[[nodiscard]] TargetVerdict megatron_verdict(const LaunchPlan& plan);
[[nodiscard]] TargetVerdict flagscale_verdict(const LaunchPlan& plan);
/// What of a multimodal model Megatron MIMO has no path for.
void refuse_mimo_model(Rules& rules, const model::Model& model);
[[nodiscard]] TargetVerdict mimo_verdict(const LaunchPlan& plan);

}  // namespace tangram::plan
