// A plan as FlashFlex (HexiScale) takes it: tp, layers and nodes of every stage of every pipeline (Relaxed-System-Lab/
// FlashFlex, hexiscale/process_args.py). Its model is Llama 2, at 4,096 tokens a sample.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "compared.hpp"
#include "formats.hpp"
#include "scripts.hpp"
#include "tangram/base/at.hpp"
#include "tangram/io/json_writer.hpp"

namespace tangram::exporting {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kTokens = 4096;

Refusals refusals_of_flashflex(const plan::LaunchPlan& plan) {
  Refusals refusals("flashflex",
                    "plan with --forbid cp,ep,zero1,zero2,zero3 and --seq-len 4096, without dp in a stage");
  refusals.none(
      plan, [](const auto& s) { return s.parts.size() > 1; }, "FLASHFLEX_MIXED_STAGE", "a stage has GPUs of one kind");
  refusals.none(
      plan, [](const auto& s) { return strategy_of(s).degrees.dp > 1; }, "FLASHFLEX_DP",
      "data parallelism is several pipelines, never inside a stage");
  refuse_hybrid_layers(refusals, plan, "FLASHFLEX");
  refuse_adapters(refusals, plan, "FLASHFLEX");
  refuse_interleaving(refusals, plan, "FLASHFLEX");
  refuse_zero_bubble(refusals, plan, "FLASHFLEX");
  refuse_colocated(refusals, plan, "FLASHFLEX");
  refuse_uneven_samples(refusals, plan, "FLASHFLEX");
  refuse_context_and_experts(refusals, plan, "FLASHFLEX");
  refuse_mixed_layers(refusals, plan, "FLASHFLEX");
  refusals.none(
      plan, [](const auto& s) { return strategy_of(s).policy.zero > 0; }, "FLASHFLEX_ZERO",
      "it does not shard the optimizer");
  refusals.none(
      plan,
      [](const auto& s) {
        const cost::MemoryPolicy& policy = strategy_of(s).policy;
        return policy.recompute == model::RecomputeMode::kSelective ||
               (policy.recompute == model::RecomputeMode::kFull && policy.recompute_layers != s.block_count());
      },
      "FLASHFLEX_RECOMPUTE", "a layer is recomputed in full or not at all, and all layers alike");
  const auto& first = strategy_of(plan.stages.front()).policy.recompute;
  refusals.none(
      plan, [&](const auto& s) { return strategy_of(s).policy.recompute != first; }, "FLASHFLEX_RECOMPUTE_VARIES",
      "recompute is the same in all stages");
  const bool llama = plan.model.types.size() == 1 && plan.model.types.front().feed_forward.gated &&
                     !plan.model.types.front().feed_forward.is_moe() && !plan.model.types.front().norm_bias;
  if (!llama) refusals.add("FLASHFLEX_MODEL", {}, "the model is of the kind of Llama 2");
  if (plan.model.job.sequence_length != kTokens) {
    refusals.add("FLASHFLEX_TOKENS", {}, "a sample has 4096 tokens");
  }
  return refusals;
}

/// Lines of the host file.
std::map<std::string, int> numbers_of(const plan::LaunchOrder& order) {
  std::map<std::string, int> numbers;
  for (const plan::HostRanks& host : order.hosts) numbers.emplace(host.host, static_cast<int>(numbers.size()));
  return numbers;
}

Json nodes_json(const plan::LaunchPlan& plan, const plan::Stage& stage, const std::map<std::string, int>& numbers) {
  Json nodes = Json::array();
  const plan::Part& part = stage.parts.front();
  for (int r = part.first_rank; r < part.first_rank + part.strategy.degrees.gpus(); ++r) {
    nodes.push_back(numbers.at(at(plan.ranks, r).host));
  }
  return nodes;
}

}  // namespace

Expected<Export> export_flashflex(const plan::LaunchPlan& plan) {
  Refusals refusals = refusals_of_flashflex(plan);
  if (!refusals.empty()) return std::move(refusals).fail();
  Json document;
  const plan::LaunchOrder order = plan::plan_order(plan);  // FlashFlex numbers ranks alike
  const std::map<std::string, int> numbers = numbers_of(order);
  for (const plan::Pipeline& pipeline : plan.pipelines) {
    Json widths = Json::array();
    Json layers = Json::array();
    Json nodes = Json::array();
    for (const int id : pipeline.stages) {
      const plan::Stage& stage = plan.stage(id);
      widths.push_back(strategy_of(stage).degrees.tp);
      layers.push_back(stage.block_count());
      nodes.push_back(nodes_json(plan, stage, numbers));
    }
    document["hetero_configs"].push_back(std::move(widths));
    document["layer_partitions"].push_back(std::move(layers));
    document["devices_id"].push_back(std::move(nodes));
    document["global_bsz_size"].push_back(pipeline.samples);
    document["chunks"].push_back(pipeline.microbatches);
  }
  Export out;
  out.files.push_back({"flashflex.json", io::write_canonical(document)});
  out.files.push_back({"rankmap.csv", rank_map(plan, order)});
  out.files.push_back({"hostfile", hostfile(order)});
  const bool uneven = std::ranges::any_of(
      plan.pipelines, [&](const auto& pipeline) { return pipeline.samples != plan.pipelines.front().samples; });
  if (uneven) out.notes.emplace_back("FlashFlex weights pipelines alike: with unequal batches its gradient is another");
  return out;
}

}  // namespace tangram::exporting
