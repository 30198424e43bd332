// What planners lose that look at less: one run of stages for each GPU type, stages of one island, one pipeline. By
// hand, and by trying all chains.
#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "tangram/chain/program.hpp"
#include "tangram/compose/search.hpp"
#include "unit/chain/equal_blocks.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::chain;
using namespace tangram::chain::fixtures;
using namespace tangram::compose::fixtures;

namespace {

using Allowed = std::function<bool(const Program&, const Chain&)>;

// The least time of all chains that are allowed, tried one by one. Frontiers hold one plan each.
std::int64_t least_time(const Program& program, const Allowed& allowed) {
  std::int64_t best = INT64_MAX;
  std::vector<int> left = program.inventory;
  Chain chain;
  const std::function<void(int)> extend = [&](int first) {
    if (first == program.blocks) {
      Chain whole = chain;
      if (allowed(program, whole) && evaluate(program, whole)) best = std::min(best, whole.time);
      return;
    }
    for (int option = 0; option < static_cast<int>(program.options.size()); ++option) {
      const std::vector<Use>& uses = program.options[static_cast<std::size_t>(option)].uses;
      const auto place = [&](const Use& use) -> int& { return left[static_cast<std::size_t>(use.island_class)]; };
      if (!std::ranges::all_of(uses, [&](const Use& use) { return place(use) >= use.units; })) continue;
      for (const Use& use : uses) place(use) -= use.units;
      for (int last = first + 1; last <= program.blocks; ++last) {
        const Candidate& plan = program.frontier(option, program.signature_of(first, last)).front();
        chain.stages.push_back({option, first, last, plan});
        extend(last);
        chain.stages.pop_back();
      }
      for (const Use& use : uses) place(use) += use.units;
    }
  };
  extend(0);
  return best;
}

bool all(const Program& /*program*/, const Chain& /*chain*/) { return true; }

// No class comes back once another one followed it.
bool has_contiguous_runs(const Program& program, const Chain& chain) {
  std::vector<int> runs;
  for (const ChainStage& stage : chain.stages) {
    const int k = program.options[static_cast<std::size_t>(stage.option)].uses.front().island_class;
    if (runs.empty() || runs.back() != k) runs.push_back(k);
  }
  std::ranges::sort(runs);
  return std::ranges::adjacent_find(runs) == runs.end();
}

bool has_stages_of_one_island(const Program& program, const Chain& chain) {
  return std::ranges::all_of(chain.stages, [&](const ChainStage& stage) {
    return program.options[static_cast<std::size_t>(stage.option)].uses.size() == 1;
  });
}

std::int64_t optimum(const Program& program) {
  const ProgramResult result = solve(program, {});
  REQUIRE(result.finished);
  REQUIRE_FALSE(result.chains.empty());
  return result.chains.front().time;
}

double slower_by(std::int64_t time, std::int64_t best) {
  return static_cast<double>(time) / static_cast<double>(best) - 1;
}

// Three blocks: 10 each on the first class, of which there are two units. The second, of one unit, is as fast in the
// middle, and takes 25 for either end: the vocabulary's.
Program slow_at_the_ends() {
  Program program = equal_blocks(3, {2, 1}, {kFast, {{{1, 1}}, 10}});
  program.signatures = 6;
  program.frontiers = {2, program.signatures};
  int signature = 0;
  for (int first = 0; first < 3; ++first) {
    for (int last = first + 1; last <= 3; ++last, ++signature) {
      program.signature(first, last) = signature;
      const std::int64_t blocks = last - first;
      const std::int64_t ends = (first == 0 ? 1 : 0) + (last == 3 ? 1 : 0);
      const std::int64_t slow = 10 * blocks + 15 * ends;
      program.frontiers(0, signature) = {{.T = 10 * blocks, .A = 10 * blocks, .n_max = 100}};
      program.frontiers(1, signature) = {{.T = slow, .A = slow, .n_max = 100}};
    }
  }
  return program;
}

}  // namespace

TEST_CASE("one run of stages for each class is 70 % slower where the other class fits in the middle") {
  const Program program = slow_at_the_ends();
  // The first class at both ends, the second between them: 30 through the pipeline, and seven periods of 10.
  CHECK(optimum(program) == 100);
  CHECK(least_time(program, all) == 100);
  // In runs: one and two blocks on the first class, the second idle: 30 + 7 * 20. With it at an end: 45 + 7 * 25 = 220.
  CHECK(least_time(program, has_contiguous_runs) == 170);
  CHECK(slower_by(170, 100) == Approx(0.70));
}

TEST_CASE("stages of one island are 42 % slower where two can not share the blocks evenly") {
  // Three blocks of 10 on one unit of either class, or of 5 on both together.
  const Program program = equal_blocks(3, {1, 1}, {kFast, {{{1, 1}}, 10}, {{{0, 1}, {1, 1}}, 5}});
  CHECK(optimum(program) == 8 * 15);
  CHECK(least_time(program, all) == 120);
  // Two blocks and one: 30 + 7 * 20.
  CHECK(least_time(program, has_stages_of_one_island) == 170);
  CHECK(slower_by(170, 120) == Approx(0.42).margin(0.005));
}

TEST_CASE("a single pipeline is 42 % slower where two GPUs can not share the blocks evenly") {
  // Three blocks of 10 ms a sample, eight samples. Two pipelines of one GPU: 4 * 30 ms. One of two: 30 + 7 * 20 ms.
  // What the links take is microseconds.
  const model::Model model = model_of(3);
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels = {level_of({class_of(1, 1, 2)})};
  const ConstantParallelizer parallelizer({{"gpu", {10'000'000, 0, 0}}});
  const parallelizer::Parallelizer* const parallelizers[] = {&parallelizer};
  const auto best_of = [&](const SearchOptions& options) {
    const SearchResult result = search(model, hierarchy, parallelizers, options);
    REQUIRE(result.optimal);
    return result.best.front();
  };
  const Composition two = best_of({});
  CHECK(two.replicas == 2);
  CHECK(to_seconds(two.closed_form) == Approx(0.120).margin(0.0002));
  SearchOptions options;
  options.max_replicas = 1;
  const Composition one = best_of(options);
  CHECK(one.stages.size() == 2);
  CHECK(to_seconds(one.closed_form) == Approx(0.170).margin(0.0002));
  CHECK(slower_by(one.closed_form.value(), two.closed_form.value()) == Approx(0.42).margin(0.005));
}
