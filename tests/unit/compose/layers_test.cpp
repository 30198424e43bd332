// Where the layer boundary of a two-type fleet lies, against a hand calculation.
#include <algorithm>
#include <map>

#include "fixtures.hpp"
#include "support/catch.hpp"
#include "tangram/compose/search.hpp"

using namespace tangram;
using namespace tangram::compose;
using namespace tangram::compose::fixtures;

namespace {

// One GPU each, "fast" and "slow", next to each other on a link that costs next to nothing.
cluster::IslandHierarchy two_gpus(cluster::GpuType fast, cluster::GpuType slow) {
  cluster::IslandClass a = class_of(1, 1, 1);
  cluster::IslandClass b = class_of(1, 1, 1);
  a.alias = "fast";
  b.alias = "slow";
  a.device = std::move(fast);
  b.device = std::move(slow);
  cluster::IslandHierarchy hierarchy;
  hierarchy.levels.push_back(level_of({a, b}));
  hierarchy.levels.front().links.assign(4, {100'000_GBps, 1_ns});
  return hierarchy;
}

// 16 blocks and `microbatches` microbatches of one sample, one pipeline of unmixed stages.
model::Model sixteen(std::int64_t microbatches) {
  model::Model model = model_of(16);
  model.job.global_batch = microbatches;
  model.job.microbatch = 1;
  model.job.allow.replicas = false;
  model.job.allow.mixed_stages = false;
  return model;
}

Composition best(const model::Model& model, const cluster::IslandHierarchy& hierarchy,
                 const parallelizer::Parallelizer& parallelizer) {
  const parallelizer::Parallelizer* const asked[] = {&parallelizer};
  const SearchResult result = search(model, hierarchy, asked, {});
  REQUIRE_FALSE(result.best.empty());
  CHECK(result.optimal);
  return result.best.front();
}

// Blocks by class: 0 is the fast one.
std::map<int, int> blocks_of(const Composition& plan) {
  std::map<int, int> blocks;
  for (const StageChoice& stage : plan.stages) blocks[stage.parts.front().island_class] += stage.last - stage.first;
  return blocks;
}

/// A GPU of 300 TFLOP/s and 3 TB/s, and one that is three times slower in everything the cost model knows.
cluster::GpuType fast_gpu() {
  cluster::GpuType fast = device("fast", 1);
  fast.memory = 80_GiB;
  fast.memory_bandwidth = 3000_GBps;
  fast.peak.fill(300_TFLOPs);
  fast.compute.kernel_launch = 1_us;
  return fast;
}
cluster::GpuType slow_gpu() {
  cluster::GpuType slow = fast_gpu();
  slow.name = "slow";
  slow.memory_bandwidth = 1000_GBps;
  slow.peak.fill(100_TFLOPs);
  slow.compute.kernel_launch = 3_us;
  return slow;
}

/// 16 blocks of a 1,024-wide model with a head that is next to nothing.
model::Model sixteen_real(std::int64_t microbatches) {
  model::Model model = sixteen(microbatches);
  model.types[0].hidden = 1024;
  model.types[0].tokens = 1024;
  model.types[0].attention.heads = model.types[0].attention.kv_heads = 8;
  model.types[0].attention.head_dim = 128;
  model.types[0].feed_forward.hidden = 4096;
  model.hidden = 1024;
  model.vocabulary = 128;
  model.job.sequence_length = 1024;
  return model;
}

}  // namespace

TEST_CASE("three times the speed takes three times the layers") {
  // 100 and 300 ns a block: 12 * 100 = 4 * 300 = 1,200. 64 B over 100 TB/s take 1 ns, so that c = 2 ns, and
  // t = 2 * 1,200 + 2 * 2 + 999 * 1,200.
  const ConstantParallelizer parallelizer({{"fast", {100, 0, 0}}, {"slow", {300, 0, 0}}});
  const Composition plan = best(sixteen(1000), two_gpus(device("fast", 100), device("slow", 300)), parallelizer);
  CHECK(blocks_of(plan) == std::map<int, int>{{0, 12}, {1, 4}});
  CHECK(plan.period == 1200_ns);
  CHECK(plan.closed_form == Nanoseconds(2 * 1200 + 2 * 2 + 999 * 1200));
}

TEST_CASE("the head moves the layer boundary") {
  // The head is worth 5 blocks. With the head on the fast GPU, k blocks on the slow one: max(300 k, 100 (16 - k + 5)):
  //   k = 4: max(1,200, 1,700)   k = 5: max(1,500, 1,600)   k = 6: max(1,800, 1,500)
  // With it on the slow one, one block there already makes 300 (1 + 5) = 1,800. So 11 blocks and the head, and 5 first.
  const ConstantParallelizer parallelizer({{"fast", {100, 0, 500}}, {"slow", {300, 0, 1500}}});
  const Composition plan = best(sixteen(1000), two_gpus(device("fast", 100), device("slow", 300)), parallelizer);
  CHECK(blocks_of(plan) == std::map<int, int>{{0, 11}, {1, 5}});
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].parts.front().island_class == 1);
  CHECK(plan.period == 1600_ns);
}

TEST_CASE("embedding and head both count") {
  // Embedding 1 block, head 5. Slow first: max(300 (1 + k), 100 (16 - k + 5)): k = 4: max(1,500, 1,700), k = 5:
  // max(1,800, 1,600). Fast first: max(100 (1 + 15), 300 (1 + 5)) = 1,800. So 4 and 12 again, the slow GPU first.
  const ConstantParallelizer parallelizer({{"fast", {100, 100, 500}}, {"slow", {300, 300, 1500}}});
  const Composition plan = best(sixteen(1000), two_gpus(device("fast", 100), device("slow", 300)), parallelizer);
  CHECK(blocks_of(plan) == std::map<int, int>{{0, 12}, {1, 4}});
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].parts.front().island_class == 1);
  CHECK(plan.period == 1700_ns);
}

TEST_CASE("few microbatches leave the slow GPU idle") {
  // M = 1: everything in sequence, 16 * 100 on the fast GPU alone.
  // M = 3: alone 3 * 1,600 = 4,800; with k blocks on the slow one 300 k + 100 (16 - k) + 4 + 2 max(300 k, 100 (16 -
  // k)):
  //   k = 1: 1,804 + 3,000 = 4,804   k = 2: 2,004 + 2,800 = 4,804: not worth it.   M = 4: k = 1: 6,304 of 6,400,
  //   k = 2: 2,004 + 3 * 1,400 = 6,204, k = 3: 2,204 + 3,900 = 6,104, k = 4: 2,404 + 3,600 = 6,004: worth it.
  const ConstantParallelizer parallelizer({{"fast", {100, 0, 0}}, {"slow", {300, 0, 0}}});
  const cluster::IslandHierarchy fleet = two_gpus(device("fast", 100), device("slow", 300));
  CHECK(blocks_of(best(sixteen(1), fleet, parallelizer)) == std::map<int, int>{{0, 16}});
  CHECK(blocks_of(best(sixteen(3), fleet, parallelizer)) == std::map<int, int>{{0, 16}});
  const Composition four = best(sixteen(4), fleet, parallelizer);
  CHECK(blocks_of(four) == std::map<int, int>{{0, 12}, {1, 4}});
  CHECK(four.closed_form == 6004_ns);
}

TEST_CASE("the built-in parallelizer puts the boundary in the same place") {
  // The slow GPU is three times slower. The head of 128 words belongs to the fast GPU, which comes last: 12 fast blocks
  // and the head are closer to 4 slow ones than any other cut.
  const model::Model model = sixteen_real(64);
  const auto parallelizer = parallelizer::make_enumerator(model);
  const Composition plan = best(model, two_gpus(fast_gpu(), slow_gpu()), *parallelizer);
  CHECK(blocks_of(plan) == std::map<int, int>{{0, 12}, {1, 4}});
  REQUIRE(plan.stages.size() == 2);
  CHECK(plan.stages[0].parts.front().island_class == 1);
}

TEST_CASE("with mixtures of layers beside it the enumerator's best plan is never slower, and faster in little memory") {
  const model::Model model = sixteen_real(64);
  const auto enumerator = parallelizer::make_enumerator(model);
  const auto layerwise = parallelizer::make_layerwise(model);
  const parallelizer::Parallelizer* const alone[] = {enumerator.get()};
  const parallelizer::Parallelizer* const both[] = {enumerator.get(), layerwise.get()};
  int feasible = 0;
  int faster = 0;
  for (int mebibytes = 2000; mebibytes <= 6000; mebibytes += 250) {
    cluster::GpuType fast = fast_gpu();
    cluster::GpuType slow = slow_gpu();
    fast.memory = slow.memory = Bytes(std::int64_t{mebibytes} << 20);
    const cluster::IslandHierarchy fleet = two_gpus(fast, slow);
    const SearchResult without = search(model, fleet, alone, {});
    const SearchResult with = search(model, fleet, both, {});
    if (without.best.empty()) continue;
    REQUIRE_FALSE(with.best.empty());
    CHECK(with.best.front().closed_form <= without.best.front().closed_form);
    ++feasible;
    faster += with.best.front().closed_form < without.best.front().closed_form ? 1 : 0;
  }
  CHECK(feasible >= 10);
  CHECK(faster >= 1);
}
