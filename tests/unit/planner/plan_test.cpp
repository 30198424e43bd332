// Planning with one call: what it promises about every plan, on a small fleet.
#include "tangram/planner/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "inputs.hpp"
#include "tangram/compose/target.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/simulate/simulate.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

namespace {

/// Its activations have no room on the tiny fleet unless all blocks are recomputed.
model::Model model_that_recomputes() {
  model::JobOverrides long_sequence;
  long_sequence.sequence_length = 98304;
  long_sequence.global_batch = 8;
  model::Model model = model_of_file("tests/cli/inputs/mini.yaml", long_sequence);
  model.job.allow.cp = false;
  return model;
}

}  // namespace

TEST_CASE("planner: the chosen plan is checked, simulated, and the fastest of those simulated") {
  const auto planned = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(planned);
  const plan::LaunchPlan& plan = planned->plan;
  CHECK(plan::check(plan).ok());
  CHECK(planned->candidates >= 1);
  CHECK(planned->chosen < planned->candidates);
  const simulate::Result result = simulate::simulate(simulate::schedule_of(plan));
  CHECK(plan.predicted.iteration == result.iteration);

  // The first by closed form is among the candidates: taking it alone cannot be faster.
  PlanOptions first_only;
  first_only.search.top = 1;
  const auto first = make_plan(tiny_fleet(), mini_model(), first_only);
  REQUIRE(first);
  CHECK(plan.predicted.iteration <= first->plan.predicted.iteration);
}

TEST_CASE("planner: bounds hold and name their space") {
  const auto planned = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(planned);
  const plan::PlanProvenance& p = planned->plan.provenance;
  CHECK(p.search_bound <= planned->plan.predicted.closed_form);
  CHECK(p.relaxed_bound <= p.search_bound);
  CHECK(p.search_gap >= 0);
  CHECK(p.relaxed_bound <= planned->plan.predicted.iteration);
  CHECK(p.relaxed_gap >= 0);
  CHECK(p.space.find("tangram/space-2") != std::string::npos);
  CHECK(p.inputs.size() == 2);
}

TEST_CASE("planner: forbidding a technique never makes the closed form better") {
  const auto free_plan = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(free_plan);
  REQUIRE(free_plan->plan.provenance.optimal);
  const Nanoseconds best = free_plan->plan.provenance.search_bound;
  bool model::Techniques::* const techniques[] = {&model::Techniques::tp,           &model::Techniques::dp,
                                                  &model::Techniques::zero3,        &model::Techniques::zero1,
                                                  &model::Techniques::mixed_stages, &model::Techniques::replicas,
                                                  &model::Techniques::pipeline};
  for (const auto technique : techniques) {
    model::Model restricted = mini_model();
    restricted.job.allow.*technique = false;
    const auto planned = make_plan(tiny_fleet(), restricted, {});
    if (planned) CHECK(planned->plan.predicted.closed_form >= best);
  }
}

TEST_CASE("planner: a job that does not fit says what is short") {
  model::Model huge = mini_model();
  for (int i = 0; i < 500; ++i) huge.blocks.push_back(0);
  const auto planned = make_plan(tiny_fleet(), huge, {});
  REQUIRE_FALSE(planned);
  REQUIRE_FALSE(planned.error().empty());
  CHECK(planned.error().front().kind == ErrorKind::kInfeasible);
  CHECK_FALSE(planned.error().front().message.empty());
}

TEST_CASE("planner: idle GPUs have a reason") {
  // Without mixed stages, pipelines, replicas and data parallelism one of the two types has to stand aside.
  model::Model restricted = mini_model();
  restricted.job.allow.mixed_stages = restricted.job.allow.pipeline = restricted.job.allow.replicas = false;
  const auto planned = make_plan(tiny_fleet(), restricted, {});
  REQUIRE(planned);
  REQUIRE(planned->plan.idle.size() == 1);
  CHECK(planned->plan.idle.front().gpus == 4);
  CHECK_FALSE(planned->plan.idle.front().reason.empty());
}

TEST_CASE("planner: a target's plan is what the target can run, and no faster than one without") {
  const auto generic = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(generic);
  for (const auto target : {runtime::Target::kMegatron, runtime::Target::kFlagscale, runtime::Target::kMimo}) {
    for (const bool tied : {false, true}) {
      PlanOptions options;
      options.target = target;
      model::Model model = mini_model();
      model.tied_embeddings = tied;
      const auto planned = make_plan(tiny_fleet(), model, options);
      INFO(to_string(target));
      REQUIRE(planned);
      const auto verdicts = plan::target_verdicts(planned->plan);
      CHECK(std::ranges::find(verdicts, to_string(target), &plan::TargetVerdict::target)->ok);
      if (!tied) CHECK(planned->plan.predicted.closed_form >= generic->plan.provenance.search_bound);
    }
  }
}

TEST_CASE("planner: a target's plan is timed as the runtime runs it") {
  for (const runtime::Runtime& row : runtime::runtimes()) {
    PlanOptions options;
    options.target = row.target;
    const auto planned = make_plan(tiny_fleet(), mini_model(), options);
    INFO(row.name);
    REQUIRE(planned);
    const plan::LaunchPlan& plan = planned->plan;
    CHECK(plan.runtime == row.target);
    const auto simulated =
        simulate::simulate(simulate::schedule_of(plan, row.semantics_of(planned->plan.schedule()).transfers));
    REQUIRE_FALSE(simulated.deadlock);
    CHECK(simulated.iteration == plan.predicted.iteration);
    CHECK(plan.provenance.runs_on.empty());
  }
}

TEST_CASE("planner: interleaved chunks pay the latency of their exchanges one by one") {
  const auto fleet = fleet_of_text(R"({"schema": "tangram.cluster/1", "name": "far", "nodes": [
      {"name": "h-[1-4]", "gpus": [{"type": "H100-80GB-SXM", "count": 2}],
       "network": {"bandwidth_gbit_s": 400, "latency_us": 2000}}]})");
  const auto model = model_of_text(R"({"schema": "tangram.model/1", "name": "small", "architecture": {
      "vocabulary": 32000, "hidden": 2048, "layers": 16, "heads": 16, "ffn_hidden": 5504},
      "training": {"sequence_length": 2048, "global_batch_samples": 16}})");
  PlanOptions options;
  options.target = runtime::Target::kMegatron;
  options.search.schedule = runtime::Schedule::kInterleaved;
  const auto planned = make_plan(fleet, model, options);  // which checks it
  REQUIRE(planned);
  CHECK(planned->plan.is_interleaved());
}

TEST_CASE("planner: two pipelines become one only where it has room") {
  // A pipeline on both halves of a host would be one on two hosts, and it is not within one host then.
  const auto fleet = fleet_of_text(R"({"schema": "tangram.cluster/1", "name": "two", "nodes": [
      {"name": "h-[1-2]", "gpus": [{"type": "A100-80GB-SXM", "count": 8}],
       "network": {"bandwidth_gbit_s": 800, "latency_us": 2}}]})");
  const auto model = model_of_text(R"({"schema": "tangram.model/1", "name": "small", "architecture": {
      "vocabulary": 1000, "hidden": 2048, "layers": 7, "heads": 8, "ffn_hidden": 8192},
      "training": {"sequence_length": 512, "global_batch_samples": 16}})");
  const auto planned = make_plan(fleet, model, {});
  REQUIRE(planned);
  CHECK(full_check(planned->plan, fleet, &model).ok());
}

TEST_CASE("planner: where a runtime can run none of the best plans, more are looked at") {
  // Stages of six GPUs on two hosts: no order of the hosts gives the order of the stages (FS_HOST_ORDER).
  std::string nodes;
  for (const auto& [name, type, count] :
       {std::tuple{"a", "T4", 6}, {"b", "T4", 6}, {"c", "V100-16GB-PCIe", 1}, {"d", "V100-16GB-PCIe", 1}}) {
    nodes += fmt::format(R"({}{{"name": "{}", "gpus": [{{"type": "{}", "count": {}}}],
                               "network": {{"bandwidth_gbit_s": {}, "latency_us": 10}}}})",
                         nodes.empty() ? "" : ",", name, type, count, count > 1 ? 400 : 10);
  }
  const auto fleet =
      fleet_of_text(fmt::format(R"({{"schema": "tangram.cluster/1", "name": "odd", "nodes": [{}]}})", nodes));
  const auto model = model_of_text(R"({"schema": "tangram.model/1", "name": "long", "architecture": {
      "vocabulary": 128000, "hidden": 512, "layers": 12, "heads": 8, "ffn_hidden": 2048},
      "training": {"sequence_length": 8192, "global_batch_samples": 16}})");
  PlanOptions options;
  options.target = runtime::Target::kFlagscale;
  const auto planned = make_plan(fleet, model, options);
  REQUIRE(planned);
  CHECK(planned->candidates > static_cast<std::size_t>(options.search.top));
}

TEST_CASE("planner: exchanges of experts that a model has not keep nothing from being recomputed") {
  PlanOptions options;
  options.target = runtime::Target::kMegatron;
  options.search.schedule = runtime::Schedule::kInterleaved;
  model::Model model = model_that_recomputes();
  const auto without = make_plan(tiny_fleet(), model, options);
  model.job.overlap_experts = true;
  const auto with = make_plan(tiny_fleet(), model, options);
  REQUIRE((without && with));
  CHECK(with->plan.stages.front().parts.front().strategy.policy.recompute == cost::RecomputeMode::kFull);
  CHECK(with->plan.predicted.iteration == without->plan.predicted.iteration);
}

TEST_CASE("planner: interleaved chunks are recomputed in full where nothing else has room") {
  PlanOptions options;
  options.target = runtime::Target::kMegatron;
  options.search.schedule = runtime::Schedule::kInterleaved;
  const model::Model model = model_that_recomputes();
  const auto planned = make_plan(tiny_fleet(), model, options);
  REQUIRE(planned);
  for (const plan::Stage& stage : planned->plan.stages) {
    const cost::MemoryPolicy& policy = stage.parts.front().strategy.policy;
    CHECK(policy.recompute == cost::RecomputeMode::kFull);
    CHECK(policy.recompute_layers == stage.most_chunk_blocks());
  }
}

TEST_CASE("planner: without a target chunks are interleaved where that is asked for") {
  PlanOptions options;
  options.search.schedule = runtime::Schedule::kInterleaved;
  const auto planned = make_plan(tiny_fleet(), mini_model(), options);
  REQUIRE(planned);
  const plan::LaunchPlan& plan = planned->plan;
  CHECK(plan::check(plan).ok());
  CHECK(plan.runtime == runtime::Target::kGeneric);
  CHECK(plan.is_interleaved());

  options.search.schedule.reset();
  const auto usual = make_plan(tiny_fleet(), mini_model(), options);
  REQUIRE(usual);
  CHECK_FALSE(usual->plan.is_interleaved());
}

TEST_CASE("planner: under zero bubble no plan is slower than under 1F1B, and its proofs are its own") {
  for (const std::int64_t batch : {16, 64}) {
    model::JobOverrides overrides;
    overrides.global_batch = batch;
    const model::Model model = model_of_file("tests/cli/inputs/mini.yaml", overrides);
    const auto whole = make_plan(tiny_fleet(), model, {});
    PlanOptions options;
    options.search.schedule = runtime::Schedule::kZeroBubble;
    options.search.timed = true;
    const auto planned = make_plan(tiny_fleet(), model, options);
    REQUIRE(whole);
    REQUIRE(planned);
    const plan::LaunchPlan& plan = planned->plan;
    CHECK(plan.schedule() == runtime::Schedule::kZeroBubble);
    CHECK(plan::check(plan).ok());
    CHECK(plan.predicted.iteration <= whole->plan.predicted.iteration);
    CHECK(plan.predicted.iteration <= plan.predicted.closed_form);
    const plan::PlanProvenance& p = plan.provenance;
    CHECK(p.search_bound <= plan.predicted.closed_form);
    CHECK(p.search_bound <= whole->plan.provenance.search_bound);
    CHECK(p.relaxed_bound <= p.search_bound);
    CHECK(p.relaxed_bound <= plan.predicted.iteration);
    CHECK(p.space.find("schedule: zero-bubble") != std::string::npos);
    CHECK(p.optimal == (p.search_bound == plan.predicted.closed_form));
  }
}

TEST_CASE("planner: a look at the runtimes names plans that they run, and none better than their best") {
  PlanOptions options;
  options.look_at_runtimes = true;
  const auto planned = make_plan(tiny_fleet(), mini_model(), options);
  REQUIRE(planned);
  REQUIRE(planned->plan.provenance.runs_on.size() == 2);
  for (const plan::RuntimeLook& look : planned->plan.provenance.runs_on) {
    INFO(look.runtime);
    CHECK(look.why_not.empty());
    PlanOptions own;
    own.target = *runtime::target_named(look.runtime);
    const auto best = make_plan(tiny_fleet(), mini_model(), own);
    REQUIRE(best);
    CHECK(look.iteration.as_double() >= 0.99 * best->plan.predicted.iteration.as_double());
    CHECK(look.iteration.as_double() <= 1.1 * best->plan.predicted.iteration.as_double());
  }
}

TEST_CASE("planner: a look says why a runtime can not train a model") {
  PlanOptions options;
  options.look_at_runtimes = true;
  const auto planned = make_plan(tiny_fleet(), model_of_file("configs/models/opt-350m.yaml"), options);
  REQUIRE(planned);
  const auto& looks = planned->plan.provenance.runs_on;
  const auto flagscale = std::ranges::find(looks, "flagscale", &plan::RuntimeLook::runtime);
  REQUIRE(flagscale != looks.end());
  CHECK(flagscale->iteration == Nanoseconds(0));
  CHECK_FALSE(flagscale->why_not.empty());
}

TEST_CASE("planner: FlagScale's plan has one GPU type on each host") {
  // GPUs 0 and 1 of both desks are RTX 3080, 2 and 3 RTX 4090. The plan without the 3080 is faster than that without
  // the 4090, and keeps the numbers of the 4090. What is alone on its host may be in either.
  const std::string file = "configs/clusters/rtx-mixed-hosts.json";
  const cluster::Fleet fleet = fleet_of_file(file);
  const cluster::Fleet wider = fleet_of_file(file, {{}, {"gpu=A10,nodes=1,count=2,network=10Gbit"}, {}});
  model::Model model = mini_model();
  model.job.global_batch = 512;
  PlanOptions options;
  options.target = runtime::Target::kFlagscale;
  const auto planned = make_plan(fleet, model, options);
  REQUIRE(planned);
  const plan::LaunchPlan& plan = planned->plan;
  const auto verdicts = plan::target_verdicts(plan);
  CHECK(std::ranges::find(verdicts, "flagscale", &plan::TargetVerdict::target)->ok);
  CHECK(plan::check(plan, fleet, nullptr).ok());
  CHECK(plan.ranks.size() == 4);
  for (const plan::Rank& rank : plan.ranks) {
    CHECK(plan.island(rank.island).device.name == "RTX-4090");
    CHECK(rank.gpu >= 2);
  }
  std::vector<std::vector<std::string>> types;
  for (const compose::Constraints& c :
       compose::cases_of(runtime::runtime_of(options.target), model, cluster::find_islands(wider, 0.1))) {
    types.push_back(c.gpu_types);
  }
  CHECK(types == std::vector<std::vector<std::string>>{{"A10", "RTX-3080"}, {"A10", "RTX-4090"}});
}

TEST_CASE("planner: a model that a target cannot train is refused as that") {
  const model::Model model = model_of_file("configs/models/opt-350m.yaml");
  PlanOptions options;
  options.target = runtime::Target::kFlagscale;
  const auto planned = make_plan(tiny_fleet(), model, options);
  REQUIRE_FALSE(planned);
  for (const Diagnostic& d : planned.error()) {
    CHECK(d.message.starts_with("flagscale cannot train this model, which breaks the rule FS_MODEL_"));
    CHECK(d.kind == ErrorKind::kInfeasible);
  }
}

TEST_CASE("planner: the time of a plan is made where it is asked for, by every objective") {
  // With four microbatches: its closed form is an eighth longer.
  const cluster::Fleet fleet = fleet_of_file("configs/clusters/a100-l40s.json");
  const model::Model model = model_of_file("configs/models/gpt-6.7b.yaml");
  PlanOptions options;
  options.search.label_budget = 200'000;
  const auto fastest = make_plan(fleet, model, options);
  REQUIRE(fastest);
  options.request.longest_iteration = fastest->plan.predicted.iteration;
  for (const auto& [name, objective] : objective::objective_names()) {
    INFO(name);
    options.request.objective = objective;
    const auto wanted = make_plan(fleet, model, options);
    REQUIRE(wanted);
    CHECK(wanted->plan.predicted.iteration == fastest->plan.predicted.iteration);  // no faster: it is the fastest
  }
}

TEST_CASE("planner: money needs prices, and the usual options are those of the program") {
  cluster::Fleet fleet = tiny_fleet();
  CHECK(check_prices({.objective = objective::Objective::kCost}, fleet));
  for (cluster::Node& node : fleet.nodes) {
    for (cluster::DeviceGroup& group : node.groups) group.device.price_per_hour = Dollars(0);
  }
  PlanOptions options = usual_options(fleet, mini_model());
  CHECK(options.pipelines == Pipelines::kAuto);
  CHECK(options.search.label_budget == compose::usual_label_budget(8));  // eight GPUs, twelve layers
  options.request.objective = objective::Objective::kCost;
  const auto planned = make_plan(fleet, mini_model(), options);
  REQUIRE_FALSE(planned);
  CHECK(planned.error().front().kind == ErrorKind::kInput);
  CHECK(planned.error().front().message == "no price is known of Big, Small");
  CHECK(check_prices({}, fleet));

  // Deep models have as many more labels: 512 layers are twice the usual depth, a fourth of the labels.
  model::Model deep = mini_model();
  deep.blocks.assign(512, 0);
  CHECK(usual_options(fleet, deep).search.label_budget == compose::usual_label_budget(8) / 4);
}

TEST_CASE("planner: a plan's job has the loss of its runtime, and needs less memory for it") {
  const auto planned_for = [](runtime::Target target) {
    PlanOptions options;
    options.target = target;
    auto planned = make_plan(tiny_fleet(), mini_model(), options);
    REQUIRE(planned);
    return std::move(planned->plan);
  };
  plan::LaunchPlan megatron = planned_for(runtime::Target::kMegatron);
  CHECK(megatron.model.job.in_place_loss);
  CHECK_FALSE(planned_for(runtime::Target::kGeneric).model.job.in_place_loss);
  CHECK(plan::check(megatron, tiny_fleet(), &megatron.model).ok());
  megatron.model.job.in_place_loss = false;
  CHECK_FALSE(plan::check(megatron).ok());  // 12 bytes a logit, not 6
}
