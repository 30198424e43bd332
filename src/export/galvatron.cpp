// A strategy as Galvatron writes and reads it, one value per layer (PKU-DAIR/Hetu-Galvatron,
// galvatron/utils/config_utils.py and core/runtime/hybrid_parallel_config.py). Its clusters are of one GPU type.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compared.hpp"
#include "formats.hpp"
#include "scripts.hpp"
#include "tangram/base/at.hpp"
#include "tangram/export/megatron_arguments.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::exporting {

namespace {

using Json = nlohmann::ordered_json;

/// Of every layer of a stage, in order.
std::vector<cost::BlockPolicy> layers_of(const plan::Stage& stage) {
  std::vector<cost::BlockPolicy> layers;
  for (const cost::BlockRun& run : cost::runs_of(strategy_of(stage).policy, stage.block_count())) {
    layers.insert(layers.end(), static_cast<std::size_t>(run.blocks), run.policy);
  }
  return layers;
}

/// Whether some layer of the stage, or an end that it holds, has this ZeRO stage.
bool shards_with(const plan::Stage& stage, int zero) {
  const bool ends = (stage.embedding || stage.head) && strategy_of(stage).policy.zero == zero;
  return ends || std::ranges::any_of(layers_of(stage), [&](const auto& layer) { return layer.zero == zero; });
}

/// ZeRO of what is not sharded with ZeRO-3: one value for all layers. 3: there is nothing else.
int default_zero(const plan::LaunchPlan& plan) {
  for (const int zero : {0, 1, 2}) {
    if (std::ranges::any_of(plan.stages, [&](const auto& stage) { return shards_with(stage, zero); })) return zero;
  }
  return 3;
}

Refusals refusals_of(const plan::LaunchPlan& plan) {
  Refusals refusals("galvatron", "plan one GPU type with --target megatron --forbid zero1");
  const auto& first = strategy_of(plan.stages.front());
  const auto& device = plan.island(plan.stages.front().parts.front().island).device;
  refusals.none(
      plan,
      [&](const auto& s) { return any_part(s, [&](const auto& p) { return plan.island(p.island).device != device; }); },
      "GALVATRON_GPU_TYPES", "all GPUs are of one type");
  refusals.none(
      plan, [](const auto& s) { return s.parts.size() > 1; }, "GALVATRON_MIXED_STAGE", "a stage is one grid of ranks");
  refusals.none(
      plan, [&](const auto& s) { return strategy_of(s).degrees.gpus() != first.degrees.gpus(); }, "GALVATRON_GPUS_VARY",
      "every stage has the same number of GPUs");
  refusals.none(
      plan, [](const auto& s) { return shards_with(s, 1); }, "GALVATRON_ZERO",
      "it has plain data parallelism, ZeRO-2 and ZeRO-3");
  refusals.none(
      plan, [&](const auto& s) { return shards_with(s, 2) && default_zero(plan) < 2; }, "GALVATRON_ZERO_VARIES",
      "layers that are not sharded with ZeRO-3 are all under ZeRO-2, or none is");
  refusals.none(
      plan, [](const auto& s) { return strategy_of(s).degrees.dp_replicate > 1; }, "GALVATRON_SHARDING_GROUP",
      "ZeRO shards over all data-parallel ranks of a stage");
  refuse_hybrid_layers(refusals, plan, "GALVATRON");
  refuse_adapters(refusals, plan, "GALVATRON");
  refuse_interleaving(refusals, plan, "GALVATRON");
  refuse_zero_bubble(refusals, plan, "GALVATRON");
  refuse_colocated(refusals, plan, "GALVATRON");
  refuse_uneven_samples(refusals, plan, "GALVATRON");
  const int of_ends = first.policy.zero;
  refusals.none(
      plan, [&](const auto& s) { return s.head && (strategy_of(s).policy.zero == 3) != (of_ends == 3); },
      "GALVATRON_ENDS_VARY", "embedding and head are both sharded with ZeRO-3, or neither");
  refusals.none(
      plan,
      [](const auto& s) {
        return std::ranges::any_of(
            layers_of(s), [](const auto& layer) { return layer.recompute == model::RecomputeMode::kSelective; });
      },
      "GALVATRON_RECOMPUTE", "a layer is recomputed in full or not at all");
  return refusals;
}

/// "2,2,4": one value per layer, in the order of the model.
template <class Value>
std::string per_layer(const std::vector<const plan::Stage*>& stages, Value value) {
  std::vector<int> values;
  for (const plan::Stage* stage : stages) {
    for (int b = 0; b < stage->block_count(); ++b) values.push_back(value(*stage, b));
  }
  return fmt::format("{}", fmt::join(values, ","));
}

std::string division(const std::vector<const plan::Stage*>& stages) {
  std::vector<int> layers;
  layers.reserve(stages.size());
  for (const plan::Stage* stage : stages) layers.push_back(stage->block_count());
  return fmt::format("{}", fmt::join(layers, ","));
}

}  // namespace

Expected<Export> export_galvatron(const plan::LaunchPlan& plan) {
  Refusals refusals = refusals_of(plan);
  if (!refusals.empty()) return std::move(refusals).fail();
  const auto stages = stages_of_replica(plan);
  const auto degrees = [](const plan::Stage& stage) -> const cost::Degrees& { return strategy_of(stage).degrees; };
  const int zero = default_zero(plan);
  const auto layer_of = [](const plan::Stage& stage, int layer) { return at(layers_of(stage), layer); };
  Json document;
  document["pp_deg"] = stages.size();
  document["tp_sizes_enc"] = per_layer(stages, [&](const auto& s, int) { return degrees(s).tp; });
  document["tp_consecutive_flags"] = per_layer(stages, [](const auto&, int) { return 1; });
  document["dp_types_enc"] =
      per_layer(stages, [&](const auto& s, int layer) { return zero < 3 && layer_of(s, layer).zero == 3 ? 1 : 0; });
  document["use_sp"] = per_layer(stages, [](const auto&, int) { return 0; });
  document["cp_sizes_enc"] = per_layer(stages, [&](const auto& s, int) { return degrees(s).cp; });
  document["ep_sizes_enc"] = per_layer(stages, [&](const auto& s, int) { return degrees(s).ep; });
  document["tp_of_ep_sizes_enc"] = per_layer(stages, [&](const auto& s, int) { return degrees(s).etp; });
  document["checkpoint"] = per_layer(
      stages, [&](const auto& s, int layer) { return layer_of(s, layer).recompute != model::RecomputeMode::kNone; });
  document["global_bsz"] = samples_per_iteration(plan);
  document["chunks"] = plan.pipelines.front().microbatches;
  document["pp_division"] = division(stages);
  document["pipeline_type"] = "pipedream_flush";
  document["default_dp_type"] = zero == 0 ? "ddp" : zero == 2 ? "zero2" : "zero3";
  document["vtp"] = degrees(*stages.front()).tp;
  document["vsp"] = 0;
  document["vcp"] = degrees(*stages.front()).cp;
  document["embed_sdp"] = strategy_of(*stages.front()).policy.zero == 3 ? 1 : 0;
  Export out;
  out.files.push_back({"galvatron_config.json", io::write_canonical(document)});
  const plan::LaunchOrder order = plan::stage_order(plan);  // ranks of a stage follow each other, tp first
  out.files.push_back({"rankmap.csv", rank_map(plan, order)});
  out.files.push_back({"hostfile", hostfile(order)});
  return out;
}

}  // namespace tangram::exporting
