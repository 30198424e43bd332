#include <set>

#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

std::vector<std::pair<std::string, int>> gpus_of(const LaunchPlan& plan, int stage, int part = 0) {
  std::vector<std::pair<std::string, int>> gpus;
  for (const auto& rank : plan.ranks) {
    if (rank.stage == stage && rank.part == part) gpus.emplace_back(rank.host, rank.gpu);
  }
  return gpus;
}

std::vector<std::pair<std::string, int>> gpus(const std::string& host, int first, int count) {
  std::vector<std::pair<std::string, int>> list;
  for (int i = 0; i < count; ++i) list.emplace_back(host, first + i);
  return list;
}

}  // namespace

TEST_CASE("the example's plan names the GPUs that the shapes need") {
  // Stage 0: one whole member of A, a0. Stage 1: two members of B, an island of them: b0 and b1. Stage 2: half a
  // member of A; a0 is full, so the first four of a1; and one of C, the first of them, GPU 4 of b3.
  World world = make_world();
  const LaunchPlan plan = good_plan(world);
  auto both = gpus("b0", 0, 4);
  const auto rest = gpus("b1", 0, 4);
  both.insert(both.end(), rest.begin(), rest.end());
  CHECK(gpus_of(plan, 0) == gpus("a0", 0, 8));
  CHECK(gpus_of(plan, 1) == both);
  CHECK(gpus_of(plan, 2, 0) == gpus("a1", 0, 4));
  CHECK(gpus_of(plan, 2, 1) == gpus("b3", 4, 1));
  CHECK(plan.ranks.size() == 21);
}

TEST_CASE("islands list what the plan uses and no more") {
  World world = make_world();
  const LaunchPlan plan = good_plan(world);
  // Level islands 0, 1 and 3 are used; the plan numbers them 0, 1, 2.
  REQUIRE(plan.islands.size() == 3);
  CHECK(plan.islands[0].nodes == std::vector<HostGpus>{{"a0", {0, 1, 2, 3, 4, 5, 6, 7}}, {"a1", {0, 1, 2, 3}}});
  CHECK(plan.islands[1].nodes == std::vector<HostGpus>{{"b0", {0, 1, 2, 3}}, {"b1", {0, 1, 2, 3}}});
  CHECK(plan.islands[2].nodes == std::vector<HostGpus>{{"b3", {4}}});
  CHECK(plan.islands[2].island_class == "C");
  // Idle: 4 of 16 A, 8 of 16 B, 1 of 2 C. 21 + 4 + 8 + 1 = 34 = the fleet.
  CHECK(plan.idle == std::vector<IdleGpus>{{"A", 4, ""}, {"B", 8, ""}, {"C", 1, ""}});
  CHECK(plan.fleet_gpus == 34);
}

TEST_CASE("coordinates count tp first, then cp, then dp; experts count etp, ep, edp over the same ranks") {
  // Stage 1 has tp 2, cp 2, dp 2, ep 2, etp 2 on ranks 8..15. Rank 13 is 5 of the stage: tp = 5 % 2 = 1,
  // cp = 5 / 2 % 2 = 0, dp = 5 / 4 = 1; etp = 1, ep = 5 / 2 % 2 = 0, edp = 1.
  World world = make_world();
  const LaunchPlan plan = good_plan(world);
  const Rank& rank = plan.ranks[13];
  CHECK(rank.stage == 1);
  CHECK(std::vector{rank.tp, rank.cp, rank.dp, rank.etp, rank.ep, rank.edp} == std::vector{1, 0, 1, 1, 0, 1});
  // Rank 17 is 1 of its part (tp 4, ep 4, etp 1): tp = 1, etp = 0, ep = 1, edp = 0.
  const Rank& expert = plan.ranks[17];
  CHECK(std::vector{expert.tp, expert.etp, expert.ep, expert.edp} == std::vector{1, 0, 1, 0});
}

TEST_CASE("local ranks count a host's ranks by GPU") {
  // b3 runs stage 0 on its C GPUs 4 and 5 and stage 1 on its B GPUs 0..3: the later stage has the lower local ranks.
  World world = make_world();
  std::vector<StageSpec> stages{
      {2, {{2, 2, 4, strategy(1, 1, 2)}}}, {4, {{1, 8, 4, strategy(2, 1, 4)}}}, {8, {{1, 8, 4, strategy(2, 1, 4)}}}};
  const LaunchPlan plan = make_plan(world, make_composition(world, 1, 4, 4, stages));
  for (const auto& rank : plan.ranks) CHECK(rank.local_rank == rank.gpu);
  CHECK(plan.ranks[0].host == "b3");
  CHECK(plan.ranks[0].local_rank == 4);
}

TEST_CASE("a shape of several members stays inside an island") {
  // Two stages of two members each and islands of two: one island each, never one member of both. The stage of one
  // member would break an island if it were placed first.
  World world = make_world();
  std::vector<StageSpec> stages{{2, {{1, 4, 4, strategy(1, 1, 4)}}}, {8, {{1, 8, 4, strategy(2, 1, 4)}}}};
  const LaunchPlan plan = make_plan(world, make_composition(world, 1, 4, 4, stages));
  CHECK(gpus_of(plan, 1).front().first == "b0");
  CHECK(gpus_of(plan, 1).back().first == "b1");
  CHECK(gpus_of(plan, 0) == gpus("b2", 0, 4));
}

TEST_CASE("stages of a replica share a member rather than replicas") {
  // Two replicas, two stages of 4 A GPUs each: replica 0 fills a0, replica 1 fills a1.
  World world = make_world();
  std::vector<StageSpec> stages{{4, {{0, 4, 4, strategy(1, 1, 4)}}}, {8, {{0, 4, 4, strategy(1, 1, 4)}}}};
  const LaunchPlan plan = make_plan(world, make_composition(world, 2, 4, 4, stages));
  REQUIRE(plan.pipelines.size() == 2);
  CHECK(plan.pipelines[1].stages == std::vector<int>{2, 3});
  CHECK(gpus_of(plan, 0) == gpus("a0", 0, 4));
  CHECK(gpus_of(plan, 1) == gpus("a0", 4, 4));
  CHECK(gpus_of(plan, 2) == gpus("a1", 0, 4));
  CHECK(gpus_of(plan, 3) == gpus("a1", 4, 4));
  CHECK(plan.ranks[8].replica == 1);
}

TEST_CASE("stages that turn out to lie in one member hand over inside it") {
  // Three stages of 4 A GPUs: the composition counts on none being on the same host, and two are on a0.
  World world = make_world();
  std::vector<StageSpec> stages{
      {2, {{0, 4, 4, strategy(1, 1, 4)}}}, {4, {{0, 4, 4, strategy(1, 1, 4)}}}, {8, {{0, 4, 4, strategy(1, 1, 4)}}}};
  const compose::Composition composition = make_composition(world, 1, 4, 8, stages);
  const LaunchPlan plan = assemble(composition, world.fleet, world.level, world.model);
  CHECK(gpus_of(plan, 1) == gpus("a0", 4, 4));
  CHECK(gpus_of(plan, 2) == gpus("a1", 0, 4));
  const cluster::IslandClass& a = world.level.classes[0];
  REQUIRE(plan.boundaries.size() == 2);
  CHECK(plan.boundaries[0].link.latency == a.inside_member.latency);
  CHECK(plan.boundaries[0].occupancy < composition.stages[0].to_next.occupancy);
  CHECK(plan.boundaries[1].link.latency == a.between_members.latency);
  CHECK(plan.boundaries[1].occupancy > plan.boundaries[0].occupancy);
  CHECK(plan.predicted.closed_form < composition.closed_form);
  CHECK(plan.predicted.closed_form == check(plan).closed_form);
}

TEST_CASE("shapes that only just fit are packed so that none is left without a place") {
  // 4 + 3 + 3 + 2 + 2 + 2 of 16 A GPUs. One by one, close to each other, the last 2 would find 1 GPU on either host;
  // 4 + 2 + 2 and 3 + 3 + 2 fill both.
  World world = make_world();
  std::vector<StageSpec> stages;
  int last = 0;
  for (const int gpus : {2, 4, 3, 2, 3, 2}) {
    last = stages.size() == 5 ? 8 : last + 1;
    stages.push_back({last, {{0, gpus, 12, strategy(1, 1, gpus)}}});
  }
  const LaunchPlan plan = make_plan(world, make_composition(world, 1, 12, 4, stages));
  std::set<std::pair<std::string, int>> used;
  for (int s = 0; s < 6; ++s) {
    const auto own = gpus_of(plan, s);
    used.insert(own.begin(), own.end());
    CHECK(own.front().first == own.back().first);
  }
  CHECK(used.size() == 16);
}

TEST_CASE("predictions come from the partial plans, exposure from the stage") {
  World world = make_world();
  std::vector<StageSpec> stages{{4, {{0, 8, 4, strategy(1, 1, 4)}}}};
  stages = {{4, {{0, 4, 4, strategy(1, 1, 4)}}}, {8, {{1, 4, 4, strategy(1, 1, 4)}}}};
  auto composition = make_composition(world, 1, 4, 8, stages);
  composition.stages[0].A = composition.stages[0].T + Nanoseconds(1234);
  const LaunchPlan plan = assemble(composition, world.fleet, world.level, world.model);
  const auto& predicted = plan.stages[0].parts[0].predicted;
  const auto& cost = composition.stages[0].parts[0].plan.cost;
  CHECK(predicted.gradient_sync_exposed == Nanoseconds(1234));
  CHECK(predicted.forward == cost.forward);
  CHECK(predicted.peak_memory ==
        cost.static_memory() + cost.transient + cost.activation * composition.stages[0].in_flight);
  CHECK(plan.stages[0].warmup == composition.stages[0].in_flight - 1);
  CHECK(plan.predicted.closed_form == composition.closed_form);
}

TEST_CASE("a composition that needs more than there is, is a bug") {
  World world = make_world();
  std::vector<StageSpec> stages{{4, {{2, 2, 4, strategy(1, 1, 2)}}}, {8, {{2, 2, 4, strategy(1, 1, 2)}}}};
  const auto composition = make_composition(world, 1, 4, 4, stages);
  CHECK_THROWS_AS(assemble(composition, world.fleet, world.level, world.model), std::logic_error);
}
