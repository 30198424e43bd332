// Statements about every plan of any structure: it computes what one process computes, and a mistake in it is found.
#include "tangram/execute/verify.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "property/execute/computes.hpp"
#include "support/property.hpp"
#include "unit/execute/tiny_plan.hpp"
#include "unit/execute/verified.hpp"

using namespace tangram;
using namespace tangram::execute;
using namespace tangram::execute::tiny;

namespace {

int pick(int low, int high) { return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1)); }

template <class T>
T any_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(pick(0, static_cast<int>(values.size()) - 1))];
}

std::vector<int> divisors(int number, int most) {
  std::vector<int> result;
  for (int d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) result.push_back(d);
  }
  return result;
}

char random_type() {
  return any_of(std::vector<char>{'d', 'g', 'm', 's', 'l', 'p', 'w', 'k', 'M', 'D', 'a', 'q', 'f'});
}

/// Up to two encoder blocks, then up to four of any other kind.
std::string random_types() {
  std::string types(static_cast<std::size_t>(pick(0, 3) == 0 ? pick(1, 2) : 0), 'e');
  const int blocks = pick(1, 4);
  for (int b = 0; b < blocks; ++b) types += random_type();
  return types;
}

bool shards_blocks(const cost::MemoryPolicy& policy, int blocks) {
  const auto runs = cost::runs_of(policy, blocks);
  return std::ranges::any_of(runs, [](const cost::BlockRun& run) { return run.policy.zero > 0; });
}

PartSpec random_part(int samples, int blocks) {
  PartSpec part;
  part.samples = samples;
  cost::Degrees& d = part.degrees;
  d.tp = any_of(std::vector<int>{1, 1, 2, 4});
  d.cp = any_of(std::vector<int>{1, 1, 2, 3});
  d.dp = pick(1, std::min(samples, 4));
  d.sequence_parallel = d.tp > 1 && pick(0, 1) == 1;
  d.ep = any_of(divisors(std::gcd(d.gpus(), 12), 6));
  d.etp = any_of(divisors(std::gcd(d.gpus() / d.ep, 8), 4));
  part.policy.zero = pick(0, 3);
  part.policy.recompute =
      any_of(std::vector{cost::RecomputeMode::kNone, cost::RecomputeMode::kSelective, cost::RecomputeMode::kFull});
  if (part.policy.recompute == cost::RecomputeMode::kFull) part.policy.recompute_layers = pick(1, blocks);
  if (pick(0, 3) == 0) {  // a mixture
    std::vector<cost::BlockRun> runs;
    for (int b = 0; b < blocks; ++b) {
      runs.push_back({1,
                      {pick(0, 3), any_of(std::vector{cost::RecomputeMode::kNone, cost::RecomputeMode::kSelective,
                                                      cost::RecomputeMode::kFull})}});
    }
    part.policy = cost::policy_of_runs(part.policy.zero, runs);
  }
  if (shards_blocks(part.policy, blocks) && pick(0, 1) == 1) {
    std::vector<int> groups = divisors(d.dp, d.dp);
    std::erase_if(groups, [&](int count) { return d.edp() % count != 0; });
    d.dp_replicate = any_of(groups);
  }
  return part;
}

StageSpec random_stage(int first, int last, int microbatch) {
  StageSpec stage{last, {}, 0};
  int left = microbatch;
  if (left > 1 && pick(0, 3) == 0) {
    const int share = pick(1, left - 1);
    stage.parts.push_back(random_part(share, last - first));
    left -= share;
  }
  stage.parts.push_back(random_part(left, last - first));
  return stage;
}

PipelineSpec random_pipeline(int blocks) {
  PipelineSpec pipeline;
  const int microbatch = any_of(std::vector<int>{1, 2, 3, 4, 6, 7});
  pipeline.microbatch = microbatch;
  pipeline.microbatches = pick(1, 6);
  if (pipeline.microbatches > 1 && pick(0, 1) == 1) pipeline.missing = pick(0, microbatch - 1);
  const int stages = pick(1, std::min(blocks, 4));
  int first = 0;
  for (int s = 0; s < stages; ++s) {
    const int last = s + 1 == stages ? blocks : pick(first + 1, blocks - (stages - 1 - s));
    pipeline.stages.push_back(random_stage(first, last, microbatch));
    first = last;
  }
  // More in flight the earlier the stage, as before slow links.
  std::int64_t extra = 0;
  for (std::size_t s = pipeline.stages.size(); s-- > 0;) pipeline.stages[s].extra = extra += pick(0, 3) == 0 ? 1 : 0;
  return pipeline;
}

/// Every cp of the plan by the same factor: what the sequence may be shortened by. Samples become longer too, so that
/// no shard is empty.
void widen_context(model::Model& model, std::vector<PipelineSpec>& pipelines, int factor) {
  for (PipelineSpec& pipeline : pipelines) {
    for (StageSpec& stage : pipeline.stages) {
      for (PartSpec& part : stage.parts) part.degrees.cp *= factor;
    }
  }
  const int longer = factor == 1 ? 1 : 16;
  for (model::BlockType& type : model.types) type.tokens *= longer;
  model.job.sequence_length *= longer;
}

plan::LaunchPlan random_plan() {
  const std::string types = random_types();
  model::Model model = make_model(types, pick(0, 1) == 1);
  std::vector<PipelineSpec> pipelines;
  const int count = any_of(std::vector<int>{1, 1, 1, 2, 3});
  for (int p = 0; p < count; ++p) pipelines.push_back(random_pipeline(static_cast<int>(types.size())));
  widen_context(model, pipelines, any_of(std::vector<int>{1, 1, 1, 2, 3, 4}));
  return make_plan(std::move(model), pipelines);
}

/// Beside any of the matrices; as it was where nothing would be trained then.
model::Model randomly_adapted(const model::Model& model) {
  model::AdapterTargets targets;
  for (const auto& [name, target] : model::kAdapterTargets) {
    if (pick(0, 1) == 1) targets.add(target);
  }
  model::Model adapted = model;
  set_adapters(adapted, {4, 4, targets});
  return adapted.trained_parameters() > 0 ? adapted : model;
}

plan::LaunchPlan random_adapted_plan() {
  plan::LaunchPlan plan = random_plan();
  plan.model = randomly_adapted(plan.model);
  return plan;
}

/// Ranks of cp exchange positions for heads, of which there are enough; keys and values of as many, or one for all.
plan::LaunchPlan random_head_exchange() {
  plan::LaunchPlan plan = random_plan();
  int ranks = 1;
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      ranks = std::lcm(ranks, part.strategy.degrees.tp * part.strategy.degrees.cp);
    }
  }
  plan.model.job.context_exchange = model::ContextExchange::kAllToAll;
  for (model::BlockType& type : plan.model.types) {
    if (!type.attends()) continue;
    type.attention.heads = 2 * ranks;
    type.attention.kv_heads = any_of(std::vector<int>{1, ranks, 2 * ranks});
  }
  return plan;
}

/// One or two pipelines of stages with two or three chunks each, in groups that Megatron-LM takes.
plan::LaunchPlan random_interleaved_plan() {
  const int stages = pick(2, 3);
  const int chunks = pick(2, 3);
  const int group = pick(stages, stages + 2);
  const int rest = pick(0, 1) == 0 ? 0 : pick(stages, group) % group;
  std::string types;
  for (int b = stages * chunks + pick(0, 2); b > 0; --b) {
    types += random_type();
  }
  std::vector<PipelineSpec> pipelines;
  const int microbatch = any_of(std::vector<int>{1, 2, 3, 4});
  for (int p = pick(0, 3) == 0 ? 2 : 1; p > 0; --p) {
    PipelineSpec pipeline;
    pipeline.microbatch = microbatch;
    pipeline.microbatches = group * pick(1, 3) + rest;
    pipeline.missing = pick(0, 1) == 1 ? pick(0, microbatch - 1) : 0;
    for (int s = 0; s < stages; ++s) {
      const int last = s + 1 == stages ? static_cast<int>(types.size()) : s + 1;
      pipeline.stages.push_back(random_stage(s, s + 1, microbatch));
      pipeline.stages.back().last = last;
      for (PartSpec& part : pipeline.stages.back().parts) part.policy.runs.clear();
    }
    pipelines.push_back(std::move(pipeline));
  }
  return interleaved(make_plan(make_model(types, pick(0, 1) == 1), pipelines), chunks, group);
}

/// Of stages that put off weight gradients of some microbatches.
plan::LaunchPlan zero_bubble(plan::LaunchPlan plan) {
  plan.zero_bubble = true;
  for (plan::Stage& stage : plan.stages) {
    stage.put_off = pick(0, 3);
    for (plan::Part& part : stage.parts) part.predicted.weight_gradient = Nanoseconds(1);
  }
  return plan;
}

/// One pipeline of single ranks: what of its gradients is missing is missing everywhere.
plan::LaunchPlan small_zero_bubble_plan() {
  const PartSpec one{{}, 2};
  return zero_bubble(make_plan(make_model("dmlg"), {{2, pick(2, 5), {{2, {one}}, {4, {one}}}}}));
}

/// One stage that ZeRO shards inside two groups.
plan::LaunchPlan small_grouped_plan() {
  const PartSpec part{{.dp = 4, .ep = pick(1, 2), .dp_replicate = 2}, 4, {pick(1, 3), cost::RecomputeMode::kNone, 0}};
  return make_plan(make_model("dm"), {{4, pick(1, 3), {{2, {part}}}}});
}

}  // namespace

TEST_CASE("six hundred plans of any structure compute what one process computes") {
  testing::holds(600, [] { computes_as_one_process(random_plan()); });
}

TEST_CASE("two hundred plans with adapters compute what one process computes") {
  testing::holds(200, [] { computes_as_one_process(random_adapted_plan()); });
}

TEST_CASE("two hundred plans that exchange heads for positions compute what one process computes") {
  testing::holds(200, [] { computes_as_one_process(random_head_exchange()); });
}

TEST_CASE("two hundred plans that put weight gradients off compute what one process computes") {
  testing::holds(200, [] { computes_as_one_process(zero_bubble(random_plan())); });
}

TEST_CASE("two hundred plans of interleaved chunks compute what one process computes") {
  testing::holds(200, [] { computes_as_one_process(random_interleaved_plan()); });
}

TEST_CASE("every mistake that a plan can take is found in it, under the mistake's name") {
  std::map<std::string_view, int> acted;
  testing::holds(100, [&acted] {
    const plan::LaunchPlan plan = random_plan();
    const plan::LaunchPlan with_chunks = random_interleaved_plan();
    for (const FaultName& fault : fault_names()) {
      if (fault.fault >= Fault::kEncoderScale) continue;  // of colocated encoders
      VerifyOptions options;
      options.fault = fault.fault;
      auto report = verify(plan, options);
      if (!report) report = verify(with_chunks, options);
      if (!report) report = verify(small_zero_bubble_plan(), options);
      if (!report) report = verify(small_grouped_plan(), options);
      if (!report) continue;  // nothing to act on
      ++acted[fault.name];
      RC_LOG() << fault.name << "\n" << listing(*report);
      RC_ASSERT(std::ranges::any_of(report->findings, [&](const Finding& f) { return f.code == fault.code; }));
    }
  });
  for (const FaultName& fault : fault_names()) {
    if (fault.fault < Fault::kEncoderScale) CHECK(acted[fault.name] >= testing::enough(50));
  }
}

TEST_CASE("warm-ups of any length run to their end or are called a deadlock, and both judges agree") {
  testing::holds(200, [] {
    plan::LaunchPlan plan = random_plan();
    for (plan::Stage& stage : plan.stages) stage.warmup = pick(0, 5);
    VerifyOptions unchecked;
    unchecked.check_structure = false;
    const auto report = verify(plan, unchecked);
    RC_ASSERT(report.has_value());
    const auto deadlocks = std::ranges::count(report->findings, "deadlock", &Finding::code);
    // By the graph, once for each pipeline that is stuck; and by the ranks themselves, once.
    RC_ASSERT(report->executed == (deadlocks == 0));
    RC_ASSERT(deadlocks != 1);
  });
}
