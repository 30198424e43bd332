// Execution options that the planner chooses, against every combination of their values, each planned by itself.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/property.hpp"
#include "tangram/cluster/fleet.hpp"
#include "tangram/model/model.hpp"
#include "tangram/planner/checked_plan.hpp"
#include "tangram/planner/plan.hpp"

using namespace tangram;
using namespace tangram::planner;

namespace {

std::string random_node(int number) {
  const std::string type =
      *rc::gen::element<std::string>("A100-40GB-SXM", "V100-16GB-SXM", "T4", "RTX-3090", "H100-80GB-SXM");
  const int count = *rc::gen::element(1, 2, 4, 4);
  const int network = *rc::gen::element(10, 25, 100);
  return fmt::format(R"({{"name": "n{}", "gpus": [{{"type": "{}", "count": {}}}],
                         "network": {{"bandwidth_gbit_s": {}, "latency_us": 5}}}})",
                     number, type, count, network);
}

/// Up to 16 GPUs, with less memory than they have: jobs as small as those tried here fill it.
cluster::Fleet random_fleet() {
  std::vector<std::string> nodes;
  const int count = *rc::gen::inRange(1, 5);
  for (int i = 0; i < count; ++i) nodes.push_back(random_node(i));
  auto fleet = cluster::read_fleet(
      fmt::format(R"({{"schema": "tangram.cluster/1", "name": "random", "nodes": [{}]}})", fmt::join(nodes, ", ")),
      "random.json");
  RC_ASSERT(fleet.has_value());
  const double memory = *rc::gen::element(0.25, 0.35, 0.5, 1.0);
  for (cluster::Node& node : fleet->nodes) {
    for (cluster::DeviceGroup& group : node.groups) {
      group.device.memory = Bytes(static_cast<std::int64_t>(group.device.memory.as_double() * memory));
    }
  }
  return *std::move(fleet);
}

std::string random_feed_forward(bool experts) {
  if (!experts) return fmt::format("ffn_hidden: {}", *rc::gen::element(4096, 8192));
  return fmt::format("moe: {{ experts: {}, experts_per_token: 2, expert_hidden: {} }}", *rc::gen::element(4, 8),
                     *rc::gen::element(1024, 2048));
}

/// All options that need nothing but flags are free in it.
model::Model random_model(bool experts) {
  const std::string text = fmt::format(
      R"(schema: tangram.model/1
name: random
architecture:
  vocabulary: {}
  hidden: {}
  layers: {}
  heads: 16
  {}
training:
  sequence_length: {}
  global_batch_samples: {}
  dropout: {}
  execution_options: any
  forbid: [{}]
)",
      *rc::gen::element(8192, 32768), *rc::gen::element(1024, 2048), *rc::gen::inRange(2, 7),
      random_feed_forward(experts), *rc::gen::element(512, 1024, 2048), *rc::gen::element(4, 8, 16, 32),
      *rc::gen::element("true", "false"), *rc::gen::element("cp", "recompute_full", "cp, recompute_full, pipeline"));
  auto model = model::read_model(text, "random.yaml");
  RC_ASSERT(model.has_value());
  return *std::move(model);
}

PlanOptions options_of_search() {
  PlanOptions options;
  options.target = runtime::Target::kMegatron;
  options.search.label_budget = 200'000;
  return options;
}

/// The model with each set of modules that selective recompute may work out again.
std::vector<model::Model> with_modules(const model::Model& model) {
  std::vector<model::Model> models;
  for (std::uint32_t bits = 1; bits < 1U << model::kRecomputeModuleNames.size(); ++bits) {
    model::Model other = model;
    other.job.recompute_modules.bits = bits;
    if (model::recomputed_modules(other) != other.job.recompute_modules) continue;  // of what the model has not
    models.push_back(std::move(other));
  }
  return models;
}

template <class Value>
std::vector<model::Model> with_values(const std::vector<model::Model>& models, Value model::Job::* member,
                                      std::initializer_list<Value> values) {
  std::vector<model::Model> all;
  for (const model::Model& model : models) {
    for (const Value value : values) {
      all.push_back(model);
      all.back().job.*member = value;
    }
  }
  return all;
}

std::vector<model::Model> all_combinations(model::Model model) {
  const bool experts = model.has_experts();
  model.job.free_options = {};
  using model::CudaGraphs;
  using model::Job;
  std::vector<model::Model> models = with_modules(model);
  models = with_values(models, &Job::cuda_graphs, {model::kNoGraphs, model::kGraphsOfBlocks, model::kGraphOfStep});
  // What is hidden beside passes takes nothing from them: none or all of it.
  if (experts) models = with_values(models, &Job::overlap_experts, {false, true});
  models = with_values(models, &Job::overlap_gather, {false, true});
  using enum model::ContextExchange;
  if (model.job.allow.cp) models = with_values(models, &Job::context_exchange, {kRing, kAllGather, kAllToAll});
  for (model::Model& each : models) each.job.overlap_tp = each.job.overlap_gather;
  return models;
}

/// nullopt: no plan.
std::optional<Nanoseconds> time_of(const cluster::Fleet& fleet, const model::Model& model, const PlanOptions& options) {
  const auto planned = make_plan(fleet, model, options);
  return planned ? std::optional(planned->plan.predicted.iteration) : std::nullopt;
}

std::optional<Nanoseconds> best_combination(const cluster::Fleet& fleet, const model::Model& model,
                                            const PlanOptions& options) {
  std::optional<Nanoseconds> best;
  for (const model::Model& each : all_combinations(model)) {
    const auto time = time_of(fleet, each, options);
    if (time) best = std::min(best.value_or(Nanoseconds::max()), *time);
  }
  return best;
}

}  // namespace

TEST_CASE("options: those that are chosen are as good as the best of all combinations, and no worse than none") {
  testing::holds(12, [] {
    const cluster::Fleet fleet = random_fleet();
    const model::Model model = random_model(*rc::gen::arbitrary<bool>());
    const PlanOptions options = options_of_search();
    const auto best = best_combination(fleet, model, options);
    const auto planned = make_plan(fleet, model, options);
    RC_ASSERT(planned.has_value() == best.has_value());
    if (!planned) return;
    const auto given = time_of(fleet, model::settled(model, model.job), options);
    const Nanoseconds time = planned->plan.predicted.iteration;
    // What gains less than a thousandth is nothing.
    RC_ASSERT(time.as_double() <= best->as_double() * 1.001);
    RC_ASSERT(!given || time <= *given);
    RC_ASSERT(full_check(planned->plan, fleet, &model).ok());
    RC_ASSERT(planned->plan.model.job.free_options.empty());
  });
}
