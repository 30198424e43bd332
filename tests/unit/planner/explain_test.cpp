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

TEST_CASE("explain: each rule of the runtime that bears on the job is lifted by itself") {
  for (const runtime::Target target : {runtime::Target::kMegatron, runtime::Target::kFlagscale}) {
    PlanOptions options;
    options.target = target;
    const auto planned = make_plan(tiny_fleet(), mini_model(), options);
    REQUIRE(planned);
    const auto explained = explain(planned->plan, tiny_fleet(), options, {});
    REQUIRE(explained);
    const runtime::Runtime& runtime = runtime::runtime_of(target);
    std::vector<runtime::Rule> lifted;
    Nanoseconds last;
    std::optional<Nanoseconds> without_all;
    for (const Alternative& without : explained->rules) {
      REQUIRE(without.iteration);
      if (std::holds_alternative<RulesLifted>(without.change)) {
        without_all = without.iteration;
      } else {
        lifted.push_back(std::get<RuleLifted>(without.change).rule);
        CHECK(runtime.has(lifted.back()));
      }
      CHECK(*without.iteration <= explained->iteration);
      CHECK(last <= *without.iteration);
      last = *without.iteration;
    }
    REQUIRE(without_all);
    CHECK(without_all->as_double() <= 1.001 * explained->rules.front().iteration->as_double());
    CHECK(std::ranges::find(lifted, runtime::Rule::kSchedule) != lifted.end());
    CHECK(std::ranges::find(lifted, runtime::Rule::kExpertsOverStage) == lifted.end());  // the model has none
  }
  CHECK(explain(make_plan(tiny_fleet(), mini_model(), {})->plan, tiny_fleet(), {}, {})->rules.empty());
}
