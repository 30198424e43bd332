#include "tangram/model/execution_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tangram/base/assert.hpp"
#include "tangram/base/spelling.hpp"
#include "tangram/model/model.hpp"

namespace tangram::model {

namespace {

// DeepEP is a library beside the runtime; what is offloaded needs memory of the host, which no fleet file says.
// Transformer Engine's cross-entropy is what Megatron-LM refuses from 2026-06 on (#5115), as unstable.
constexpr std::array kOptions{
    OptionName{"cuda_graphs", ExecutionOption::kCudaGraphs, true},
    OptionName{"expert_dispatch", ExecutionOption::kExpertDispatch, false},
    OptionName{"overlap_expert_communication", ExecutionOption::kExpertOverlap, true},
    OptionName{"overlap_parameter_gather", ExecutionOption::kGatherOverlap, true},
    OptionName{"overlap_tp_communication", ExecutionOption::kTensorOverlap, true},
    OptionName{"fused_loss", ExecutionOption::kFusedLoss, false},
    OptionName{"recompute_modules", ExecutionOption::kRecomputeModules, true},
    OptionName{"offload_modules", ExecutionOption::kOffloadModules, false},
    OptionName{"context_exchange", ExecutionOption::kContextExchange, true},
};

constexpr std::string_view kAsGiven = "as-given";
constexpr std::string_view kAny = "any";

std::string_view text_of(bool value) { return value ? "true" : "false"; }

}  // namespace

std::span<const OptionName> option_names() { return kOptions; }

std::string_view to_string(ExecutionOption option) {
  const auto found = std::ranges::find(kOptions, option, &OptionName::option);
  TANGRAM_ASSERT(found != kOptions.end());
  return found->name;
}

std::optional<ExecutionOption> option_named(std::string_view name) {
  const auto found = std::ranges::find(kOptions, name, &OptionName::name);
  return found == kOptions.end() ? std::nullopt : std::optional(found->option);
}

OptionSet WantedOptions::all() const {
  OptionSet options = named;
  for (const OptionName& option : kOptions) {
    if (any && option.plain) options.add(option.option);
  }
  return options;
}

std::optional<WantedOptions> wanted_options(std::span<const std::string> words) {
  WantedOptions wanted;
  for (const std::string& word : words) {
    const auto option = option_named(word);
    if (option) wanted.named.add(*option);
    if (word == kAny) wanted.any = true;
    if (!option && word != kAny && word != kAsGiven) return std::nullopt;
  }
  return wanted;
}

std::string option_hint(std::string_view word) {
  std::vector<std::string> known{std::string(kAsGiven), std::string(kAny)};
  for (const OptionName& option : kOptions) known.emplace_back(option.name);
  if (const auto near = closest(word, known)) return fmt::format("did you mean \"{}\"?", *near);
  return fmt::format("known words: {}", fmt::join(known, ", "));
}

std::string value_of(ExecutionOption option, const Job& job) {
  switch (option) {
    case ExecutionOption::kCudaGraphs: return to_string(job.cuda_graphs);
    case ExecutionOption::kExpertDispatch: return std::string(to_string(job.expert_dispatch));
    case ExecutionOption::kExpertOverlap: return std::string(text_of(job.overlap_experts));
    case ExecutionOption::kGatherOverlap: return std::string(text_of(job.overlap_gather));
    case ExecutionOption::kTensorOverlap: return std::string(text_of(job.overlap_tp));
    case ExecutionOption::kFusedLoss: return std::string(to_string(job.fused_loss));
    case ExecutionOption::kRecomputeModules:
      return fmt::format("{}", fmt::join(names_of(recomputed_modules(job)), "+"));
    case ExecutionOption::kOffloadModules:
      if (job.offload_modules.empty()) return "none";
      return fmt::format("{}", fmt::join(names_of(job.offload_modules), "+"));
    case ExecutionOption::kContextExchange: return std::string(to_string(job.context_exchange));
  }
  return "";
}

// attn_forward_func_with_cp (transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, 2026-08).
std::string_view context_conflict(const Model& model) {
  const auto has_window = [](const BlockType& type) { return type.attends() && type.attention.sliding_window > 0; };
  if (model.job.context_exchange != ContextExchange::kRing || std::ranges::none_of(model.types, has_window)) return "";
  return "sliding windows do not go around a ring; they need context_exchange all-gather or all-to-all";
}

void copy_option(ExecutionOption option, const Job& from, Job& to) {
  switch (option) {
    case ExecutionOption::kCudaGraphs: to.cuda_graphs = from.cuda_graphs; break;
    case ExecutionOption::kExpertDispatch: to.expert_dispatch = from.expert_dispatch; break;
    case ExecutionOption::kExpertOverlap: to.overlap_experts = from.overlap_experts; break;
    case ExecutionOption::kGatherOverlap: to.overlap_gather = from.overlap_gather; break;
    case ExecutionOption::kTensorOverlap: to.overlap_tp = from.overlap_tp; break;
    case ExecutionOption::kFusedLoss: to.fused_loss = from.fused_loss; break;
    case ExecutionOption::kRecomputeModules: to.recompute_modules = from.recompute_modules; break;
    case ExecutionOption::kOffloadModules: to.offload_modules = from.offload_modules; break;
    case ExecutionOption::kContextExchange: to.context_exchange = from.context_exchange; break;
  }
}

Model settled(Model model, const Job& chosen) {
  for (const OptionName& option : kOptions) {
    if (model.job.free_options.has(option.option)) copy_option(option.option, chosen, model.job);
  }
  model.job.free_options = {};
  return model;
}

}  // namespace tangram::model
