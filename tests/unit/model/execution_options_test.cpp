// Execution options that a job leaves to the planner, and what Megatron-Core recomputes beside others.
#include "tangram/model/execution_options.hpp"

#include "files.hpp"

using namespace tangram;
using namespace tangram::model;
using namespace tangram::model::test;

namespace {

using Option = ExecutionOption;

std::string model_text(const std::string& training, const std::string& feed_forward = "ffn_hidden: 32") {
  return "schema: tangram.model/1\nname: test\narchitecture: {vocabulary: 100, hidden: 8, layers: 4, heads: 2, " +
         feed_forward + "}\ntraining: {sequence_length: 16, global_batch_samples: 8" + training + "}\n";
}

Model read_training(const std::string& training, const JobOverrides& overrides = {}) {
  return valid(read_model(model_text(training), "test.yaml", overrides));
}

const OptionSet kAnyOption{Option::kCudaGraphs,    Option::kExpertOverlap,    Option::kGatherOverlap,
                           Option::kTensorOverlap, Option::kRecomputeModules, Option::kContextExchange};

}  // namespace

TEST_CASE("options: any leaves free what the job does not set, and what needs no software of its own") {
  CHECK(read_training("").job.free_options.empty());
  CHECK(read_training(", execution_options: as-given").job.free_options.empty());
  CHECK(read_training(", execution_options: any").job.free_options == kAnyOption);
  CHECK(read_training(", execution_options: any, cuda_graphs: none").job.free_options ==
        kAnyOption.without(Option::kCudaGraphs));
  CHECK(read_training(", execution_options: [any, fused_loss]").job.free_options ==
        kAnyOption.with({Option::kFusedLoss}));
  CHECK(read_training(", execution_options: expert_dispatch").job.free_options == OptionSet{Option::kExpertDispatch});
}

TEST_CASE("options: those of a caller take the place of the file's") {
  JobOverrides overrides;
  overrides.options = WantedOptions{false, {Option::kCudaGraphs}};
  CHECK(read_training(", execution_options: any", overrides).job.free_options == OptionSet{Option::kCudaGraphs});
  const auto refused = read_model(model_text(", cuda_graphs: step"), "test.yaml", overrides);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().code == "conflicting-keys");
}

TEST_CASE("options: a model is written with those that are free, and read as it was") {
  const Model model =
      read_training(", execution_options: [any, fused_loss], cuda_graphs: none, overlap_tp_communication: false");
  const Model again = valid(read_model(write_model(model), "test.yaml"));
  CHECK(again.job == model.job);
  CHECK(write_model(again) == write_model(model));
}

TEST_CASE("options: a settled model has the chosen values of what was free, and of nothing else") {
  const Model model = read_training(", execution_options: [cuda_graphs, recompute_modules]");
  Job chosen = model.job;
  chosen.cuda_graphs = model::kGraphOfStep;
  chosen.recompute_modules = {RecomputeModule::kNorms};
  chosen.overlap_tp = true;
  const Model settled_model = settled(model, chosen);
  CHECK(settled_model.job.cuda_graphs == model::kGraphOfStep);
  CHECK(value_of(Option::kRecomputeModules, settled_model.job) == "layernorm");
  CHECK_FALSE(settled_model.job.overlap_tp);
  CHECK(settled_model.job.free_options.empty());
}

TEST_CASE("options: every name is known, and other words are not") {
  for (const OptionName& option : option_names()) {
    CHECK(option_named(option.name) == option.option);
    CHECK(to_string(option.option) == option.name);
  }
  const std::vector<std::string> words{"any", "cuda_graph"};
  CHECK_FALSE(wanted_options(words));
  CHECK(option_hint("cuda_graph") == "did you mean \"cuda_graphs\"?");
}

TEST_CASE("CUDA graphs: one of three names, or modules") {
  using enum GraphModule;
  const auto graphs = [](const std::string& value) { return read_training(", cuda_graphs: " + value).job.cuda_graphs; };
  CHECK(graphs("none") == kNoGraphs);
  CHECK(graphs("blocks") == CudaGraphs{kAttention, kFeedForward, kRouter, kRecurrence});
  CHECK(graphs("step") == kGraphOfStep);
  CHECK(graphs("mamba") == CudaGraphs{kRecurrence});
  CHECK(graphs("[moe_router, attn]") == CudaGraphs{kAttention, kRouter});
  CHECK(to_string(graphs("[moe_router, attn]")) == "attn+moe_router");
  CHECK(to_string(kGraphOfStep) == "step");
  for (const char* value : {"none", "blocks", "step", "mamba", "[attn, moe_router]"}) {
    const Model model = read_training(std::string(", cuda_graphs: ") + value);
    const Model again = valid(read_model(write_model(model), "written.json"));
    CHECK(again.job.cuda_graphs == model.job.cuda_graphs);
  }
  const auto refused = read_model(model_text(", cuda_graphs: [step, attn]"), "test.yaml");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().message.find("unknown module \"step\"") != std::string::npos);
  const auto misspelt = read_model(model_text(", cuda_graphs: blcks"), "test.yaml");
  REQUIRE_FALSE(misspelt);
  CHECK(misspelt.error().front().hint == "did you mean \"blocks\"?");
}

TEST_CASE("a framework's operators: none, all, or which") {
  using enum EagerOperator;
  const auto eager = [](const std::string& value) {
    return read_training(", eager_operators: " + value).job.eager_operators;
  };
  CHECK(eager("none").empty());
  CHECK(eager("all") == EagerOperators{kNorms, kRotary, kGates, kAdapters});
  CHECK(eager("rotary") == EagerOperators{kRotary});
  CHECK(eager("[gates, norms]") == EagerOperators{kNorms, kGates});
  CHECK(names_of(eager("[gates, norms]")) == std::vector<std::string_view>{"norms", "gates"});
  for (const char* value : {"none", "all", "adapters", "[rotary, gates]"}) {
    const Model model = read_training(std::string(", eager_operators: ") + value);
    CHECK(valid(read_model(write_model(model), "written.json")).job == model.job);
  }
  const auto misspelt = read_model(model_text(", eager_operators: [rotery]"), "test.yaml");
  REQUIRE_FALSE(misspelt);
  CHECK(misspelt.error().front().message.find("unknown module \"rotery\"") != std::string::npos);
  CHECK(misspelt.error().front().hint == "did you mean \"rotary\"?");
  const auto boolean = read_model(model_text(", eager_operators: true"), "test.yaml");
  REQUIRE_FALSE(boolean);
  CHECK(boolean.error().size() == 1);
}

TEST_CASE("CUDA graphs: captured of what the model has") {
  using enum GraphModule;
  Model model = read_training(", cuda_graphs: blocks");
  CHECK(captured_modules(model) == CudaGraphs{kAttention, kFeedForward});
  CHECK(has_graphs_of_dense_layers(model));
  model.job.cuda_graphs = {kAttention, kRouter};
  CHECK(captured_modules(model) == CudaGraphs{kAttention});
  CHECK_FALSE(has_graphs_of_dense_layers(model));
  model.job.cuda_graphs = kGraphOfStep;
  CHECK_FALSE(is_partial(model.job.cuda_graphs));
  CHECK_FALSE(has_graphs_of_dense_layers(model));
}

TEST_CASE("recompute: modules that graphs or exchanges hold a part of are not worked out again") {
  const std::string experts = "moe: { experts: 4, experts_per_token: 2, expert_hidden: 16 }";
  const auto conflict = [&](const std::string& training) {
    return std::string(recompute_conflict(valid(read_model(model_text(training, experts), "test.yaml"))));
  };
  CHECK(conflict(", recompute_modules: [moe]").empty());
  CHECK(conflict(", recompute_modules: [moe], cuda_graphs: blocks").find("router") != std::string::npos);
  CHECK(conflict(", recompute_modules: [moe], overlap_expert_communication: true").find("exchanges") !=
        std::string::npos);
  CHECK(conflict(", recompute_modules: [core_attn], cuda_graphs: blocks").find("dropout") != std::string::npos);
  CHECK(conflict(", recompute_modules: [core_attn], cuda_graphs: blocks, dropout: false").empty());
  CHECK(conflict(", cuda_graphs: blocks").empty());
  CHECK(conflict(", recompute_modules: [moe], cuda_graphs: attn").empty());
  CHECK(conflict(", recompute_modules: [core_attn], cuda_graphs: moe_router").empty());
}

TEST_CASE("offload: modules that Megatron-Core cannot offload by themselves, or beside graphs, conflict") {
  const std::string experts = "moe: { experts: 4, experts_per_token: 2, expert_hidden: 16 }";
  const auto conflict = [&](const std::string& training) {
    const Model model = valid(read_model(model_text(training, experts), "test.yaml"));
    return std::string(offload_conflict(model)) + std::string(recompute_conflict(model));
  };
  CHECK(conflict(", offload_modules: [core_attn, attn_proj, expert_fc1, moe_act]").empty());
  CHECK(conflict(", offload_modules: [attn_proj]").find("core_attn") != std::string::npos);
  CHECK(conflict(", offload_modules: [mlp_norm], cuda_graphs: blocks").find("graphs") != std::string::npos);
  CHECK(conflict(", offload_modules: [moe_act], recompute_modules: [moe]").find("part") != std::string::npos);
  CHECK(conflict(", offload_modules: [core_attn], recompute_modules: [moe]").empty());
}

TEST_CASE("offload: a model is written with its modules, and unknown ones are refused") {
  const Model model = read_training(", offload_modules: [attn_norm, qkv_linear]");
  CHECK(model.job.offload_modules == OffloadModules{OffloadModule::kAttentionNorm, OffloadModule::kQueryKeyValue});
  CHECK(valid(read_model(write_model(model), "test.yaml")).job == model.job);
  CHECK(value_of(Option::kOffloadModules, model.job) == "attn_norm+qkv_linear");
  CHECK(value_of(Option::kOffloadModules, Job{}) == "none");
  const auto refused = read_model(model_text(", offload_modules: [core_atn]"), "test.yaml");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().front().hint == "did you mean \"core_attn\"?");
}

TEST_CASE("offload: the optimizer's share on the host is read, written, and of adam alone") {
  const Model model = read_training(", optimizer: {name: adamw, precision_aware: true, offload_fraction: 0.25}");
  CHECK(model.job.optimizer.offload_fraction == 0.25);
  CHECK(moment_bytes(model.job) == 8);
  CHECK(resident_state_bytes(model.job) == 8);  // of 10
  CHECK(valid(read_model(write_model(model), "test.yaml")).job == model.job);
  CHECK(moment_bytes(read_training("").job) == 8);
  CHECK(moment_bytes(read_training(", precision: fp32").job) == 8);
  for (const char* wrong :
       {", optimizer: {name: sgd, offload_fraction: 0.5}", ", optimizer: {offload_fraction: 1.5}"}) {
    CHECK_FALSE(read_model(model_text(wrong), "test.yaml"));
  }
}
