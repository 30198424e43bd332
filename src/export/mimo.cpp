// Megatron-Bridge MIMO: one --component for each module, as examples/megatron_mimo/qwen35_vl/finetune_qwen35_vl.py of
// NVIDIA-NeMo/Megatron-Bridge reads them (2026-08), and the arguments of Megatron-LM's examples/mimo (d98e8a64,
// training/args.py) where that can run the plan. Ranks of a module are in the order tp, dp, pp
// (megatron_mimo_builder.py, training/topology.py); modules stand in the order of the chain. A microbatch of the former
// is that of all replicas together, one of the latter that of a data-parallel rank of the language model.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "formats.hpp"
#include "refusal.hpp"
#include "scripts.hpp"
#include "tangram/base/at.hpp"
#include "tangram/export/megatron_arguments.hpp"
#include "tangram/model/split.hpp"

namespace tangram::exporting {

namespace {

/// Stages of one module in the first pipeline; all pipelines are replicas of it.
struct MimoModule {
  std::string name;
  std::vector<const plan::Stage*> stages;

  [[nodiscard]] const cost::Strategy& strategy() const { return stages.front()->parts.front().strategy; }
};

/// Encoders, then the language model.
std::vector<MimoModule> modules_of(const plan::LaunchPlan& plan) {
  const std::vector<model::BlockRange> encoders = model::encoder_ranges(plan.model);
  std::vector<MimoModule> modules;
  for (std::size_t e = 0; e < encoders.size(); ++e) {
    modules.push_back({model::encoder_name(plan.model, static_cast<int>(e)), {}});
  }
  modules.push_back({"language", {}});
  for (const plan::Stage* stage : stages_of_replica(plan)) {
    const auto module = std::ranges::find_if(
        encoders, [&](const model::BlockRange& r) { return r.first <= stage->first() && stage->last() <= r.last; });
    at(modules, module - encoders.begin()).stages.push_back(stage);
  }
  return modules;
}

std::int64_t dp_of(const plan::LaunchPlan& plan, const MimoModule& module) {
  return module.strategy().degrees.dp * std::ssize(plan.pipelines);
}

std::string component(const plan::LaunchPlan& plan, const MimoModule& module, std::size_t offset) {
  const cost::Degrees& d = module.strategy().degrees;
  std::string text =
      fmt::format("{}=tp={},pp={},cp=1,dp={}", module.name, d.tp, module.stages.size(), dp_of(plan, module));
  if (d.etp > 1) text += fmt::format(",etp={}", d.etp);
  return text + fmt::format(",rank_offset={}", offset);
}

std::size_t ranks_of(const plan::LaunchPlan& plan, const MimoModule& module) {
  return static_cast<std::size_t>(module.strategy().degrees.gpus()) * module.stages.size() * plan.pipelines.size();
}

/// As the layout of a pipeline that begins with the embedding: Et*14|t*22|t*22,L.
std::string layout_of(const std::vector<const plan::Stage*>& stages) {
  std::string text = "E";
  for (const plan::Stage* stage : stages) {
    text += fmt::format("{}t*{}", stage == stages.front() ? "" : "|", stage->block_count());
  }
  return text + ",L";
}

bool is_even(const std::vector<const plan::Stage*>& stages) {
  return std::ranges::all_of(
      stages, [&](const plan::Stage* stage) { return stage->block_count() == stages.front()->block_count(); });
}

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Recompute and the layers of stages, by Megatron-LM's names.
Settings layer_settings(const MimoModule& module) {
  Settings settings;
  const cost::Strategy& strategy = module.strategy();
  if (strategy.policy.recompute == cost::RecomputeMode::kSelective) {
    settings.emplace_back("recompute_granularity", "selective");
  }
  if (strategy.policy.recompute == cost::RecomputeMode::kFull) {
    int layers = 0;
    for (const plan::Stage* stage : module.stages) {
      layers = std::max(layers, stage->parts.front().strategy.policy.recompute_layers);
    }
    settings.emplace_back("recompute_granularity", "full");
    settings.emplace_back("recompute_method", "block");
    settings.emplace_back("recompute_num_layers", std::to_string(layers));
  }
  if (!is_even(module.stages)) {
    settings.emplace_back("pipeline_model_parallel_layout", shell_word(layout_of(module.stages)));
  }
  return settings;
}

/// What a module's provider has to be set to, for which the script has no arguments.
std::vector<std::string> settings_of(const MimoModule& module) {
  std::vector<std::string> settings;
  if (module.strategy().degrees.sequence_parallel) settings.push_back(module.name + ".sequence_parallel=True");
  for (const auto& [name, value] : layer_settings(module)) {
    settings.push_back(fmt::format("{}.{}={}", module.name, name, value));
  }
  return settings;
}

std::string with_dashes(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string arguments_text(const plan::LaunchPlan& plan, const std::vector<MimoModule>& modules) {
  const plan::Pipeline& pipeline = plan.pipelines.front();
  std::string text =
      "# shellcheck shell=bash disable=SC2034\n"
      "# Arguments of a script of Megatron-Bridge that takes --component, as finetune_qwen35_vl.py does. Model, data,\n"
      "# learning rate and checkpoints are yours to add.\n"
      "mimo_arguments=(\n";
  std::size_t offset = 0;
  for (const MimoModule& module : modules) {
    text += "  --component " + shell_word(component(plan, module, offset)) + "\n";
    offset += ranks_of(plan, module);
  }
  text += fmt::format(
      "  --seq-length {}\n  --micro-batch-size {}\n  --global-batch-size {}\n)\n", plan.model.job.sequence_length,
      pipeline.microbatch * static_cast<std::int64_t>(plan.pipelines.size()), plan.model.job.global_batch);
  text += "# Attributes of the modules' providers, for which that script has no arguments.\nmimo_settings=(\n";
  for (const MimoModule& module : modules) {
    for (const std::string& setting : settings_of(module)) text += "  " + setting + "\n";
  }
  return text + ")\n";
}

/// Why Megatron-LM's examples/mimo does not run the plan; empty: it does. Its providers set sequence parallelism of the
/// language model wherever it has tp, and none of its encoder (nemotron_moe_vlm.py).
std::string why_not_example(const std::vector<MimoModule>& modules) {
  if (modules.size() > 2) return "has one encoder";
  const cost::Strategy& encoder = modules.front().strategy();
  const cost::Strategy& language = modules.back().strategy();
  if (encoder.degrees.sequence_parallel) return "has no sequence parallelism in its encoder";
  if (encoder.policy.recompute != cost::RecomputeMode::kNone) return "recomputes nothing of its encoder";
  if (language.degrees.sequence_parallel != (language.degrees.tp > 1)) {
    return "has sequence parallelism in its language model wherever it has tp";
  }
  return "";
}

std::string example_arguments(const plan::LaunchPlan& plan, const std::vector<MimoModule>& modules) {
  const MimoModule& encoder = modules.front();
  const MimoModule& language = modules.back();
  const cost::Strategy& strategy = language.strategy();
  const std::int64_t microbatch = plan.pipelines.front().microbatch / strategy.degrees.dp;
  std::string text =
      "# shellcheck shell=bash disable=SC2034\n"
      "# The same plan for examples/mimo/pretrain_mimo.py of Megatron-LM. Model, data and learning rate are yours to "
      "add.\n"
      "mimo_example_arguments=(\n";
  text += fmt::format("  --encoder-tp {} --encoder-dp {} --llm-offset {}\n", encoder.strategy().degrees.tp,
                      dp_of(plan, encoder), ranks_of(plan, encoder));
  text += fmt::format("  --llm-tp {} --llm-cp 1 --llm-pp {} --llm-dp {}\n", strategy.degrees.tp, language.stages.size(),
                      dp_of(plan, language));
  text += fmt::format("  --seq-length {} --micro-batch-size {} --global-batch-size {}\n",
                      plan.model.job.sequence_length, microbatch, plan.model.job.global_batch);
  text += "  --use-distributed-optimizer --calculate-per-token-loss\n";
  for (const auto& [name, value] : layer_settings(language)) {
    text += fmt::format("  --{} {}\n", with_dashes(name), value);
  }
  return text + ")\n";
}

/// What the target's rules leave open: --component has no key for it.
void refuse_without_key(Refusals& refusals, const plan::LaunchPlan& plan) {
  refusals.none(
      plan, [](const plan::Stage& stage) { return stage.parts.front().strategy.degrees.ep > 1; }, "MIMO_COMPONENT_EP",
      "--component has no key for expert parallelism");
  if (model::encoder_ranges(plan.model).empty()) {
    refusals.add("MIMO_NO_ENCODER", {}, "a model without encoders has one module: take the format megatron");
  }
}

}  // namespace

Expected<Export> export_mimo(const plan::LaunchPlan& plan) {
  Refusals refusals = refusals_of_target(plan, "mimo");
  if (refusals.empty()) refuse_without_key(refusals, plan);
  if (!refusals.empty()) return std::move(refusals).fail();
  const std::vector<MimoModule> modules = modules_of(plan);
  const plan::LaunchOrder order = plan::stage_order(plan);
  Export out;
  out.files.push_back({"arguments.sh", arguments_text(plan, modules)});
  const std::string why_not = why_not_example(modules);
  if (why_not.empty()) out.files.push_back({"example_arguments.sh", example_arguments(plan, modules)});
  out.files.push_back({"rankmap.csv", rank_map(plan, order)});
  out.files.push_back({"hostfile", hostfile(order)});
  Program program =
      with_arguments("mimo_arguments", "\"${MIMO_SCRIPT:?the training script, which takes --component}\"");
  program.launcher = Launcher::kProcesses;
  for (File& file : start_scripts(plan, order, {}, program)) out.files.push_back(std::move(file));
  out.notes.emplace_back(
      "run nodes/HOST.sh on every host with MIMO_SCRIPT set to the training script; model, data and learning rate are "
      "added behind it");
  out.notes.push_back(why_not.empty() ? "example_arguments.sh is the same for Megatron-LM's examples/mimo"
                                      : "Megatron-LM's examples/mimo does not run this plan: it " + why_not);
  out.notes.emplace_back(
      "modules are named as in the model file; mimo_settings of arguments.sh are for their providers");
  return out;
}

}  // namespace tangram::exporting
