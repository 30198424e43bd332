// The planner against every uniform plan, on fleets of one class cut out of the shipped ones. Uniform plans are inside
// the searched space, so that the planner's closed form may never be larger.
#include "shipped/uniform_plans.hpp"

#include "shipped/fleets_and_models.hpp"
#include "support/catch.hpp"
#include "tangram/compose/search.hpp"
#include "tangram/parallelizer/parallelizer.hpp"

using namespace tangram;
using namespace tangram::shipped;

namespace {

struct Case {
  const char* fleet;
  const char* gpu_type;
  std::size_t nodes;
  const char* model;
};

void compare(const Case& c) {
  INFO(c.nodes << " nodes of " << c.gpu_type << " of " << c.fleet << ", " << c.model);
  const model::Model job = model_named(c.model);
  const cluster::IslandHierarchy hierarchy =
      cluster::find_islands(part_of(fleet_named(c.fleet), c.gpu_type, c.nodes), 0.10);
  for (const cluster::IslandLevel& level : hierarchy.levels) REQUIRE(level.classes.size() == 1);

  const auto enumerator = parallelizer::make_enumerator(job);
  const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get()};
  const auto found = compose::search(job, hierarchy, parallelizers, {});
  REQUIRE(!found.best.empty());
  for (const cluster::IslandLevel& level : hierarchy.levels) {
    const auto uniform = fastest_uniform(job, level);
    REQUIRE(uniform);
    INFO(uniform->text << "; " << uniform->tried << " tried");
    CHECK(uniform->tried > 100);
    CHECK(found.best.front().closed_form <= uniform->time);
    // A planner that is far ahead of the best uniform plan on equal GPUs would be as suspicious.
    CHECK(found.best.front().closed_form.as_double() >= 0.75 * uniform->time.as_double());
  }
}

}  // namespace

// Stages 3 and 5, b = 1, no latency, classic warm-up fits: P = 5, t = (3 + 5) + 3 * 5 + tail 0 + step 1 = 24.
TEST_CASE("pipeline time: two stages by hand") {
  const std::vector<TimedStage> stages{{1, 2, 0, 1, 9}, {2, 3, 0, 1, 9}};
  CHECK(pipeline_time(stages, 0, 0, 4) == 24);
  // Latency 2: 8 + 2 * 2 = 12 to fill; stage 0 needs ceil(12 / 5) = 3 in flight. With room for 2 the period is 6.
  CHECK(pipeline_time(stages, 2, 1, 4) == 12 + 15 + 1);
  CHECK(pipeline_time({{1, 2, 0, 1, 2}, {2, 3, 0, 1, 9}}, 2, 1, 4) == 12 + 18 + 1);
  CHECK(!pipeline_time({{1, 2, 0, 1, 1}, {2, 3, 0, 1, 9}}, 2, 1, 4));
  // Synchronisation of 9 in the second stage hides under the first one's backward (2) and the hop (2): 5 remain.
  CHECK(pipeline_time({{1, 2, 0, 1, 9}, {2, 3, 9, 1, 9}}, 2, 1, 4) == 12 + 5 + 15 + 1);
}

TEST_CASE("uniform plans: RTX hosts and workstations") {
  compare({"campus-rtx", "RTX-3090", 1, "gpt2-medium"});
  compare({"campus-rtx", "Titan-RTX", 2, "opt-350m"});
  compare({"campus-rtx", "RTX-2080-Ti", 2, "gpt2-xl"});
  compare({"nvlink-pairs", "A6000", 2, "pythia-2.8b"});
}

TEST_CASE("uniform plans: cloud instances") {
  compare({"amp", "V100-16GB-SXM", 3, "opt-350m"});
  compare({"amp", "T4", 1, "opt-125m"});
  compare({"l4-a10g-cloud", "L4", 2, "tinyllama-1.1b"});
  compare({"l4-a10g-cloud", "A10G", 1, "gpt2-xl"});
  compare({"azure-mixed", "V100-32GB-SXM", 1, "llama-3.2-3b"});
  compare({"geo-two-zones", "A100-40GB-SXM", 2, "gpt-13b"});
}

TEST_CASE("uniform plans: data-centre nodes") {
  compare({"h100-a100-v100", "H100-80GB-SXM", 1, "llama-2-7b"});
  compare({"h100-a100-v100", "A100-80GB-SXM", 2, "gpt-neox-20b"});
  compare({"a100-40-and-80", "A100-40GB-SXM", 1, "gpt-6.7b"});
  compare({"mi300x-h100", "MI300X-192GB", 1, "qwen3-30b-a3b"});
  compare({"mi300x-h100", "MI300X-192GB", 1, "llama-3-8b-128k"});
  compare({"h200-h100-efa", "H200-141GB-SXM", 1, "deepseek-v2-lite"});
}
