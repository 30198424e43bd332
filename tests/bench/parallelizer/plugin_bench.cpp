// What asking a plugin costs: one question to a worker that is already there, from the query to the re-checked plan.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <iostream>

#include "tangram/parallelizer/plugin.hpp"
#include "unit/parallelizer/fixtures.hpp"

namespace {

using namespace tangram;
using namespace tangram::parallelizer;

PluginSpec spec_of(std::vector<std::string> command) {
  PluginSpec spec;
  spec.name = "good";
  spec.command = std::move(command);
  return spec;
}

/// Queries of the four blocks of a fixture on `gpus` GPUs, `batch` at a time.
void ask(benchmark::State& state, const PluginSpec& spec) {
  const auto launcher = make_local_launcher();
  const model::Model model = fixtures::dense_model(4);
  const auto plugin = make_plugin_parallelizer(spec.name, make_worker_pool(spec, {1, {}}, *launcher), model, nullptr);
  const std::vector<Query> queries(static_cast<std::size_t>(state.range(0)),
                                   fixtures::query(model, fixtures::shape(1, 4), 8, 16));
  for (auto _ : state) {
    const std::vector<Outcome> outcomes = plugin->solve(queries);
    for (const Outcome& outcome : outcomes) {
      if (!outcome.plans.empty()) continue;
      std::cerr << "no plan: " << outcome.message << '\n';
      std::exit(1);
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void native_worker(benchmark::State& state) { ask(state, spec_of({TANGRAM_CPP_PLUGIN})); }
void python_worker(benchmark::State& state) {
  ask(state, spec_of({"/usr/bin/python3", TANGRAM_SOURCE_DIR "/tests/plugins/misbehave.py", "good"}));
}

BENCHMARK(native_worker)->Arg(1)->Arg(1000)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(python_worker)->Arg(1)->Arg(1000)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
