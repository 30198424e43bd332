#include "toy_fleet.hpp"

#include <algorithm>
#include <cmath>

#include "support/random.hpp"
#include "tangram/base/at.hpp"
#include "tangram/multimodal/closed_form.hpp"

namespace tangram::tests {

namespace {

using multimodal::Choice;
using multimodal::EncoderLayout;
using multimodal::Price;
using multimodal::SharedPipeline;
using multimodal::Stage;
using multimodal::StageGraph;
using testing::pick;

constexpr std::array<int, 2> kTensor{1, 2};
constexpr std::array<double, 2> kTensorYield{1.0, 0.9};
constexpr std::array<int, 3> kReplicas{1, 2, 4};

double draw(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// A stage of so many blocks.
struct ToyStage {
  int blocks = 0;
  int gpu_class = 0;
  int tensor = 0;  // by number in kTensor
};
using ToyChain = std::vector<ToyStage>;

void extend(const ToyModule& module, int left, ToyChain& chain, std::vector<ToyChain>& all) {
  if (left == 0) return all.push_back(chain);
  if (static_cast<int>(chain.size()) == module.most_stages) return;
  for (int blocks = 1; blocks <= left; ++blocks) {
    for (int c = 0; c < 2; ++c) {
      for (int tensor = 0; tensor < 2; ++tensor) {
        chain.push_back({blocks, c, tensor});
        extend(module, left - blocks, chain, all);
        chain.pop_back();
      }
    }
  }
}

std::vector<ToyChain> chains_of(const ToyModule& module) {
  std::vector<ToyChain> all;
  ToyChain chain;
  extend(module, module.blocks, chain, all);
  return all;
}

// Rounded up, so that no sum is below what work and speed say.
std::int64_t forward_of(const ToyModule& module, const ToyStage& stage, int samples) {
  const double speed = at(module.speed, stage.gpu_class) * at(kTensor, stage.tensor) * at(kTensorYield, stage.tensor);
  return static_cast<std::int64_t>(std::ceil(module.work * stage.blocks * samples / speed));
}

std::int64_t sync_of(const ToyFleet& fleet, const ToyModule& module, int blocks, int replicas) {
  return replicas > 1 && !module.frozen ? std::llround(fleet.sync * module.work * blocks) : 0;
}

double states_of(const ToyModule& module, const ToyStage& stage) {
  return module.parameters * stage.blocks / at(kTensor, stage.tensor);
}
double activations_of(const ToyModule& module, const ToyStage& stage, int samples) {
  return module.activations * stage.blocks * samples / at(kTensor, stage.tensor);
}

Stage stage_of(const ToyFleet& fleet, const ToyModule& module, const ToyStage& own, int samples, int replicas) {
  Stage stage;
  stage.plan.F = forward_of(module, own, samples);
  stage.plan.T = module.passes() * stage.plan.F;
  stage.prefetch = module.frozen ? 2 : 0;
  stage.plan.A = stage.plan.T + sync_of(fleet, module, own.blocks, replicas);
  stage.plan.o = fleet.step;
  const double free = at(fleet.memory, own.gpu_class) - states_of(module, own);
  stage.plan.n_max = static_cast<std::int64_t>(std::floor(free / activations_of(module, own, samples)));
  return stage;
}

std::vector<int> units_of(const ToyChain& chain, int replicas) {
  std::vector<int> units(2, 0);
  for (const ToyStage& stage : chain) at(units, stage.gpu_class) += replicas * at(kTensor, stage.tensor);
  return units;
}

bool has_units(const ToyFleet& fleet, const std::vector<int>& units) {
  return units[0] <= fleet.gpus[0] && units[1] <= fleet.gpus[1];
}

// None where a stage does not hold one microbatch, or the units do not suffice.
std::optional<Choice> choice_of(const ToyFleet& fleet, const ToyModule& module, const ToyChain& chain, int samples,
                                int replicas) {
  Choice choice;
  choice.units = units_of(chain, replicas);
  if (!has_units(fleet, choice.units)) return std::nullopt;
  for (const ToyStage& own : chain) {
    choice.stages.push_back(stage_of(fleet, module, own, samples, replicas));
    if (choice.stages.back().plan.n_max < 1) return std::nullopt;
  }
  choice.hops.assign(chain.size() - 1, Price{fleet.latency, fleet.latency / 2});
  return choice;
}

bool divide(int a, int b) { return a % b == 0 || b % a == 0; }

ToyModule random_module(std::mt19937_64& random, int least_blocks, int most_blocks, double scale) {
  ToyModule module;
  module.blocks = pick(random, least_blocks, most_blocks);
  module.work = 1e6 * scale * draw(random, 0.6, 1.4);
  module.parameters = draw(random, 3, 6) * scale;
  module.activations = draw(random, 0.5, 1.5) * scale;
  module.speed = {1, draw(random, 0.4, 1)};
  return module;
}

// GPUs of a chain, and what the slowest of their classes takes for an encoder's passes.
std::vector<EncoderLayout> layouts_of(const ToyFleet& fleet, const ToyModule& encoder, const std::vector<int>& units,
                                      int replicas) {
  std::vector<EncoderLayout> layouts;
  for (int tensor = 0; tensor < 2; ++tensor) {
    const int gpus = units[0] + units[1];
    const int lanes = gpus / at(kTensor, tensor);
    if (gpus % at(kTensor, tensor) != 0 || !divide(lanes, replicas) || kToyBatch % lanes != 0) continue;
    EncoderLayout layout;
    for (int c = 0; c < 2; ++c) {
      if (at(units, c) == 0) continue;
      const std::int64_t forward = forward_of(encoder, {encoder.blocks, c, tensor}, kToyBatch / lanes);
      layout.forward = std::max(layout.forward, forward);
    }
    layout.backward = (encoder.passes() - 1) * layout.forward;
    layout.sync = sync_of(fleet, encoder, encoder.blocks, lanes);
    layout.step = fleet.step;
    const ToyStage all{encoder.blocks, 0, tensor};
    layout.reserve = std::llround(1000 * (states_of(encoder, all) + activations_of(encoder, all, kToyBatch / lanes)));
    layouts.push_back(layout);
  }
  return layouts;
}

}  // namespace

ToyFleet random_fleet(std::mt19937_64& random, int encoders) {
  ToyFleet fleet;
  fleet.gpus = {2 * pick(random, 2, 4), 2 * pick(random, 2, 4)};
  fleet.memory = {draw(random, 40, 60), draw(random, 20, 40)};
  for (int e = 0; e < encoders; ++e) {
    fleet.encoders.push_back(random_module(random, 1, encoders == 1 ? 3 : 2, draw(random, 0.2, 0.8)));
    fleet.encoders.back().most_stages = 2;
    fleet.encoders.back().frozen = pick(random, 1, 4) == 1;
  }
  fleet.language = random_module(random, 3, encoders == 1 ? 4 : 3, 1);
  fleet.language.most_stages = 3;
  fleet.sync = draw(random, 0, 0.3);
  fleet.step = 50'000;
  fleet.latency = pick(random, 0, 1) == 0 ? 0 : std::llround(draw(random, 0, 1e6));
  fleet.graph_warmup = pick(random, 0, 2) == 0;
  return fleet;
}

std::vector<ToyBatch> toy_batches() {
  std::vector<ToyBatch> batches;
  for (const int replicas : kReplicas) {
    for (const int samples : {1, 2}) batches.push_back({replicas, samples, kToyBatch / (replicas * samples)});
  }
  return batches;
}

multimodal::JoinProblem disjoint_problem(const ToyFleet& fleet, const ToyBatch& batch) {
  multimodal::JoinProblem problem;
  problem.microbatches = batch.microbatches;
  problem.inventory = fleet.gpus;
  problem.graph_warmup = fleet.graph_warmup;
  for (const ToyChain& chain : chains_of(fleet.language)) {
    const auto choice = choice_of(fleet, fleet.language, chain, batch.samples, batch.replicas);
    if (choice) problem.language.push_back(*choice);
  }
  const int samples = batch.replicas * batch.samples;
  for (const ToyModule& module : fleet.encoders) {
    multimodal::Encoder& encoder = problem.encoders.emplace_back();
    encoder.boundary.assign(1, 1, {fleet.latency, fleet.latency / 2});
    for (const int replicas : kReplicas) {
      if (!divide(replicas, batch.replicas) || samples % replicas != 0) continue;
      for (const ToyChain& chain : chains_of(module)) {
        const auto choice = choice_of(fleet, module, chain, samples / replicas, replicas);
        if (choice) encoder.choices.push_back(*choice);
      }
    }
  }
  return problem;
}

multimodal::ShareProblem colocated_problem(const ToyFleet& fleet, const ToyBatch& batch) {
  multimodal::ShareProblem problem;
  problem.microbatches = batch.microbatches;
  problem.graph_warmup = true;
  std::vector<std::vector<int>> allocations;
  for (const ToyChain& chain : chains_of(fleet.language)) {
    const auto choice = choice_of(fleet, fleet.language, chain, batch.samples, batch.replicas);
    if (!choice) continue;
    SharedPipeline& pipeline = problem.language.emplace_back();
    pipeline.stages = choice->stages;
    pipeline.hops = choice->hops;
    for (std::size_t s = 0; s < chain.size(); ++s) {
      Stage& stage = pipeline.stages[s];
      pipeline.sync = std::max(pipeline.sync, stage.plan.A - stage.plan.T);
      stage.plan.A = stage.plan.T;
      const double free = at(fleet.memory, chain[s].gpu_class) - states_of(fleet.language, chain[s]);
      pipeline.memory.push_back({static_cast<std::int64_t>(1000 * free),
                                 std::llround(1000 * activations_of(fleet.language, chain[s], batch.samples))});
    }
    const auto known = std::ranges::find(allocations, choice->units);
    pipeline.allocation = static_cast<int>(known - allocations.begin());
    if (known == allocations.end()) allocations.push_back(choice->units);
  }
  problem.layouts.assign(fleet.encoders.size(), allocations.size(), {});
  for (std::size_t e = 0; e < fleet.encoders.size(); ++e) {
    for (std::size_t a = 0; a < allocations.size(); ++a) {
      problem.layouts(e, a) = layouts_of(fleet, fleet.encoders[e], allocations[a], batch.replicas);
    }
  }
  return problem;
}

multimodal::FleetWork work_of(const ToyFleet& fleet) {
  multimodal::FleetWork work;
  work.gpus = {static_cast<double>(fleet.gpus[0]), static_cast<double>(fleet.gpus[1])};
  work.gpu_time.assign(0, 2, 0);
  const auto add = [&](const ToyModule& module) {
    work.amount.push_back(static_cast<double>(module.blocks) * kToyBatch);
    work.gpu_time.add_row(
        std::array{module.passes() * module.work / module.speed[0], module.passes() * module.work / module.speed[1]});
  };
  for (const ToyModule& module : fleet.encoders) add(module);
  add(fleet.language);
  return work;
}

std::optional<std::int64_t> fastest_homogeneous(const ToyFleet& fleet, const ToyBatch& batch) {
  std::optional<std::int64_t> best;
  for (const ToyChain& chain : chains_of(fleet.language)) {
    if (!has_units(fleet, units_of(chain, batch.replicas))) continue;
    StageGraph graph;
    graph.microbatches = batch.microbatches;
    graph.graph_warmup = fleet.graph_warmup;
    for (const ToyStage& own : chain) {
      graph.stages.push_back(stage_of(fleet, fleet.language, own, batch.samples, batch.replicas));
      const int number = static_cast<int>(graph.stages.size()) - 1;
      if (number > 0) graph.edges.push_back({number - 1, number, {fleet.latency, fleet.latency / 2}});
    }
    multimodal::Candidate& first = graph.stages.front().plan;
    double states = states_of(fleet.language, chain.front());
    double activations = activations_of(fleet.language, chain.front(), batch.samples);
    for (const ToyModule& encoder : fleet.encoders) {
      const ToyStage own{encoder.blocks, chain.front().gpu_class, chain.front().tensor};
      const std::int64_t forward = forward_of(encoder, own, batch.samples);
      first.F += forward;
      first.T += encoder.passes() * forward;
      first.A += encoder.passes() * forward + sync_of(fleet, encoder, encoder.blocks, batch.replicas);
      states += states_of(encoder, own);
      activations += activations_of(encoder, own, batch.samples);
    }
    first.n_max =
        static_cast<std::int64_t>(std::floor((at(fleet.memory, chain.front().gpu_class) - states) / activations));
    const auto form = closed_form(graph);
    if (form && (!best || form->time < *best)) best = form->time;
  }
  return best;
}

}  // namespace tangram::tests
