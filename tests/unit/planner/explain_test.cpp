// Explanations are values: what is changed, and what an iteration would take.
#include "tangram/planner/explain.hpp"

#include <algorithm>

#include "inputs.hpp"

using namespace tangram;
using namespace tangram::planner;
using namespace tangram::planner::tests;

TEST_CASE("explain: every alternative says what it changes") {
  const auto planned = make_plan(tiny_fleet(), mini_model(), {});
  REQUIRE(planned);
  const auto explained = explain(planned->plan, tiny_fleet(), {}, {});
  REQUIRE(explained);
  CHECK(explained->iteration == planned->plan.predicted.iteration);
  CHECK(explained->limits.size() == 4);  // compute, memory bandwidth, links of nodes, network
  for (const Alternative& faster : explained->limits) {
    CHECK(std::holds_alternative<Faster>(faster.change));
    REQUIRE(faster.iteration);
    CHECK(*faster.iteration <= explained->iteration);
  }
  std::vector<std::string> types;
  for (const Alternative& more : explained->more_memory) types.push_back(std::get<MoreMemory>(more.change).gpu_type);
  std::ranges::sort(types);
  CHECK(types == std::vector<std::string>{"Big", "Small"});
  const std::size_t stages = planned->plan.pipelines.front().stages.size();
  for (const Alternative& cut : explained->cuts) {
    const auto& moved = std::get<LayerMoved>(cut.change);
    CHECK(moved.cut + 1 < stages);
    CHECK((moved.to == moved.cut || moved.to == moved.cut + 1));
  }
  for (const Alternative& more : explained->more) {
    CHECK(std::holds_alternative<NodeAdded>(more.change));
    CHECK(more.iteration.value_or(Nanoseconds::max()) <= explained->iteration);
  }
}
