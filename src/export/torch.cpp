// The runtime of this project (apps/torch) beside the plan: what PyTorch alone starts. It runs every plan of a text
// model or of encoders in front of one, whatever the degrees of its stages.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "formats.hpp"
#include "refusal.hpp"
#include "scripts.hpp"
#include "tangram/base/at.hpp"
#include "tangram/plan/assemble.hpp"

namespace tangram::exporting {

std::vector<std::pair<std::string_view, std::string_view>> torch_runtime_files();

namespace {

std::string why_not_connector(const model::Model& model, const model::Module& encoder) {
  if (!encoder.connector) {
    const std::int64_t hidden = model.block(encoder.blocks.first).hidden;
    if (hidden == model.hidden && encoder.tokens_in == encoder.tokens_out) return "";
    return encoder.name + " has no connector, which its width and its tokens ask for";
  }
  if (encoder.connector->kind == model::ConnectorKind::kResampler) {
    return fmt::format("the connector of {} is a resampler", encoder.name);
  }
  if (encoder.connector->extra_parameters == 0) return "";
  return fmt::format("the connector of {} has parameters in no product", encoder.name);
}

std::string why_not_module(const model::Model& model, const model::Module& module) {
  if (module.kind == model::ModuleKind::kLanguage) return "";
  if (module.kind == model::ModuleKind::kGenerator) return module.name + " is a generator";
  if (const std::int64_t hidden = model.block(module.blocks.first).hidden; module.patch_parameters % hidden != 0) {
    return fmt::format("{} has {} patch parameters, which are no whole rows of its width {}", module.name,
                       module.patch_parameters, hidden);
  }
  return why_not_connector(model, module);
}

std::string why_not_edge(const model::ModuleGraph& graph, const model::Edge& edge) {
  const std::string& from = at(graph.modules, edge.from).name;
  if (at(graph.modules, edge.to).kind == model::ModuleKind::kEncoder) return from + " feeds another encoder";
  return edge.into_layers.empty() ? "" : from + " feeds inner layers of the language model";
}

/// What of the modules the runtime has not; read_encoders() in tangram_torch/encoders.py says the same. Empty: nothing.
std::string why_not_modules(const model::Model& model) {
  std::int64_t others = model.extra_embedding_parameters;
  for (const model::Module& module : model.graph.modules) {
    if (std::string why = why_not_module(model, module); !why.empty()) return why;
    others -= module.patch_parameters;
  }
  for (const model::Edge& edge : model.graph.edges) {
    if (std::string why = why_not_edge(model.graph, edge); !why.empty()) return why;
  }
  const int first = model.graph.empty() ? 0 : model.graph.language().blocks.first;
  for (int i = first; i < model.block_count(); ++i) {
    const model::BlockType& block = model.block(i);
    if (!block.attention.causal || block.hidden != model.hidden) return "its encoder has no connector";
  }
  return others == 0 ? "" : "parameters in front of its blocks belong to no module";
}

template <class Wanted>
bool has_part(const plan::LaunchPlan& plan, Wanted wanted) {
  return std::ranges::any_of(plan.stages,
                             [&](const plan::Stage& stage) { return std::ranges::any_of(stage.parts, wanted); });
}

/// Whether some stage recomputes selectively, and more than the core of attention.
bool recomputes_other_modules(const plan::LaunchPlan& plan) {
  const model::RecomputeModules core{model::RecomputeModule::kCoreAttention};
  if (model::recomputed_modules(plan.model.job) == core) return false;
  const auto selects = [](const plan::Part& part) {
    const auto runs = cost::runs_of(part.strategy.policy, 1);
    return std::ranges::any_of(
        runs, [](const cost::BlockRun& run) { return run.policy.recompute == model::RecomputeMode::kSelective; });
  };
  const auto encoder_selects = [](const plan::ColocatedEncoders::Encoder& encoder) {
    return encoder.layout.recompute == model::RecomputeMode::kSelective;
  };
  if (plan.colocated && std::ranges::any_of(plan.colocated->encoders, encoder_selects)) return true;
  return has_part(plan, selects);
}

/// Whether keys and values would go around a ring beside attention.
bool passes_a_ring(const plan::LaunchPlan& plan) {
  return plan.model.job.context_exchange == model::ContextExchange::kRing &&
         has_part(plan, [](const plan::Part& part) { return part.strategy.degrees.cp > 1; });
}

constexpr const char* kHere = "here=$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" && pwd)\n";
constexpr const char* kPath = "export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH}\n";

std::string local_script() {
  return fmt::format(
      "#!/usr/bin/env bash\n"
      "# All ranks of the plan on this machine: ./local.sh [OPTION...]; ./local.sh --help lists the options.\n"
      "set -euo pipefail\n{}{}"
      "exec python3 -m tangram_torch.launch \"$here/plan.json\" \"$@\"\n",
      kHere, kPath);
}

}  // namespace

std::vector<plan::TargetReason> torch_refusals(const plan::LaunchPlan& plan) {
  std::vector<plan::TargetReason> refusals;
  const model::Model& model = plan.model;
  if (const std::string why = why_not_modules(model); !why.empty()) {
    refusals.push_back({"modules", {}, fmt::format("it does not train all modules of {}: {}", model.name, why)});
  }
  if (const std::string_view other = beyond_transformer(model); !other.empty()) {
    refusals.push_back(
        {"transformer-layers", {}, fmt::format("it trains transformers: layers of {} have {}", model.name, other)});
  }
  if (is_narrow(model.job.precision)) {
    refusals.push_back(
        {"precision",
         {},
         fmt::format("it has no {} products; plan with precision: bf16", to_string(model.job.precision))});
  }
  if (model.job.optimizer.name != "adam") {
    refusals.push_back({"optimizer", {}, "its optimizer is adam, the job's is " + model.job.optimizer.name});
  }
  std::ranges::move(plan::option_refusals({}, model, "TORCH"), std::back_inserter(refusals));
  return refusals;
}

Launch torch_launch(const plan::LaunchPlan& plan) { return {plan::plan_order(plan), {}}; }

Expected<Export> export_torch(const plan::LaunchPlan& plan) {
  Refusals refusals("torch", "the format generic takes every plan");
  for (const plan::TargetReason& reason : torch_refusals(plan)) refusals.add(reason);
  if (!refusals.empty()) return std::move(refusals).fail();
  const plan::LaunchOrder order = torch_launch(plan).order;
  Export out;
  out.files = plan_files(plan, order);
  out.files.push_back({"local.sh", local_script(), true});
  for (const auto& [name, text] : torch_runtime_files()) {
    out.files.push_back({fmt::format("tangram_torch/{}", name), std::string(text)});
  }
  const Program program{.usage = "[OPTION...]",
                        .prelude = std::string(kHere) + kPath,
                        .arguments = "-m tangram_torch \"$here/plan.json\" \"$@\"",
                        .launcher = Launcher::kProcesses};
  for (File& file : start_scripts(plan, order, {}, program)) out.files.push_back(std::move(file));
  out.notes.emplace_back("run nodes/HOST.sh on every host, on storage that all of them see; --help lists the options");
  if (recomputes_other_modules(plan)) {
    out.notes.emplace_back(
        "selective recompute works out the core of attention alone: stages keep more activations than the plan says");
  }
  if (passes_a_ring(plan)) {
    out.notes.emplace_back(
        "keys and values are gathered, not passed around a ring: context parallelism takes longer than the plan says, "
        "unless it is planned with context_exchange all-gather or all-to-all");
  }
  if (plan.model.job.dropout) out.notes.emplace_back("trains without dropout, which the runtime does not have");
  return out;
}

}  // namespace tangram::exporting
