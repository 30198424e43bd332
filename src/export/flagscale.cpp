// FlagScale heterogeneous training: one process mesh per stage. Formats and rules as in FlagOpen/FlagScale 0.8,
// flagscale/train/arguments.py (meshes), flagscale/train/hetero/parallel_context.py (ranks), flagscale/runner (files).
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "formats.hpp"
#include "refusal.hpp"
#include "scripts.hpp"
#include "tangram/base/at.hpp"
#include "tangram/export/megatron_arguments.hpp"
#include "yaml_text.hpp"

namespace tangram::exporting {

namespace {

using Json = nlohmann::ordered_json;
using Stages = std::vector<const plan::Stage*>;

/// A value as YAML has it: a switch is true, numbers are numbers.
Json value_of(const Argument& argument) {
  if (argument.values.empty()) return true;
  const std::string& text = argument.values.front();
  const bool number = text.find_first_not_of("0123456789.") == std::string::npos;
  return number ? Json::parse(text) : Json(text);
}

void add(Json& section, const Arguments& arguments) {
  for (const Argument& argument : arguments) {
    std::string key = argument.name;
    std::ranges::replace(key, '-', '_');
    section[key] = value_of(argument);
  }
}

/// Ranks are sorted by the position of their host's type in hetero_device_types before they are given to meshes, so
/// that a type used in two places would be pulled together. Neighbouring stages on one island or sharing a host have
/// one alias; every other stage gets one of its own.
struct Aliases {
  std::vector<std::string> of_stage;
  std::map<std::string, std::string> of_host;
};

Aliases make_aliases(const plan::LaunchPlan& plan, const Stages& stages) {
  std::vector<std::set<std::string>> hosts(stages.size());
  for (const plan::Rank& rank : plan.ranks) {
    const auto& ids = at(plan.pipelines, rank.replica).stages;
    at(hosts, std::ranges::find(ids, rank.stage) - ids.begin()).insert(rank.host);
  }
  Aliases aliases;
  std::map<std::string, int> numbers;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const int island = stages[s]->parts.front().island;
    const bool same_island = s > 0 && stages[s - 1]->parts.front().island == island;
    const bool shares_host =
        s > 0 && std::ranges::any_of(hosts[s], [&](const std::string& host) { return hosts[s - 1].contains(host); });
    if (same_island || shares_host) {
      aliases.of_stage.push_back(aliases.of_stage.back());
    } else {
      const std::string& type = plan.island(island).device.name;
      aliases.of_stage.push_back(type + "_" + std::to_string(numbers[type]++));
    }
    for (const std::string& host : hosts[s]) aliases.of_host.emplace(host, aliases.of_stage.back());
  }
  return aliases;
}

/// (tp, cp, ep, dp, pp) per stage; replicas of the pipeline are data parallelism.
Json meshes_json(const plan::LaunchPlan& plan, const Stages& stages) {
  Json meshes = Json::array();
  for (const plan::Stage* stage : stages) {
    const cost::Degrees& d = stage->parts.front().strategy.degrees;
    for (const int degree : {d.tp, d.cp, d.ep, d.dp * static_cast<int>(plan.pipelines.size()), 1}) {
      meshes.push_back(degree);
    }
  }
  return meshes;
}

Json hetero_json(const plan::LaunchPlan& plan, const Stages& stages, const Aliases& aliases) {
  Json hetero;
  hetero["enable_hetero"] = true;
  hetero["hetero_process_meshes"] = meshes_json(plan, stages);
  hetero["hetero_pipeline_layer_split"] = Json::array();
  for (const plan::Stage* stage : stages) hetero["hetero_pipeline_layer_split"].push_back(stage->block_count());
  hetero["hetero_device_types"] = aliases.of_stage;
  hetero["hetero_current_device_type"] = aliases.of_stage.front();  // the runner puts each host's own in its place
  if (plan.model.has_experts()) {
    Json widths = Json::array();
    for (const plan::Stage* stage : stages) widths.push_back(stage->parts.front().strategy.degrees.etp);
    hetero["expert_tensor_parallel_size_per_process_mesh"] = std::move(widths);
  }
  const bool ends_differ =
      stages.front()->parts.front().strategy.degrees.dp != stages.back()->parts.front().strategy.degrees.dp;
  if (plan.model.tied_embeddings && ends_differ) hetero["use_partial_reduce_for_shared_embedding"] = true;
  hetero["standalone_embedding_stage"] = false;
  return hetero;
}

/// Once a microbatch of a stage is not recomputed, none behind it is: one setting for all microbatches of a stage.
/// Entries: [stages, microbatches, value].
Json recompute_json(const plan::LaunchPlan& plan, const Stages& stages) {
  using model::RecomputeMode;
  const auto mode = [](const plan::Stage* s) { return s->parts.front().strategy.policy.recompute; };
  Json out = Json::object();
  if (std::ranges::all_of(stages, [&](const auto* s) { return mode(s) == RecomputeMode::kSelective; })) {
    out["recompute_granularity"] = "selective";
    return out;
  }
  if (std::ranges::none_of(stages, [&](const auto* s) { return mode(s) == RecomputeMode::kFull; })) return out;
  out["recompute_granularity"] = "full";
  out["recompute_method"] = "block";
  out["recompute_num_layers"] = 1;
  const std::int64_t microbatches = plan.pipelines.front().microbatches;
  for (const plan::Stage* stage : stages) {
    const bool full = mode(stage) == RecomputeMode::kFull;
    const int layers = full ? stage->parts.front().strategy.policy.recompute_layers : 1;
    out["recompute_granularity_per_stage_micro_batch"].push_back({1, microbatches, full ? 1 : 0});
    out["recompute_method_per_stage_micro_batch"].push_back({1, microbatches, 1});
    out["recompute_num_layers_per_stage_micro_batch"].push_back({1, microbatches, layers});
  }
  return out;
}

Json system_json(const plan::LaunchPlan& plan, const Stages& stages, const Aliases& aliases) {
  const auto degrees = [](const plan::Stage* s) -> const cost::Degrees& { return s->parts.front().strategy.degrees; };
  Json system;
  system["tensor_model_parallel_size"] = degrees(stages.front()).tp;  // of the first mesh; the others bring their own
  system["pipeline_model_parallel_size"] = stages.size();
  system["context_parallel_size"] = 1;
  if (std::ranges::any_of(stages, [&](const auto* s) { return degrees(s).ep > 1; })) {
    system["expert_model_parallel_size"] = degrees(stages.front()).ep;
  }
  system["sequence_parallel"] = std::ranges::any_of(stages, [&](const auto* s) { return degrees(s).tp > 1; });
  const bool sharded =
      std::ranges::any_of(stages, [](const auto* s) { return s->parts.front().strategy.policy.zero > 0; });
  system["use_distributed_optimizer"] = sharded;
  system["hetero"] = hetero_json(plan, stages, aliases);
  if (Json recompute = recompute_json(plan, stages); !recompute.empty()) system["recompute"] = std::move(recompute);
  // Checkpoints of unequal meshes: the distributed format does not know them (FlagScale issue 319).
  system["checkpoint"] = {{"ckpt_format", "torch"}};
  system["logging"] = {{"log_interval", 1}};
  return system;
}

std::string training_file(const plan::LaunchPlan& plan, const Stages& stages, const Aliases& aliases) {
  Json train;
  train["system"] = system_json(plan, stages, aliases);
  train["model"] = Json::object();
  add(train["model"], model_arguments(plan.model));
  train["model"].erase("vocab_size");
  add(train["model"], training_arguments(plan));
  train["data"] = {{"tokenizer", {{"vocab_size", plan.model.vocabulary}}}};
  return "# What is trained and how it is cut. Data, tokenizer, learning rate and checkpoints are yours to add.\n" +
         yaml_text(train);
}

/// What most hosts see stands above, what others see at the host.
void add_visible_devices(const plan::LaunchPlan& plan, const plan::LaunchOrder& order, Json& environment) {
  std::map<std::pair<std::string, std::string>, int> uses;
  for (const plan::HostRanks& host : order.hosts) {
    ++uses[{visible_devices_variable(device_of(plan, order, host).vendor), joined(host.gpus)}];
  }
  const auto usual = std::ranges::max_element(uses, {}, [](const auto& entry) { return entry.second; })->first;
  environment[usual.first] = usual.second;
  for (const plan::HostRanks& host : order.hosts) {
    const std::string name = visible_devices_variable(device_of(plan, order, host).vendor);
    const std::string gpus = joined(host.gpus);
    if (name == usual.first && gpus == usual.second) continue;
    environment["node_specific"][host.host][name] = gpus;
  }
}

std::string experiment_file(const plan::LaunchPlan& plan, const plan::LaunchOrder& order, const Stages& stages) {
  Json environment;
  const bool ordered =
      std::ranges::any_of(stages, [](const auto* s) { return s->parts.front().strategy.degrees.tp > 1; });
  if (ordered) environment["CUDA_DEVICE_MAX_CONNECTIONS"] = 1;
  add_visible_devices(plan, order, environment);
  Json file;
  file["defaults"] = Json::array({"_self_", {{"train", "plan"}}});
  Json& experiment = file["experiment"];
  experiment["exp_name"] = "tangram";
  experiment["exp_dir"] = "outputs";
  experiment["task"] = {{"type", "train"}, {"backend", "megatron"}, {"entrypoint", "flagscale/train/train_gpt.py"}};
  experiment["runner"] = {
      {"backend", "torchrun"},     {"rdzv_backend", "static"}, {"nnodes", order.hosts.size()},
      {"hostfile", "hostfile"},    {"ssh_port", 22},           {"master_addr", order.hosts.front().host},
      {"master_port", kMasterPort}};
  experiment["envs"] = std::move(environment);
  file["action"] = "run";
  file["hydra"]["run"]["dir"] = "${experiment.exp_dir}/hydra";
  return "# How the job is started. Start it in this folder: exp_dir and hostfile are relative to it.\n" +
         yaml_text(file);
}

}  // namespace

Expected<Export> export_flagscale(const plan::LaunchPlan& plan) {
  Refusals refusals = refusals_of_target(plan, "flagscale");
  if (!refusals.empty()) return std::move(refusals).fail();
  const plan::LaunchOrder order = plan::stage_order(plan);
  const Stages stages = stages_of_replica(plan);
  const Aliases aliases = make_aliases(plan, stages);
  Export out;
  out.files.push_back({"experiment.yaml", experiment_file(plan, order, stages)});
  out.files.push_back({"train/plan.yaml", training_file(plan, stages, aliases)});
  out.files.push_back({"hostfile", hostfile(order, aliases.of_host)});
  out.files.push_back({"rankmap.csv", rank_map(plan, order)});
  out.notes.emplace_back(
      "start it in that folder: python FLAGSCALE/run.py --config-path $PWD --config-name experiment");
  const bool several = plan.pipelines.size() > 1;
  if (several && std::ranges::any_of(stages, [](const auto* s) { return s->parts.front().strategy.policy.zero > 0; })) {
    out.notes.emplace_back(
        "FlagScale shards the optimizer over all replicas of the pipeline, the plan over each alone: less memory is "
        "used than the plan says");
  }
  return out;
}

}  // namespace tangram::exporting
