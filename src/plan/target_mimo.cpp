// Megatron MIMO: modules (encoders and one language model) with independent layouts. Rules as in
// NVIDIA-NeMo/Megatron-Bridge megatron_mimo_config.py and NVIDIA/Megatron-LM megatron/core/pipeline_parallel/
// bridge_communicator.py (2026-08); inside the language module all stages are alike.
#include <bit>

#include "target_rules.hpp"

namespace tangram::plan {

namespace {

/// Whether a stage reaches over the end of an encoder.
bool reaches_over(const Stage& stage, const std::vector<model::BlockRange>& encoders) {
  return std::ranges::any_of(encoders, [&](const model::BlockRange& encoder) {
    return stage.first() < encoder.last && encoder.last < stage.last();
  });
}

void refuse_uneven_language(Rules& rules, const LaunchPlan& plan, const std::vector<const Stage*>& stages) {
  if (stages.empty()) return;
  const auto experts = stages_with_experts(plan, stages);
  const std::string alike = " must be the same in all stages of the language model";
  rules.same(stages, [](const Stage& s) { return degrees_of(s).tp; }, "MIMO_TP_VARIES", "tensor parallelism" + alike);
  rules.same(stages, [](const Stage& s) { return degrees_of(s).dp; }, "MIMO_DP_VARIES", "data parallelism" + alike);
  rules.same(experts, [](const Stage& s) { return degrees_of(s).ep; }, "MIMO_EP_VARIES", "expert parallelism" + alike);
  rules.same(
      experts, [](const Stage& s) { return degrees_of(s).etp; }, "MIMO_ETP_VARIES",
      "expert tensor parallelism" + alike);
  rules.same(
      stages, [](const Stage& s) { return degrees_of(s).sequence_parallel; }, "MIMO_SP_VARIES",
      "sequence parallelism" + alike);
  refuse_uneven_recompute(rules, stages, "MIMO", "all stages of the language model");
}

/// As many stages as there may be: one of each encoder and pipeline.
void refuse_encoders(Rules& rules, const std::vector<const Stage*>& stages, std::size_t most) {
  rules.none(
      stages, [](const Stage& s) { return degrees_of(s).ep > 1 || degrees_of(s).etp > 1; }, "MIMO_ENCODER_EXPERTS",
      "encoders are dense: expert degrees must be 1");
  if (stages.size() > most) {
    std::vector<int> ids;
    ids.reserve(stages.size());
    for (const Stage* stage : stages) ids.push_back(stage->id);
    rules.refuse("MIMO_ENCODER_PIPELINE", ids, "an encoder is one stage");
  }
}

}  // namespace

void refuse_mimo_model(Rules& rules, const model::Model& model) {
  refuse_options(rules, model, runtime::runtime_of(runtime::Target::kMimo).options, "MIMO");
  const model::ModuleGraph& graph = model.graph;
  if (std::ranges::count(graph.modules, model::ModuleKind::kGenerator, &model::Module::kind) > 0) {
    rules.refuse("MIMO_GENERATOR", {}, "nothing reads what the language model makes: there is no path to a decoder");
  }
  if (model::adapters_of(model)) rules.refuse("MIMO_ADAPTERS", {}, "there are no low-rank adapters (lora)");
  if (const std::string_view other = beyond_transformer(model); !other.empty()) {
    rules.refuse("MIMO_HYBRID", {},
                 "each layer has attention and a feed-forward: some of the model's have " + std::string(other));
  }
  if (std::ranges::any_of(graph.edges, [](const model::Edge& edge) { return !edge.into_layers.empty(); })) {
    rules.refuse("MIMO_DEEPSTACK", {}, "encoders feed the language model's first layer and no other");
  }
}

TargetVerdict mimo_verdict(const LaunchPlan& plan) {
  Rules rules("mimo");
  const auto stages = all_stages(plan);
  const std::vector<model::BlockRange> encoders = model::encoder_ranges(plan.model);
  const int cut = encoders.empty() ? 0 : encoders.back().last;
  std::vector<const Stage*> encoder;
  std::vector<const Stage*> language;
  for (const Stage* stage : stages) {
    if (stage->last() <= cut) encoder.push_back(stage);
    if (stage->first() >= cut) language.push_back(stage);
  }
  refuse_general(rules, plan, "MIMO");
  refuse_interleaving(rules, plan, "MIMO");
  refuse_mimo_model(rules, plan.model);
  rules.none(
      stages, [](const Stage& s) { return has_uneven_replicas(s); }, "MIMO_MICROBATCH_DP",
      "every replica has equally many samples of a microbatch: data parallelism must divide it");
  rules.none(
      stages, [&](const Stage& s) { return reaches_over(s, encoders); }, "MIMO_MODULE_SPLIT",
      "a stage holds blocks of two modules");
  rules.none(stages, [](const Stage& s) { return degrees_of(s).cp > 1; }, "MIMO_CP", "context parallelism must be 1");
  rules.none(
      stages, [](const Stage& s) { return !std::has_single_bit(static_cast<unsigned>(degrees_of(s).tp)); },
      "MIMO_TP_POWER", "tensor parallelism must be a power of two");
  rules.none(
      stages,
      [&](const Stage& s) {
        return std::ranges::any_of(stages, [&](const Stage* other) {
          const int a = std::max(degrees_of(s).dp, degrees_of(*other).dp);
          return a % std::min(degrees_of(s).dp, degrees_of(*other).dp) != 0;
        });
      },
      "MIMO_DP_DIVIDES", "data parallel degrees must divide each other");
  rules.none(
      stages,
      [](const Stage& s) {
        const bool nothing_to_shard = degrees_of(s).dp * degrees_of(s).cp == 1;
        return policy_of(s).zero != 1 && !(policy_of(s).zero == 0 && nothing_to_shard);
      },
      "MIMO_ZERO", "the distributed optimizer (ZeRO-1) is mandatory");
  refuse_sharding_groups(rules, stages, "MIMO");
  refuse_uneven_language(rules, plan, language);
  refuse_encoders(rules, encoder, encoders.size() * plan.pipelines.size());
  return std::move(rules).verdict();
}

}  // namespace tangram::plan
