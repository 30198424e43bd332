// What the formats of other planners have in common. Goes in: a plan. Comes out: rules that each of them has.
#pragma once

#include "refusal.hpp"
#include "tangram/base/at.hpp"

namespace tangram::exporting {

[[nodiscard]] inline const cost::Strategy& strategy_of(const plan::Stage& stage) {
  return stage.parts.front().strategy;
}

template <class Broken>
[[nodiscard]] bool any_part(const plan::Stage& stage, Broken broken) {
  for (const plan::Part& part : stage.parts) {
    if (broken(part)) return true;
  }
  return false;
}

inline void refuse_adapters(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  if (model::adapters_of(plan.model)) refusals.add(prefix + "_ADAPTERS", {}, "there are no low-rank adapters (lora)");
}

/// Layers of hybrid models, which none of them knows.
inline void refuse_hybrid_layers(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  const std::string_view other = beyond_transformer(plan.model);
  if (other.empty()) return;
  refusals.add({prefix + "_HYBRID", {}, "layers have attention and a feed-forward: some have " + std::string(other)});
}

/// Mixtures, which most of them do not know.
inline void refuse_mixed_layers(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  refusals.none(
      plan, [](const auto& s) { return any_part(s, [](const auto& p) { return p.strategy.policy.is_mixed(); }); },
      prefix + "_LAYERS_VARY", "the layers of a stage are treated alike");
}

/// Interleaved model chunks, which none of them knows.
inline void refuse_interleaving(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  refusals.none(
      plan, [](const auto& s) { return s.chunks.size() > 1; }, prefix + "_INTERLEAVED",
      "a stage is one run of layers, without model chunks that are interleaved");
}

/// Weight gradients that are put off, which none of them knows.
inline void refuse_zero_bubble(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  if (!plan.zero_bubble) return;
  refusals.add({prefix + "_ZERO_BUBBLE", {}, "weight gradients are part of backward passes: none is put off"});
}

/// Encoders in turn with the language model, which none of them knows.
inline void refuse_colocated(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  if (!plan.colocated) return;
  refusals.add({prefix + "_COLOCATED", {}, "a GPU holds layers of one stage, and no encoders beside them"});
}

/// Samples that replicas, microbatches or pipelines do not share equally.
inline void refuse_uneven_samples(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  const auto uneven = [&](const plan::Stage& s) {
    return at(plan.pipelines, s.pipeline).has_smaller_last() ||
           any_part(s, [](const auto& p) { return p.samples % p.strategy.degrees.dp != 0; });
  };
  refusals.none(plan, uneven, prefix + "_SAMPLES_UNEVEN",
                "microbatches, and replicas of a stage, have equally many samples");
}

/// cp and ep, which the planner does not know.
inline void refuse_context_and_experts(Refusals& refusals, const plan::LaunchPlan& plan, const std::string& prefix) {
  refusals.none(
      plan, [](const auto& s) { return any_part(s, [](const auto& p) { return p.strategy.degrees.cp > 1; }); },
      prefix + "_CP", "it knows no context parallelism");
  refusals.none(
      plan, [](const auto& s) { return any_part(s, [](const auto& p) { return p.strategy.degrees.ep > 1; }); },
      prefix + "_EP", "it knows no expert parallelism");
}

}  // namespace tangram::exporting
