#include "execution_arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "megatron_job.hpp"
#include "tangram/base/enum_names.hpp"
#include "tangram/io/limits.hpp"

namespace tangram::importing {

namespace {

using model::ContextExchange;
using model::ExpertDispatch;
using model::GraphModule;

/// A value of an argument, and what it means; nullopt: it exists, and nothing here predicts it.
template <class T>
using Meaning = std::pair<std::string_view, std::optional<T>>;

// megatron/training/arguments.py and megatron/core/transformer/transformer_config.py, 2026-08.
constexpr std::array<Meaning<ContextExchange>, 5> kContextExchanges{{
    {"p2p", ContextExchange::kRing},
    {"all_gather", ContextExchange::kAllGather},
    {"allgather", ContextExchange::kAllGather},
    {"a2a", ContextExchange::kAllToAll},
    {"a2a+p2p", std::nullopt},
}};
constexpr std::array<Meaning<model::FusedLoss>, 2> kLossKernels{{
    {"native", model::FusedLoss::kNative},
    {"te", model::FusedLoss::kTransformerEngine},
}};
constexpr std::array<Meaning<ExpertDispatch>, 3> kDispatchers{{
    {"alltoall", ExpertDispatch::kAllToAll},
    {"flex", ExpertDispatch::kDeepEp},
    {"allgather", std::nullopt},
}};
constexpr std::array<Meaning<ExpertDispatch>, 2> kFlexBackends{{
    {"deepep", ExpertDispatch::kDeepEp},
    {"hybridep", ExpertDispatch::kHybridEp},
}};
/// With the scopes of before the modules had their argument. What prepares the dispatch is part of the router's graph.
constexpr std::array<Meaning<model::CudaGraphs>, 8> kGraphScopes{{
    {"attn", model::CudaGraphs{GraphModule::kAttention}},
    {"mlp", model::CudaGraphs{GraphModule::kFeedForward}},
    {"moe_router", model::CudaGraphs{GraphModule::kRouter}},
    {"moe_preprocess", model::kNoGraphs},
    {"mamba", model::CudaGraphs{GraphModule::kRecurrence}},
    {"full", model::kGraphsOfBlocks},
    {"full_iteration", model::kGraphOfStep},
    {"moe", std::nullopt},
}};
/// Without scopes.
constexpr std::array<Meaning<model::CudaGraphs>, 4> kGraphImplementations{{
    {"none", model::kNoGraphs},
    {"local", model::kGraphsOfBlocks},
    {"transformer_engine", model::kGraphsOfBlocks},
    {"full_iteration", model::kGraphOfStep},
}};

class ExecutionReader {
 public:
  ExecutionReader(ArgumentMap& arguments, Job& job) : arguments_(arguments), job_(job) {}

  void read() {
    ExecutionArguments& said = job_.execution;
    said.cuda_graphs = graphs();
    said.expert_dispatch = dispatch();
    said.context_exchange = value_of("cp-comm-type", kContextExchanges);
    if (recompute_granularity(arguments_) == "selective") {
      const model::RecomputeModules usual{model::RecomputeModule::kCoreAttention};  // Megatron-Core's default
      said.recompute_modules = modules("recompute-modules", model::kRecomputeModuleNames).value_or(usual);
    }
    if (arguments_.has("fine-grained-activation-offloading")) {
      said.offload_modules = modules("offload-modules", model::kOffloadModuleNames);
    }
    said.overlap_experts = arguments_.has("overlap-moe-expert-parallel-comm");
    said.overlap_gather = arguments_.has("overlap-param-gather");
    said.overlap_tp = arguments_.has("tp-comm-overlap");
    said.fused_loss = loss();
    if (arguments_.has("ddp-bucket-size")) {
      constexpr std::int64_t kMost = io::integer_limit("gradient_bucket").max;
      said.gradient_bucket = arguments_.count_or("ddp-bucket-size", 0, kMost);
    }
  }

 private:
  template <class Table>
  void report(const std::string& name, std::string_view word, const Table& table) {
    std::vector<std::string_view> known;
    for (const auto& [value, _] : table) known.push_back(value);
    arguments_.error_at(name, "unknown-value", fmt::format("--{} has no value \"{}\"", name, word),
                        fmt::format("one of {}", fmt::join(known, ", ")));
  }

  template <class T, std::size_t N>
  std::optional<T> meaning_of(const std::string& name, std::string_view word, const std::array<Meaning<T>, N>& table) {
    const auto found = std::ranges::find(table, word, &Meaning<T>::first);
    if (found == table.end()) {
      report(name, word, table);
      return std::nullopt;
    }
    if (!found->second) {
      job_.notes.push_back(fmt::format("--{} {} is not predicted: what the model file has is taken", name, word));
    }
    return found->second;
  }

  template <class T, std::size_t N>
  std::optional<T> value_of(const std::string& name, const std::array<Meaning<T>, N>& table) {
    const Argument* found = arguments_.find(name);
    return found == nullptr ? std::nullopt : meaning_of(name, found->value, table);
  }

  std::optional<model::FusedLoss> loss() {
    if (!arguments_.has("cross-entropy-loss-fusion")) return std::nullopt;
    return arguments_.has("cross-entropy-fusion-impl") ? value_of("cross-entropy-fusion-impl", kLossKernels)
                                                       : model::FusedLoss::kNative;
  }

  template <class E, std::size_t N>
  std::optional<EnumSet<E>> modules(const std::string& name, const EnumNames<E, N>& table) {
    const Argument* found = arguments_.find(name);
    if (found == nullptr) return std::nullopt;
    const std::vector<std::string> words = found->values();
    for (const std::string& word : words) {
      const auto is_called = [&](const auto& entry) { return entry.first == word; };
      if (std::ranges::none_of(table, is_called)) report(name, word, table);
    }
    return members_called(table, words);
  }

  std::optional<ExpertDispatch> dispatch() {
    const std::string backend = "moe-flex-dispatcher-backend";
    const auto kind = value_of("moe-token-dispatcher-type", kDispatchers);
    if (kind != ExpertDispatch::kDeepEp || !arguments_.has(backend)) return kind;
    return value_of(backend, kFlexBackends);
  }

  /// Before Megatron-Core 0.14 each implementation had a switch of its own.
  std::string graph_implementation() {
    if (arguments_.has("external-cuda-graph")) return "transformer_engine";
    return arguments_.has("enable-cuda-graph") ? "local" : "";
  }

  std::optional<model::CudaGraphs> graphs() {
    const std::string implementation = arguments_.text_or("cuda-graph-impl", graph_implementation());
    if (implementation.empty()) return std::nullopt;
    const auto whole = meaning_of("cuda-graph-impl", implementation, kGraphImplementations);
    if (whole != model::kGraphsOfBlocks) return whole;
    for (const std::string name : {"cuda-graph-modules", "cuda-graph-scope"}) {
      if (const Argument* scopes = arguments_.find(name); scopes != nullptr) return graphs_of(name, *scopes);
    }
    return whole;
  }

  model::CudaGraphs graphs_of(const std::string& name, const Argument& scopes) {
    model::CudaGraphs graphs;
    for (const std::string& word : scopes.values()) {
      if (const auto scope = meaning_of(name, word, kGraphScopes)) graphs = graphs.with(*scope);
    }
    return graphs;
  }

  ArgumentMap& arguments_;
  Job& job_;
};

/// Graphs of modules that the model has not are none.
model::CudaGraphs effective_graphs(const model::Model& given) {
  return given.job.cuda_graphs == model::kGraphOfStep ? model::kGraphOfStep : model::captured_modules(given);
}

/// Sets what is said of an option, unless it comes to what the model has anyway: names of what it lacks, or defaults.
template <class T, class Effect>
void set(model::Model& given, T model::Job::* option, const std::optional<T>& said, Effect effect) {
  if (!said) return;
  const auto before = effect(given);
  const T kept = std::exchange(given.job.*option, *said);
  if (effect(given) == before) given.job.*option = kept;
}

bool exchanges_experts(const Job& job) {
  const auto does = [](const JobStage& stage) { return stage.common.ep * stage.common.etp > 1; };
  return std::ranges::any_of(job.pipelines,
                             [&](const JobPipeline& pipeline) { return std::ranges::any_of(pipeline.stages, does); });
}

}  // namespace

void read_execution(ArgumentMap& arguments, Job& job) { ExecutionReader(arguments, job).read(); }

model::Model as_executed(const ReadJob& read, const model::Model& model) {
  model::Model executed = model;
  const Job& job = read.job();
  const ExecutionArguments& said = job.execution;
  set(executed, &model::Job::cuda_graphs, said.cuda_graphs, effective_graphs);
  set(executed, &model::Job::recompute_modules, said.recompute_modules,
      [](const auto& m) { return model::recomputed_modules(m); });
  set(executed, &model::Job::offload_modules, said.offload_modules,
      [](const auto& m) { return model::offloaded_modules(m); });
  if (said.expert_dispatch && exchanges_experts(job)) executed.job.expert_dispatch = *said.expert_dispatch;
  if (said.context_exchange) executed.job.context_exchange = *said.context_exchange;
  executed.job.overlap_experts |= said.overlap_experts;
  executed.job.overlap_gather |= said.overlap_gather;
  executed.job.overlap_tp |= said.overlap_tp;
  if (said.fused_loss) executed.job.fused_loss = *said.fused_loss;
  if (said.gradient_bucket) executed.job.gradient_bucket = *said.gradient_bucket;
  return executed;
}

}  // namespace tangram::importing
