// A plan as Sailor's simulator reads it (eth-easl/sailor, sailor/Planner/simulations/validation: plan_config_*.json).
// Layers are numbered with the embedding first and the head last. A replica of a stage is a list of (GPU type, GPUs,
// zone) and its tp; parts of a mixed stage are replicas on other GPU types.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "compared.hpp"
#include "formats.hpp"
#include "tangram/export/megatron_arguments.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::exporting {

namespace {

using Json = nlohmann::ordered_json;

// The zone that all tables of the simulator have: bandwidths, prices, costs of traffic.
constexpr const char* kZone = "us-central1-a";

/// Names of the simulator's tables (simulations/constants.py, providers/), and of the fork for Azure's V100-32 and
/// T4-16.
struct SailorName {
  std::string_view family;  ///< how the catalogue's names begin
  std::string_view name;
  bool in_tables = true;
};
constexpr std::array kSailorNames = {
    SailorName{"A100-40GB", "A100-40"},   SailorName{"A100-80GB", "A100-80"},        SailorName{"V100-16GB", "V100-16"},
    SailorName{"GH200-96GB", "GH-96"},    SailorName{"RTX-2080-Ti", "RTX-2080"},     SailorName{"RTX-3090", "RTX-3090"},
    SailorName{"Titan-RTX", "Titan-RTX"}, SailorName{"V100-32GB", "V100-32", false}, SailorName{"T4", "T4-16", false}};

const SailorName* sailor_name(const std::string& type) {
  const auto found =
      std::ranges::find_if(kSailorNames, [&](const SailorName& n) { return type.starts_with(n.family); });
  return found == kSailorNames.end() ? nullptr : &*found;
}

/// The type's name there; its own where the tables have none.
std::string name_in_sailor(const std::string& type) {
  const SailorName* known = sailor_name(type);
  return known == nullptr ? type : std::string(known->name);
}

/// What the simulator cannot look up.
std::vector<std::string> notes_of(const plan::LaunchPlan& plan) {
  std::set<std::string> missing;
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      const std::string& type = plan.island(part.island).device.name;
      const SailorName* known = sailor_name(type);
      if (known == nullptr || !known->in_tables) missing.insert(name_in_sailor(type));
    }
  }
  if (missing.empty()) return {};
  return {fmt::format(
      "Sailor's tables have no {}: add memory, bandwidths and profiles under this name before its simulator runs",
      fmt::join(missing, ", "))};
}

Refusals refusals_of_sailor(const plan::LaunchPlan& plan) {
  Refusals refusals("sailor", "plan with --forbid cp,ep,sp,zero1,zero2,zero3");
  const auto dp = [](const plan::Stage& s) {
    int sum = 0;
    for (const plan::Part& part : s.parts) sum += part.strategy.degrees.dp;
    return sum;
  };
  const int wanted = dp(plan.stages.front());
  const std::int64_t samples = plan.stages.front().parts.front().samples_per_replica();
  refusals.none(
      plan, [&](const auto& s) { return dp(s) != wanted; }, "SAILOR_DP_VARIES",
      "data parallelism is equal in all stages");
  refusals.none(
      plan,
      [&](const auto& s) { return any_part(s, [&](const auto& p) { return p.samples_per_replica() != samples; }); },
      "SAILOR_SAMPLES_VARY", "every replica of every stage takes equally many samples");
  refuse_hybrid_layers(refusals, plan, "SAILOR");
  refuse_adapters(refusals, plan, "SAILOR");
  refuse_interleaving(refusals, plan, "SAILOR");
  refuse_zero_bubble(refusals, plan, "SAILOR");
  refuse_colocated(refusals, plan, "SAILOR");
  refuse_uneven_samples(refusals, plan, "SAILOR");
  refuse_context_and_experts(refusals, plan, "SAILOR");
  refuse_mixed_layers(refusals, plan, "SAILOR");
  refusals.none(
      plan,
      [](const auto& s) { return any_part(s, [](const auto& p) { return p.strategy.degrees.sequence_parallel; }); },
      "SAILOR_SP", "it knows no sequence parallelism");
  refusals.none(
      plan, [](const auto& s) { return any_part(s, [](const auto& p) { return p.strategy.policy.zero > 0; }); },
      "SAILOR_ZERO", "it does not shard the optimizer");
  const auto& recompute = strategy_of(plan.stages.front()).policy.recompute;
  refusals.none(
      plan,
      [&](const auto& s) {
        return any_part(s, [&](const auto& p) { return p.strategy.policy.recompute != recompute; });
      },
      "SAILOR_RECOMPUTE_VARIES", "recompute is the same in all stages");
  refusals.none(
      plan,
      [&](const auto& s) {
        return any_part(s, [&](const auto& p) {
          const int a = p.strategy.degrees.tp;
          const int b = strategy_of(plan.stages.front()).degrees.tp;
          return std::max(a, b) % std::min(a, b) != 0;
        });
      },
      "SAILOR_TP_DIVIDES", "tensor parallel degrees divide each other");
  return refusals;
}

Json layers_json(const plan::LaunchPlan& plan, const plan::Stage& stage) {
  Json layers = Json::array();
  if (stage.embedding) layers.push_back(0);
  for (const int b : stage.blocks()) layers.push_back(b + 1);
  if (stage.head) layers.push_back(plan.model.block_count() + 1);
  return layers;
}

/// Replicas of the same position in all pipelines.
Json replicas_json(const plan::LaunchPlan& plan, std::size_t depth) {
  Json replicas = Json::array();
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    for (const plan::Part& part : plan.stage(pipeline.stages[depth]).parts) {
      const cost::Degrees& d = part.strategy.degrees;
      const Json on = Json::array({Json::array({name_in_sailor(plan.island(part.island).device.name), d.tp, kZone})});
      for (int r = 0; r < d.dp; ++r) replicas.push_back(Json::array({on, d.tp}));
    }
  }
  return replicas;
}

}  // namespace

Expected<Export> export_sailor(const plan::LaunchPlan& plan) {
  Refusals refusals = refusals_of_sailor(plan);
  if (!refusals.empty()) return std::move(refusals).fail();
  Json pipeline;
  const auto stages = stages_of_replica(plan);
  pipeline["num_stages"] = stages.size();
  for (const plan::Stage* stage : stages) pipeline["layers_per_stage"].push_back(layers_json(plan, *stage));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    pipeline["tmp_per_stage"].push_back(replicas_json(plan, s));
    pipeline["dp"].push_back(pipeline["tmp_per_stage"].back().size());
  }
  Json document;
  document["zone"] = kZone;
  document["pipeline_list"] = Json::array({std::move(pipeline)});
  document["mbs"] = samples_per_rank(plan);
  document["gbs"] = samples_per_iteration(plan);
  Export out;
  out.files.push_back({"plan_config.json", io::write_canonical(document)});
  out.notes = notes_of(plan);
  return out;
}

}  // namespace tangram::exporting
