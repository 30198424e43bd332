// Time per query of the built-in parallelizer, unit costs shared among the slices of one call, on one thread.
#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include <random>

#include "tangram/prune/frontier.hpp"
#include "unit/parallelizer/fixtures.hpp"

using namespace tangram;
using namespace tangram::parallelizer;

namespace {

/// All slices that start at the first block: as many queries as blocks, of one to 32 blocks.
void solve_slices(benchmark::State& state, const model::Model& model, Bytes memory, std::int64_t max_in_flight) {
  const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  std::vector<Query> queries;
  for (int last = 1; last <= model.block_count(); ++last) {
    auto q = fixtures::query(model, fixtures::shape(1, 8, memory), 8, max_in_flight);
    q.slice = model::signature(model, 0, last);
    queries.push_back(q);
  }
  const auto enumerator = make_enumerator(model);
  std::size_t plans = 0;
  for (auto _ : state) {
    const auto outcomes = enumerator->solve(queries);
    plans = 0;
    for (const Outcome& outcome : outcomes) plans += outcome.plans.size();
    benchmark::DoNotOptimize(plans);
  }
  if (plans < queries.size()) state.SkipWithError("some slices have no plan");
  const auto count = static_cast<double>(queries.size());
  state.counters["per_query"] =
      benchmark::Counter(count, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["plans"] = static_cast<double>(plans) / count;
}

void dense(benchmark::State& state) {
  solve_slices(state, fixtures::dense_model(32), Bytes(state.range(0) << 30), state.range(1));
}
BENCHMARK(dense)
    ->ArgNames({"GiB", "in_flight"})
    ->Args({80, 32})
    ->Args({80, 8})
    ->Args({24, 32})
    ->Unit(benchmark::kMicrosecond);

void moe(benchmark::State& state) {
  solve_slices(state, fixtures::moe_model(32), Bytes(state.range(0) << 30), state.range(1));
}
BENCHMARK(moe)->ArgNames({"GiB", "in_flight"})->Args({160, 32})->Args({160, 8})->Unit(benchmark::kMicrosecond);

/// Dense and MoE blocks in turn: 32 runs of one block.
void alternating(benchmark::State& state) {
  std::vector<int> blocks(32);
  for (std::size_t i = 1; i < blocks.size(); i += 2) blocks[i] = 1;
  const auto model = fixtures::model_of({fixtures::dense_block(), fixtures::moe_block()}, std::move(blocks));
  solve_slices(state, model, Bytes(state.range(0) << 30), state.range(1));
}
BENCHMARK(alternating)->ArgNames({"GiB", "in_flight"})->Args({160, 32})->Args({160, 8})->Unit(benchmark::kMicrosecond);

void pareto(benchmark::State& state) {
  std::mt19937 random(1);  // its sequence is fixed by the standard
  std::vector<prune::Candidate> candidates;
  for (std::int32_t i = 0; i < state.range(0); ++i) {
    const auto draw = [&random] { return static_cast<std::int64_t>(random() % 1000); };
    candidates.push_back({draw(), draw(), draw(), draw(), draw(), i});
  }
  for (auto _ : state) benchmark::DoNotOptimize(prune::pareto(candidates));
}
BENCHMARK(pareto)->Arg(30)->Arg(100)->Arg(300);

}  // namespace
