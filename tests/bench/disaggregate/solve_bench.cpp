// Time to place the kernels of a model, and how far from the best the placement may be.
#include <benchmark/benchmark.h>

#include "tangram/disaggregate/solve.hpp"
#include "tangram/disaggregate/timeline.hpp"
#include "unit/disaggregate/tables.hpp"

using namespace tangram;
using disaggregate::Objective;
using disaggregate::Problem;
using disaggregate::Solution;

namespace {

void solve(benchmark::State& state, const Problem& problem, Objective objective) {
  Solution solution;
  for (auto _ : state) {
    solution = disaggregate::solve(problem, objective);
    benchmark::DoNotOptimize(solution.value);
  }
  if (!solution.found || solution.value < solution.bound) state.SkipWithError("a value below its bound");
  state.counters["kernels"] = problem.kernel_count();
  state.counters["gap_percent"] = 100 * solution.gap();
}

void simulate(benchmark::State& state, const Problem& problem) {
  const Solution solution = disaggregate::solve(problem, Objective::kThroughput);
  double period = 0;
  for (auto _ : state) {
    period = disaggregate::simulated_period(problem, {{1, solution.placement}});
    benchmark::DoNotOptimize(period);
  }
  state.counters["over_period"] = period / solution.value;
}

/// Llama 3 8B decodes 32 requests on an A100 and an L40S.
Problem decode() { return tests::model_problem({.link = tests::kInfiniBand}); }

Problem decode_in_flight(int passes) { return disaggregate::with_in_flight(decode(), passes); }

BENCHMARK_CAPTURE(solve, 288_kernels_throughput, decode(), Objective::kThroughput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(solve, 288_kernels_latency, decode_in_flight(1), Objective::kLatency)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(solve, 2000_kernels_4_classes, tests::many_kernels(), Objective::kThroughput)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate, 288_kernels_3_in_flight, decode_in_flight(3))->Unit(benchmark::kMillisecond);

}  // namespace
