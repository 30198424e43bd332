// Megatron-LM, stock path. Formats as in NVIDIA/Megatron-LM megatron/training/arguments.py (core 0.20, 2026-08). Mixed
// fleets are expressed by the order of ranks, which gives every stage its own GPUs, and by layers per stage.
#include <fmt/format.h>

#include "formats.hpp"
#include "refusal.hpp"
#include "scripts.hpp"
#include "tangram/export/megatron_arguments.hpp"

namespace tangram::exporting {

namespace {

void add_lines(const std::string& title, const Arguments& arguments, std::string& text) {
  text += "  # " + title + "\n";
  for (const Argument& argument : arguments) {
    text += "  --" + argument.name;
    for (const std::string& value : argument.values) text += " " + shell_word(value);
    text += '\n';
  }
}

std::string arguments_file(const plan::LaunchPlan& plan) {
  std::string text =
      "# shellcheck shell=bash disable=SC2034\n"
      "# Arguments of pretrain_gpt.py. Data, tokenizer, learning rate and checkpoints are yours to add.\n"
      "megatron_arguments=(\n";
  add_lines("model", model_arguments(plan.model), text);
  add_lines("training", training_arguments(plan), text);
  add_lines("parallelism", parallel_arguments(plan), text);
  return text + ")\n";
}

// Before Blackwell, kernels of tensor and context parallelism have to start in the order they were issued: one hardware
// queue. Megatron-FSDP refuses exactly that.
std::map<std::string, std::string> environment(const plan::LaunchPlan& plan) {
  const cost::Strategy& strategy = plan.stages.front().parts.front().strategy;
  const bool ordered = strategy.degrees.tp > 1 || strategy.degrees.cp > 1;
  if (ordered && strategy.policy.zero < 2) return {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}};
  return {};
}

}  // namespace

Launch megatron_launch(const plan::LaunchPlan& plan) { return {plan::stage_order(plan), environment(plan)}; }

Expected<Export> export_megatron(const plan::LaunchPlan& plan) {
  Refusals refusals = refusals_of_target(plan, "megatron");
  if (!refusals.empty()) return std::move(refusals).fail();
  const auto [order, variables] = megatron_launch(plan);
  Export out;
  out.files.push_back({"arguments.sh", arguments_file(plan)});
  out.files.push_back({"rankmap.csv", rank_map(plan, order)});
  out.files.push_back({"hostfile", hostfile(order)});
  const Program program = with_arguments("megatron_arguments", "\"${MEGATRON_LM:-.}/pretrain_gpt.py\"");
  for (File& file : start_scripts(plan, order, variables, program)) out.files.push_back(std::move(file));
  out.notes.emplace_back(
      "run nodes/HOST.sh on every host with MEGATRON_LM set to the folder of pretrain_gpt.py; data, tokenizer and "
      "learning rate are added behind it");
  // megatron/training/arguments.py asserts it since #5115 of 2026-06.
  if (plan.model.job.fused_loss == model::FusedLoss::kTransformerEngine) {
    out.notes.emplace_back("fused_loss te: Megatron-LM up to 0.18 takes it, later ones refuse it");
  }
  return out;
}

}  // namespace tangram::exporting
