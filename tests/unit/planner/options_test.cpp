// Execution options that the planner chooses: which, what the plan says of them, and what leaves them as they are.
#include "options.hpp"

#include "inputs.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/planner/choices.hpp"
#include "tangram/planner/replan.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

namespace {

using model::ExecutionOption;

/// Three nodes of one A100, whose kernels a host issues no faster than they run.
cluster::Fleet three() { return fleet_of_file("tests/cli/inputs/three.json"); }

model::Model free_model(const std::string& training = "execution_options: any", const std::string& head = "") {
  return model_of_text(R"(schema: tangram.model/1
name: small
architecture: { vocabulary: 8192, hidden: 512, layers: 6, heads: 8, ffn_hidden: 2048)" +
                       head + R"( }
training:
  sequence_length: 256
  global_batch_samples: 12
  )" + training + "\n");
}

PlanOptions for_megatron() {
  PlanOptions options;
  options.target = runtime::Target::kMegatron;
  return options;
}

plan::LaunchPlan planned(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options) {
  auto result = make_plan(fleet, model, options);
  REQUIRE(result);
  return std::move(result->plan);
}

const plan::ChosenOption* chosen(const plan::LaunchPlan& plan, ExecutionOption option) {
  const auto& all = plan.provenance.options;
  const auto found = std::ranges::find(all, option, &plan::ChosenOption::option);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("options: small kernels are captured in graphs, and the plan says what that gains") {
  plan::LaunchPlan plan = planned(three(), free_model(), for_megatron());
  const plan::LaunchPlan given = planned(three(), free_model("execution_options: as-given"), for_megatron());
  CHECK(plan.model.job.cuda_graphs != model::kNoGraphs);
  CHECK(plan.model.job.free_options.empty());
  CHECK(plan.predicted.iteration < given.predicted.iteration);
  const plan::ChosenOption* const graphs = chosen(plan, ExecutionOption::kCudaGraphs);
  REQUIRE(graphs != nullptr);
  CHECK(graphs->value == to_string(plan.model.job.cuda_graphs));
  CHECK(graphs->gain.value_or(0) > 0.001);
  CHECK(plan.provenance.note.find("the chosen options need") != std::string::npos);
  const auto text = checked_text(plan, three(), free_model());
  REQUIRE(text);
  const auto read = plan::read_plan(*text, "plan.json");
  REQUIRE(read);
  CHECK(read->provenance.options == plan.provenance.options);
}

TEST_CASE("options: parallelizers that were made for the job as it is are made anew for others") {
  const model::Model model = free_model();
  const auto enumerator = parallelizer::make_enumerator(model);
  PlanOptions options = for_megatron();
  options.parallelizers = {enumerator.get()};
  plan::LaunchPlan one = planned(three(), model, options);
  plan::LaunchPlan two = planned(three(), model, for_megatron());
  CHECK(plan::write_plan(one) == plan::write_plan(two));
}

TEST_CASE("options: the same question has the same plan, byte for byte") {
  plan::LaunchPlan one = planned(three(), free_model(), for_megatron());
  plan::LaunchPlan two = planned(three(), free_model(), for_megatron());
  CHECK(plan::write_plan(one) == plan::write_plan(two));
}

TEST_CASE("options: what the job sets stays") {
  const plan::LaunchPlan plan =
      planned(three(), free_model("execution_options: any\n  cuda_graphs: none"), for_megatron());
  CHECK(plan.model.job.cuda_graphs == model::kNoGraphs);
  CHECK(chosen(plan, ExecutionOption::kCudaGraphs) == nullptr);
}

TEST_CASE("options: where a runtime takes none as arguments, they stay as they are, and the plan says so") {
  for (const auto target : {runtime::Target::kGeneric, runtime::Target::kFlagscale}) {
    PlanOptions options;
    options.target = target;
    const plan::LaunchPlan plan = planned(three(), free_model(), options);
    CHECK(plan.provenance.options.empty());
    CHECK(plan.model.job == plan::as_run_by(target, free_model("execution_options: as-given").job));
    CHECK(plan.provenance.note.find("execution options are as the job has them") != std::string::npos);
  }
}

TEST_CASE("options: only those that bear on the model are chosen") {
  const model::OptionSet dense = choosable_options(free_model(), runtime::Target::kMegatron);
  CHECK(dense == model::OptionSet{ExecutionOption::kCudaGraphs, ExecutionOption::kGatherOverlap,
                                  ExecutionOption::kTensorOverlap, ExecutionOption::kRecomputeModules,
                                  ExecutionOption::kContextExchange});
  const model::Model without = free_model("execution_options: any\n  forbid: [tp, cp, zero1, recompute_selective]");
  CHECK(choosable_options(without, runtime::Target::kMegatron) == model::OptionSet{ExecutionOption::kCudaGraphs});
}

TEST_CASE("options: all plans of a choice have those that are chosen for the best") {
  const auto choices = make_choices(three(), free_model(), for_megatron(), 3);
  REQUIRE(choices);
  const model::Job& job = choices->plans.front().model.job;
  CHECK(job.cuda_graphs != model::kNoGraphs);
  for (const plan::LaunchPlan& plan : choices->plans) {
    CHECK(plan.model.job == job);
    CHECK(chosen(plan, ExecutionOption::kCudaGraphs) != nullptr);
    CHECK(full_check(plan, three(), nullptr).ok());
  }
}

TEST_CASE("options: what saves memory makes a job possible that does not fit") {
  // 0.4 GiB a GPU hold the state of the model, but not what its feed-forwards keep for the backward pass.
  const cluster::Fleet fleet =
      fleet_of_file("tests/cli/inputs/three.json", {{}, {}, {"gpu(A100-40GB-SXM).memory=10.3%"}});
  const std::string tight = "microbatch: 12\n  forbid: [recompute_full, pipeline]";
  REQUIRE_FALSE(make_plan(fleet, free_model(tight), for_megatron()));
  const plan::LaunchPlan plan = planned(fleet, free_model(tight + "\n  execution_options: any"), for_megatron());
  const plan::ChosenOption* const modules = chosen(plan, ExecutionOption::kRecomputeModules);
  REQUIRE(modules != nullptr);
  CHECK(modules->value == "mlp");
  CHECK_FALSE(modules->gain);
}

TEST_CASE("options: an old plan keeps those that it has") {
  const plan::LaunchPlan old =
      planned(three(), free_model("cuda_graphs: step\n  overlap_tp_communication: true"), for_megatron());
  const auto replanned = replan(old, three(), free_model(), for_megatron(), 0.5);
  REQUIRE(replanned);
  CHECK(replanned->fits);
  CHECK_FALSE(replanned->change);
  REQUIRE(replanned->now);
  CHECK(replanned->now->predicted.iteration == old.predicted.iteration);
}

TEST_CASE("options: a plan without is left for one with them where that gains enough") {
  const plan::LaunchPlan old = planned(three(), free_model("execution_options: as-given"), for_megatron());
  const auto replanned = replan(old, three(), free_model(), for_megatron(), 0.001);
  REQUIRE(replanned);
  CHECK(replanned->fits);
  CHECK(replanned->change);
  CHECK(replanned->next.model.job.cuda_graphs != model::kNoGraphs);
  CHECK_FALSE(replanned->next.provenance.options.empty());
}
