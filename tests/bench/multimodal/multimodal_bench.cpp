// Time of closed forms, timetables and joins of modules.
#include <benchmark/benchmark.h>

#include <array>
#include <random>

#include "tangram/multimodal/closed_form.hpp"
#include "tangram/multimodal/join.hpp"
#include "tangram/multimodal/timetable.hpp"
#include "tangram/multimodal/uneven.hpp"
#include "tangram/multimodal/work_bound.hpp"

using namespace tangram;
using namespace tangram::multimodal;

namespace {

constexpr std::int64_t kForward = 10'000'000;  // of a stage, ns
constexpr std::int64_t kLatency = 500'000;
constexpr int kClasses = 4;

Stage stage_of(std::int64_t forward, std::int64_t n_max) {
  return {{.T = 3 * forward, .F = forward, .A = 4 * forward, .o = kForward, .n_max = n_max}};
}

// Two encoders of one stage in front of so many stages.
StageGraph graph_of(std::int64_t stages, std::int64_t microbatches) {
  StageGraph graph;
  graph.microbatches = microbatches;
  for (int e = 0; e < 2; ++e) {
    graph.stages.push_back(stage_of(kForward / 2, stages + 4));
    graph.edges.push_back({e, 2, {kLatency, kLatency / 2}});
  }
  for (int s = 0; s < stages; ++s) {
    graph.stages.push_back(stage_of(kForward, stages - s + 2));
    if (s > 0) graph.edges.push_back({s + 1, s + 2, {kLatency, kLatency / 2}});
  }
  return graph;
}

void form_of_graph(benchmark::State& state) {
  const StageGraph graph = graph_of(state.range(0), state.range(1));
  std::optional<ClosedForm> form;
  for (auto _ : state) benchmark::DoNotOptimize(form = closed_form(graph));
  if (!form) state.SkipWithError("no closed form");
}

void timetable_of_graph(benchmark::State& state) {
  const StageGraph graph = graph_of(state.range(0), state.range(1));
  const auto form = closed_form(graph);
  std::optional<std::int64_t> time;
  for (auto _ : state) benchmark::DoNotOptimize(time = timetable(graph, form->in_flight));
  if (!time || *time > form->time) state.SkipWithError("no timetable, or one above the closed form");
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"stages", "microbatches"})->Args({4, 32})->Args({16, 256})->Args({64, 1024});
}
BENCHMARK(form_of_graph)->Apply(sizes)->Unit(benchmark::kMicrosecond);
BENCHMARK(timetable_of_graph)->Apply(sizes)->Unit(benchmark::kMicrosecond);

// Chains of up to so many stages on units of any class, each as fast as its units are.
std::vector<Choice> choices_of(std::mt19937_64& random, std::int64_t count, int most_stages, std::int64_t work) {
  constexpr std::array<double, kClasses> kSpeed{1, 0.8, 0.4, 0.3};
  std::uniform_int_distribution<int> stages(1, most_stages);
  std::uniform_int_distribution<int> any_class(0, kClasses - 1);
  std::uniform_int_distribution<int> doublings(0, 3);
  std::vector<Choice> choices;
  for (std::int64_t i = 0; i < count; ++i) {
    Choice& choice = choices.emplace_back();
    choice.units.assign(kClasses, 0);
    const int length = stages(random);
    for (int s = 0; s < length; ++s) {
      const auto on = static_cast<std::size_t>(any_class(random));
      const int units = 1 << doublings(random);
      choice.units[on] += units;
      const double forward = static_cast<double>(work) / (length * units * kSpeed[on]);
      choice.stages.push_back(stage_of(static_cast<std::int64_t>(forward), 16));
      if (s > 0) choice.hops.push_back({kLatency, kLatency / 2});
    }
  }
  return choices;
}

void join_of_modules(benchmark::State& state) {
  std::mt19937_64 random(1);
  JoinProblem problem;
  problem.microbatches = 64;
  problem.inventory.assign(kClasses, 6);
  problem.language = choices_of(random, state.range(1), 8, 64 * kForward);
  for (int e = 0; e < state.range(0); ++e) {
    problem.encoders.push_back(
        {choices_of(random, state.range(2), 2, 8 * kForward), {1, 1, Price{kLatency, kLatency}}});
  }
  JoinResult result;
  for (auto _ : state) benchmark::DoNotOptimize(result = join(problem));
  if (!result.best || result.time != closed_form(graph_of(problem, *result.best))->time) {
    state.SkipWithError("no selection, or one that takes another time");
  }
  state.counters["periods"] = static_cast<double>(result.periods);
}
BENCHMARK(join_of_modules)
    ->ArgNames({"encoders", "language_choices", "encoder_choices"})
    ->Args({1, 1000, 100})
    ->Args({2, 1000, 100})
    ->Args({2, 10000, 400})
    ->Args({3, 10000, 400})
    ->Unit(benchmark::kMillisecond);

void bound_by_work(benchmark::State& state) {
  const auto kinds = static_cast<int>(state.range(0));
  const auto classes = static_cast<int>(state.range(1));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> part(0.1, 1);
  FleetWork work;
  work.amount.assign(static_cast<std::size_t>(kinds), 1000);
  work.gpus.assign(static_cast<std::size_t>(classes), 64);
  work.gpu_time.assign(kinds, classes, 0);
  for (double& time : work.gpu_time) time = 1e6 * part(random);
  WorkBound bound;
  for (auto _ : state) benchmark::DoNotOptimize(bound = work_bound(work));
  if (!(bound.time > 0)) state.SkipWithError("no bound");
}
BENCHMARK(bound_by_work)->ArgNames({"kinds", "classes"})->Args({3, 4})->Args({6, 12})->Unit(benchmark::kMicrosecond);

void slowest_of_lanes(benchmark::State& state) {
  const SampleSpread spread{.variation = 0.6, .none = 0.2};
  double factor = 0;
  for (auto _ : state) benchmark::DoNotOptimize(factor = slowest_lane(spread, 64, state.range(0)));
  if (factor < 1) state.SkipWithError("a slowest lane that is faster than the mean");
}
BENCHMARK(slowest_of_lanes)->ArgNames({"samples"})->Args({8})->Args({128})->Unit(benchmark::kMicrosecond);

}  // namespace
