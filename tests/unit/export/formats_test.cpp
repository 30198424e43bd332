// What every format writes, whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "jobset.hpp"
#include "plans.hpp"
#include "shown.hpp"
#include "support/catch.hpp"
#include "tangram/export/export.hpp"
#include "tangram/export/megatron_arguments.hpp"
#include "tangram/io/document.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/plan/launch_order.hpp"

using namespace tangram;
using namespace tangram::exporting;

namespace {

void expect_golden(const std::string& name, const Expected<Export>& made) {
  const std::string now = example::shown(made);
  CHECK(now == example::golden(name, now));
}

const File& file_of(const Export& made, const std::string& path) {
  return *std::ranges::find(made.files, path, &File::path);
}

/// " --name value ... ", those of training before those of parallelism.
std::string arguments_text(const plan::LaunchPlan& plan) {
  std::string all;
  for (const Arguments& arguments : {training_arguments(plan), parallel_arguments(plan)}) {
    for (const Argument& argument : arguments) {
      all +=
          fmt::format(" --{}{}{}", argument.name, argument.values.empty() ? "" : " ", fmt::join(argument.values, " "));
    }
  }
  return all + " ";
}

bool is_told(const plan::LaunchPlan& plan, const std::string& arguments) {
  return arguments_text(plan).find(" " + arguments + " ") != std::string::npos;
}

}  // namespace

TEST_CASE("the example plans pass their check") {
  CHECK(plan::check(example::equal_stages()).ok());
  CHECK(plan::check(example::replicas()).ok());
  CHECK(plan::check(example::unequal_stages()).ok());
}

TEST_CASE("generic writes any plan: the plan, a rank map, a hostfile and a script per node", "[golden]") {
  plan::example::World world = plan::example::make_world();
  expect_golden("generic", export_plan(plan::example::good_plan(world), Format::kGeneric));
}

TEST_CASE("generic's plan is the plan") {
  plan::LaunchPlan plan = example::unequal_stages();
  const auto made = export_plan(plan, Format::kGeneric);
  REQUIRE(made);
  CHECK(file_of(*made, "plan.json").text == plan::write_plan(plan));
}

TEST_CASE("megatron writes arguments with the layout, and scripts", "[golden]") {
  expect_golden("megatron", export_plan(example::equal_stages(), Format::kMegatron));
}

TEST_CASE("megatron lists interleaved chunks as they follow each other in the model") {
  const plan::LaunchPlan plan = plan::example::interleaved_plan();
  const auto made = export_plan(plan, Format::kMegatron);
  REQUIRE(made);
  const std::string& arguments = file_of(*made, "arguments.sh").text;
  CHECK(arguments.find("--pipeline-model-parallel-size 4\n") != std::string::npos);
  CHECK(arguments.find("--pipeline-model-parallel-layout 'Et*1|t*1|t*1|t*1|t*1|t*1|t*1|t*1,L'\n") != std::string::npos);
  CHECK(arguments.find("--microbatch-group-size-per-virtual-pipeline-stage 4\n") != std::string::npos);
  CHECK(arguments.find("--overlap-p2p-communication-warmup-flush\n") != std::string::npos);
  CHECK(arguments.find("virtual-stages") == std::string::npos);  // the layout says it, and both are refused
  CHECK_FALSE(export_plan(plan, Format::kFlagscale));
  CHECK_FALSE(export_plan(plan, Format::kGalvatron));
  CHECK_FALSE(export_plan(plan, Format::kSailor));
  CHECK_FALSE(export_plan(plan, Format::kFlashflex));
}

TEST_CASE("megatron is told of the job's execution options") {
  plan::LaunchPlan plan = example::unequal_stages();
  const auto text = [&] { return arguments_text(plan); };
  CHECK(text().find(" --moe-token-dispatcher-type alltoall ") != std::string::npos);
  CHECK(text().find("cuda-graph") == std::string::npos);
  plan.model.job.expert_dispatch = model::ExpertDispatch::kHybridEp;
  plan.model.job.overlap_experts = true;
  plan.model.job.cuda_graphs = model::kGraphsOfBlocks;
  CHECK(text().find(" --moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep --moe-router-dtype fp32 "
                    "--overlap-moe-expert-parallel-comm --cuda-graph-impl transformer_engine --cuda-graph-modules attn "
                    "mlp moe_router moe_preprocess ") != std::string::npos);
  plan.model.job.cuda_graphs = {model::GraphModule::kRouter, model::GraphModule::kRecurrence};
  CHECK(text().find(" --cuda-graph-modules moe_router moe_preprocess ") != std::string::npos);
  plan.model.types.front().recurrence.emplace();
  CHECK(text().find(" --cuda-graph-modules moe_router moe_preprocess mamba ") != std::string::npos);
  plan.model.job.cuda_graphs = {model::GraphModule::kFeedForward};
  plan.model.types.front().recurrence.reset();
  plan.model.job.cuda_graphs = model::kGraphOfStep;
  CHECK(text().find(" --cuda-graph-impl full_iteration --no-check-for-nan-in-loss-and-grad ") != std::string::npos);
  // Experts that are whole on each rank are not exchanged.
  for (plan::Stage& stage : plan.stages) stage.parts.front().strategy.degrees.ep = 1;
  for (plan::Stage& stage : plan.stages) stage.parts.front().strategy.degrees.etp = 1;
  CHECK(text().find(" --moe-token-dispatcher-type alltoall --cuda-graph-impl") != std::string::npos);
}

TEST_CASE("megatron is told what context parallelism exchanges, where there is any") {
  plan::LaunchPlan plan = example::unequal_stages();
  CHECK_FALSE(is_told(plan, "--cp-comm-type"));
  for (plan::Stage& stage : plan.stages) stage.parts.front().strategy.degrees.cp = 2;
  CHECK(is_told(plan, "--context-parallel-size 2 --cp-comm-type p2p"));
  plan.model.job.context_exchange = model::ContextExchange::kAllGather;
  CHECK(is_told(plan, "--cp-comm-type all_gather"));
  plan.model.job.context_exchange = model::ContextExchange::kAllToAll;
  CHECK(is_told(plan, "--cp-comm-type a2a"));
}

TEST_CASE("megatron is told of the buckets of gradients, where it has another size") {
  plan::LaunchPlan plan = example::equal_stages();
  CHECK(is_told(plan, "--overlap-grad-reduce"));
  CHECK_FALSE(is_told(plan, "--ddp-bucket-size"));
  plan.model.job.gradient_bucket = 128LL << 20;
  CHECK(is_told(plan, "--overlap-grad-reduce --ddp-bucket-size 134217728"));
}

TEST_CASE("megatron is told which modules' inputs are offloaded, of those that layers have") {
  plan::LaunchPlan plan = example::unequal_stages();
  CHECK_FALSE(is_told(plan, "--fine-grained-activation-offloading"));
  using enum model::OffloadModule;
  plan.model.job.offload_modules = {kCoreAttention, kAttentionOutput, kExpertInput};
  CHECK(is_told(plan, "--fine-grained-activation-offloading --offload-modules core_attn attn_proj expert_fc1"));
  for (model::BlockType& type : plan.model.types) {
    type.feed_forward.experts = 0;
    type.feed_forward.hidden = 64;
  }
  CHECK(is_told(plan, "--fine-grained-activation-offloading --offload-modules core_attn attn_proj"));
  CHECK_FALSE(is_told(plan, "attn_proj expert_fc1"));
}

TEST_CASE("megatron is told what products in 8 and 4 bits are scaled by, and that parameters are gathered so") {
  plan::LaunchPlan plan = example::unequal_stages();
  const auto has = [&](const std::string& arguments) { return is_told(plan, arguments); };
  model::Job& job = plan.model.job;
  CHECK(has("--bf16"));
  CHECK_FALSE(has("--fp8-format hybrid"));
  job.precision = DType::kFp8;
  CHECK(has("--fp8-format hybrid --fp8-recipe delayed --bf16"));
  job.fp8_recipe = model::Fp8Recipe::kMxfp8;
  CHECK(has("--fp8-format e4m3 --fp8-recipe mxfp8 --bf16"));
  CHECK_FALSE(has("--fp8-param-gather"));
  job.narrow_parameters = true;
  const auto set_zero = [&](int zero) {
    for (plan::Stage& stage : plan.stages) {
      stage.parts.front().strategy.policy.zero = zero;
      stage.parts.front().strategy.degrees.dp = 2;
    }
  };
  set_zero(1);
  CHECK(has("--fp8-param-gather"));
  job.precision = DType::kFp4;
  CHECK(has("--fp4-format e2m1 --fp4-recipe nvfp4 --bf16"));
  job.wide_layers = {1, 4};
  CHECK(has("--first-last-layers-bf16 --num-layers-at-start-in-bf16 1 --num-layers-at-end-in-bf16 4 --bf16"));
  CHECK(has("--fp4-param-gather"));
  set_zero(0);
  CHECK_FALSE(has("--fp4-param-gather"));
}

TEST_CASE("megatron is told of which types a precision-aware optimizer's moments are") {
  plan::LaunchPlan plan = example::unequal_stages();
  const auto has = [&](const std::string& arguments) { return is_told(plan, arguments); };
  model::Job& job = plan.model.job;
  CHECK_FALSE(has("--use-precision-aware-optimizer"));
  job.optimizer.precision_aware = true;
  job.optimizer.state_bytes_per_parameter = 10;
  CHECK(has("--optimizer adam --use-precision-aware-optimizer --exp-avg-dtype fp32 --exp-avg-sq-dtype fp32"));
  CHECK(has("--use-distributed-optimizer"));
  CHECK_FALSE(has("--main-grads-dtype bf16"));
  CHECK_FALSE(has("--optimizer-cpu-offload"));
  job.optimizer.offload_fraction = 0.5;
  CHECK(has("--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --overlap-cpu-optimizer-d2h-h2d"));
  job.optimizer.offload_fraction = 0;
  job.gradient_bytes = 2;
  job.optimizer.state_bytes_per_parameter = 6;
  CHECK(has("--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 --main-grads-dtype bf16"));
  // Master copies are whole beside values in fp8 but of delayed scaling.
  job.precision = DType::kFp8;
  job.fp8_recipe = model::Fp8Recipe::kTensorwise;
  CHECK(has("--exp-avg-dtype fp8 --exp-avg-sq-dtype fp8"));
}

TEST_CASE("flagscale writes one mesh per stage and a type alias per island", "[golden]") {
  expect_golden("flagscale", export_plan(example::unequal_stages(), Format::kFlagscale));
}

TEST_CASE("replicas of a pipeline become data parallelism of its stages") {
  // The plan numbers pipeline by pipeline: a0 has 0-3 (stage 0 of the first) and 4-7 (stage 1 of the first).
  // Megatron-LM numbers stage by stage: stage 0 is 0-3 and 8-11 of the plan, so that hosts a0 and a1 have every other
  // four.
  const plan::LaunchPlan plan = example::replicas();
  const plan::LaunchOrder order = plan::stage_order(plan);
  CHECK(order.plan_rank == std::vector<int>{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15});
  CHECK_FALSE(order.host_by_host());
  CHECK(order.hosts[0].ranks == std::vector<int>{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(plan::plan_order(plan).host_by_host());
  const auto made = export_plan(plan, Format::kMegatron);
  REQUIRE(made);
  // Ranks are then told to each process, and the optimizer is sharded in each replica for itself.
  CHECK(file_of(*made, "start.sh").text.find("RANK=${ranks[local_rank]} LOCAL_RANK=$local_rank") != std::string::npos);
  const std::string& arguments = file_of(*made, "arguments.sh").text;
  CHECK(arguments.find("--num-distributed-optimizer-instances 2\n") != std::string::npos);
  // b = 4 over dp 2 in each of 2 pipelines: 2 samples a rank; 2 x 4 x 2 microbatches = 16 an iteration.
  CHECK(arguments.find("--micro-batch-size 2\n") != std::string::npos);
  CHECK(arguments.find("--global-batch-size 16\n") != std::string::npos);
}

TEST_CASE("groups that shard for themselves are instances of the distributed optimizer") {
  plan::LaunchPlan plan = example::equal_stages();
  for (plan::Stage& stage : plan.stages) stage.parts.front().strategy.degrees.dp_replicate = 2;
  const auto arguments = parallel_arguments(plan);
  const auto instances = std::ranges::find(arguments, "num-distributed-optimizer-instances", &Argument::name);
  REQUIRE(instances != arguments.end());
  CHECK(instances->values == std::vector<std::string>{"2"});
  CHECK(plan::reasons_against(plan, runtime::Target::kMegatron).empty());
  CHECK_FALSE(plan::reasons_against(plan, runtime::Target::kFlagscale).empty());
  plan.stages.front().parts.front().strategy.degrees.dp_replicate = 4;
  CHECK_FALSE(plan::reasons_against(plan, runtime::Target::kMegatron).empty());
}

TEST_CASE("slurm asks for one component per island and runs a start script per node", "[golden]") {
  expect_golden("slurm", export_plan(example::unequal_stages(), Format::kSlurm));
}

TEST_CASE("slurm and kubernetes wrap megatron as well, and refuse what it refuses") {
  for (const Format format : {Format::kSlurm, Format::kKubernetes}) {
    const auto made = export_plan(example::equal_stages(), format, {.program = Format::kMegatron, .image = "image"});
    REQUIRE(made);
    CHECK(file_of(*made, "arguments.sh").text.find("--pipeline-model-parallel-layout") != std::string::npos);
    const auto refused = export_plan(example::unequal_stages(), format, {.program = Format::kMegatron, .image = ""});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().front().code == "MLM_TP_VARIES");
  }
}

TEST_CASE("kubernetes writes a JobSet with one replicated job per island", "[golden]") {
  expect_golden("kubernetes", export_plan(example::unequal_stages(), Format::kKubernetes));
}

TEST_CASE("the JobSet has the fields of its schema and no others") {
  const auto made = export_plan(example::unequal_stages(), Format::kKubernetes);
  REQUIRE(made);
  const auto manifest = io::parse_yaml(file_of(*made, "jobset.yaml").text, "jobset.yaml");
  REQUIRE(manifest);
  CHECK(jobset::mistakes(manifest->root).empty());
  io::Node spoilt = manifest->root;
  jobset::member(jobset::member(spoilt, "spec"), "replicatedJobs").items[0].members[0].key = "nam";
  CHECK(jobset::mistakes(spoilt) ==
        std::vector<std::string>{"/spec/replicatedJobs/0: unknown nam", "/spec/replicatedJobs/0: no name"});
}

TEST_CASE("sailor is told its own names of GPUs, and what its tables lack") {
  const auto named = [](const std::string& type) {
    plan::LaunchPlan plan = example::plain_stages();
    for (auto& island : plan.islands) island.device.name = type;
    return export_plan(plan, Format::kSailor);
  };
  for (const auto& [type, name] : {std::pair{"A100-40GB-SXM", "A100-40"},
                                   {"A100-80GB-PCIe", "A100-80"},
                                   {"V100-16GB-SXM", "V100-16"},
                                   {"GH200-96GB", "GH-96"},
                                   {"RTX-2080-Ti", "RTX-2080"}}) {
    const auto made = named(type);
    REQUIRE(made);
    CHECK(made->files.front().text.find(std::string("\"") + name + "\"") != std::string::npos);
    CHECK(made->files.front().text.find("us-central1-a") != std::string::npos);
    CHECK(made->notes.empty());
  }
  const auto unknown = named("H100-80GB-SXM");
  REQUIRE(unknown);
  CHECK(unknown->notes.front().starts_with("Sailor's tables have no H100-80GB-SXM: "));
}

TEST_CASE("sailor, flashflex and galvatron", "[golden]") {
  expect_golden("sailor", export_plan(example::plain_stages(), Format::kSailor));
  expect_golden("flashflex", export_plan(example::llama_pipelines(), Format::kFlashflex));
  expect_golden("galvatron", export_plan(example::plain_stages(), Format::kGalvatron));
}
