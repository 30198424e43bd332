// Time to simulate one pipeline, against the time its closed form takes.
#include <benchmark/benchmark.h>

#include "tangram/chain/program.hpp"
#include "tangram/simulate/simulate.hpp"

using namespace tangram;
using namespace tangram::simulate;

namespace {

constexpr std::int64_t kForward = 10'000'000;   // of a whole stage, ns
constexpr std::int64_t kBackward = 20'000'000;  // of which half are weight gradients
constexpr std::int64_t kLatency = 500'000;
constexpr std::int64_t kChunks = 4;

/// Equal stages behind links that cost something.
SimPipeline pipeline_of(std::int64_t stages, std::int64_t microbatches, ScheduleKind kind) {
  SimPipeline pipeline;
  pipeline.microbatches = microbatches;
  pipeline.kind = kind;
  pipeline.stages.resize(static_cast<std::size_t>(stages));
  for (SimStage& stage : pipeline.stages) {
    SimPart part{Nanoseconds(kForward), Nanoseconds(kBackward), Nanoseconds(0), Nanoseconds(0)};
    part.weight_gradient = Nanoseconds(kBackward / 2);
    part.chunks.assign(kChunks, {Nanoseconds(kForward / kChunks), Nanoseconds(kBackward / kChunks)});
    stage.parts.push_back(part);
    stage.latency = Nanoseconds(kLatency);
    stage.occupancy = Nanoseconds(kLatency / 2);
  }
  return with_classic_warmups(pipeline);
}

/// All stages work all the time but for filling and draining: (M + S) T and the links bound the time from both sides.
bool is_plausible(const SimPipeline& pipeline, const Result& result) {
  const std::int64_t T = kForward + kBackward;
  const auto stages = static_cast<std::int64_t>(pipeline.stages.size());
  return !result.deadlock && result.iteration.value() >= pipeline.microbatches * T &&
         result.iteration.value() <= (pipeline.microbatches + stages) * (T + 2 * kChunks * kLatency);
}

void simulate_kind(benchmark::State& state, ScheduleKind kind, bool record) {
  const Schedule schedule{{pipeline_of(state.range(0), state.range(1), kind)}};
  Result result;
  for (auto _ : state) {
    result = simulate::simulate(schedule, record);
    benchmark::DoNotOptimize(result.iteration);
  }
  if (!is_plausible(schedule.pipelines[0], result)) state.SkipWithError("an impossible iteration time");
  state.counters["iteration_s"] = to_seconds(result.iteration);
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"stages", "microbatches"})
      ->Args({4, 32})
      ->Args({16, 256})
      ->Args({64, 1024})
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(simulate_kind, 1f1b, ScheduleKind::k1F1B, false)->Apply(sizes);
BENCHMARK_CAPTURE(simulate_kind, 1f1b_with_events, ScheduleKind::k1F1B, true)->Apply(sizes);
BENCHMARK_CAPTURE(simulate_kind, gpipe, ScheduleKind::kGPipe, false)->Apply(sizes);
BENCHMARK_CAPTURE(simulate_kind, zero_bubble, ScheduleKind::kZeroBubble, false)->Apply(sizes);
BENCHMARK_CAPTURE(simulate_kind, interleaved_4, ScheduleKind::kInterleaved, false)->Apply(sizes);

/// A program whose only chain has one block and one candidate a stage.
chain::Program chain_program(int stages, std::int64_t microbatches) {
  chain::Program program;
  program.blocks = stages;
  program.microbatches = microbatches;
  program.inventory = {stages};
  program.options = {{{{0, 1}}, 0}};
  program.keys = 1;
  program.signatures = 1;
  program.cut_kind.assign(static_cast<std::size_t>(stages) + 1, 0);
  program.prices = {{1, {{kLatency, kLatency / 2}}}};
  return program;
}

/// `memory_for(s)`: microbatches that stage s can hold.
template <class MemoryFor>
chain::Chain equal_chain(int stages, MemoryFor&& memory_for) {
  chain::Chain chain;
  for (int s = 0; s < stages; ++s) {
    prune::Candidate candidate;
    candidate.T = kForward + kBackward;
    candidate.F = kForward;
    candidate.A = candidate.T;
    candidate.n_max = memory_for(s);
    chain.stages.push_back({0, s, s + 1, candidate});
  }
  return chain;
}

void sizes_in_microseconds(benchmark::internal::Benchmark* bench) {
  sizes(bench);
  bench->Unit(benchmark::kMicrosecond);
}

/// With room for all microbatches the period is T, whatever the links.
void closed_form_with_room(benchmark::State& state) {
  const auto stages = static_cast<int>(state.range(0));
  const chain::Program program = chain_program(stages, state.range(1));
  chain::Chain chain = equal_chain(stages, [&](int) { return program.microbatches; });
  bool feasible = false;
  for (auto _ : state) {
    feasible = chain::evaluate(program, chain);
    benchmark::DoNotOptimize(chain.time);
  }
  const std::int64_t T = kForward + kBackward;
  const std::int64_t expected = (program.microbatches + stages - 1) * T + 2 * (stages - 1) * kLatency;
  if (!feasible || chain.time != expected) state.SkipWithError("a wrong closed form");
}
BENCHMARK(closed_form_with_room)->Apply(sizes_in_microseconds);

/// With room for the classic warm-up alone a round trip between neighbours takes two periods: 2 T + 2 c = 2 P.
void closed_form_without_room(benchmark::State& state) {
  const auto stages = static_cast<int>(state.range(0));
  const chain::Program program = chain_program(stages, state.range(1));
  chain::Chain chain = equal_chain(stages, [&](int s) { return stages - s; });
  bool feasible = false;
  for (auto _ : state) {
    feasible = chain::evaluate(program, chain);
    benchmark::DoNotOptimize(chain.time);
  }
  if (!feasible || chain.period < kForward + kBackward + kLatency) state.SkipWithError("a wrong period");
}
BENCHMARK(closed_form_without_room)->Apply(sizes_in_microseconds);

}  // namespace
