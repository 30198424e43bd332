#include "tangram/evolve/refit.hpp"
#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::evolve;
using namespace tangram::plan::example;

namespace {

/// Stage 0 of four blocks on a0, stage 1 on b0 and b1.
plan::LaunchPlan plan_of_two_stages(World& world) {
  return make_plan(world, make_composition(world, 1, 4, 8,
                                           {{4, {{0, 8, 4, strategy(2, 1, 4)}}}, {8, {{1, 8, 4, strategy(4, 1, 2)}}}}));
}

cluster::Node& node(cluster::Fleet& fleet, const std::string& name) {
  const auto found = std::ranges::find(fleet.nodes, name, &cluster::Node::name);
  REQUIRE(found != fleet.nodes.end());
  return *found;
}

void slow_down(cluster::Fleet& fleet, const std::string& name, double share) {
  cluster::GpuType& device = node(fleet, name).groups.front().device;
  device.compute.gemm_efficiency *= share;
}

Nanoseconds pass(const plan::LaunchPlan& plan, std::size_t stage) {
  const auto& predicted = plan.stages[stage].parts.front().predicted;
  return predicted.forward + predicted.backward;
}

}  // namespace

TEST_CASE("a plan fits the fleet it was priced on, and refitting it again changes nothing") {
  World world = make_world();
  const Refit once = refit(plan_of_two_stages(world), world.fleet, world.model, {});
  REQUIRE(once.fits());
  CHECK(once.gone.empty());
  CHECK(plan::check(*once.plan, world.fleet, &world.model).ok());
  const Refit twice = refit(*once.plan, world.fleet, world.model, {});
  REQUIRE(twice.fits());
  CHECK(plan::plan_digest(*twice.plan) == plan::plan_digest(*once.plan));
  CHECK(slowdowns(*once.plan, *twice.plan, world.fleet).empty());
}

TEST_CASE("GPUs that are gone are named, and nothing is priced") {
  World world = make_world();
  const plan::LaunchPlan old = plan_of_two_stages(world);
  std::erase_if(world.fleet.nodes, [](const cluster::Node& n) { return n.name == "b1"; });
  node(world.fleet, "a0").groups.front().count = 7;
  const Refit now = refit(old, world.fleet, world.model, {});
  CHECK_FALSE(now.fits());
  CHECK_FALSE(now.plan);
  CHECK(now.gone == std::vector<Gpu>{{"a0", 7}, {"b1", 0}, {"b1", 1}, {"b1", 2}, {"b1", 3}});
}

TEST_CASE("another model or another batch is not what the plan is for; other permissions do not matter") {
  World world = make_world();
  const plan::LaunchPlan old = plan_of_two_stages(world);
  model::Model other = world.model;
  other.job.global_batch *= 2;
  CHECK(refit(old, world.fleet, other, {}).incompatibilities.at(0).code == "other-job");
  other.vocabulary += 1;
  CHECK(refit(old, world.fleet, other, {}).incompatibilities.at(0).code == "other-model");
  other = world.model;
  other.job.allow.ep = false;
  CHECK(refit(old, world.fleet, other, {}).fits());
}

TEST_CASE("one slow host slows its whole part down, no other, and is named") {
  World world = make_world();
  const Refit before = refit(plan_of_two_stages(world), world.fleet, world.model, {});
  slow_down(world.fleet, "b1", 0.5);
  const Refit now = refit(*before.plan, world.fleet, world.model, {});
  REQUIRE(now.fits());
  CHECK(plan::check(*now.plan, world.fleet, &world.model).ok());
  CHECK(pass(*now.plan, 0) == pass(*before.plan, 0));
  CHECK(pass(*now.plan, 1) > pass(*before.plan, 1));
  const auto slower = slowdowns(*before.plan, *now.plan, world.fleet);
  REQUIRE(slower.size() == 1);
  CHECK(slower[0].stage == 1);
  CHECK(slower[0].hosts == std::vector<std::string>{"b1"});
  CHECK(slower[0].factor == Approx(pass(*now.plan, 1).as_double() / pass(*before.plan, 1).as_double()));
}

TEST_CASE("all hosts slower: the same time as if each were the slow one, and no host is named") {
  World world = make_world();
  const Refit before = refit(plan_of_two_stages(world), world.fleet, world.model, {});
  cluster::Fleet one = world.fleet;
  slow_down(one, "b1", 0.5);
  slow_down(world.fleet, "b0", 0.5);
  slow_down(world.fleet, "b1", 0.5);
  const Refit both = refit(*before.plan, world.fleet, world.model, {});
  const Refit single = refit(*before.plan, one, world.model, {});
  REQUIRE((both.fits() && single.fits()));
  CHECK(pass(*both.plan, 1) == pass(*single.plan, 1));
  CHECK(slowdowns(*before.plan, *both.plan, world.fleet).at(0).hosts.empty());
}

TEST_CASE("memory that is gone is an incompatibility that the check finds") {
  World world = make_world();
  const plan::LaunchPlan old = plan_of_two_stages(world);
  const Bytes needed = old.stages[0].parts[0].predicted.peak_memory;
  cluster::GpuType& device = node(world.fleet, "a0").groups.front().device;
  device.memory = device.reserved + needed - Bytes(1);
  const Refit now = refit(old, world.fleet, world.model, {});
  REQUIRE(now.plan);
  REQUIRE_FALSE(now.fits());
  CHECK(now.incompatibilities[0].code == "memory-exceeded");
  CHECK(now.incompatibilities[0].where == "stage 0 part 0");
}

TEST_CASE("a plan whose stages do not hold every layer once is not priced") {
  World world = make_world();
  plan::LaunchPlan old = plan_of_two_stages(world);
  std::swap(old.pipelines[0].stages[0], old.pipelines[0].stages[1]);
  CHECK(refit(old, world.fleet, world.model, {}).incompatibilities.at(0).code == "broken-chain");
  old = plan_of_two_stages(world);
  old.stages[1].chunks.front().first = 0;
  CHECK(refit(old, world.fleet, world.model, {}).incompatibilities.at(0).code == "broken-chain");
}

TEST_CASE("spare hosts of the same kind take over") {
  World world = make_world();
  const plan::LaunchPlan old = plan_of_two_stages(world);
  const std::vector<Gpu> gone{{"b1", 0}, {"b1", 1}, {"b1", 2}, {"b1", 3}};
  std::erase_if(world.fleet.nodes, [](const cluster::Node& n) { return n.name == "b1"; });
  // b0 is in use; b2 is the first host with four B in the same places.
  const auto repaired = with_spares(old, gone, world.fleet);
  REQUIRE(repaired);
  const GpuCounts counts = count_roles(roles_of(old), roles_of(*repaired));
  CHECK(counts == GpuCounts{12, 0, 4, 4});
  CHECK(repaired->ranks.back().host == "b2");
  CHECK(refit(*repaired, world.fleet, world.model, {}).fits());
}

TEST_CASE("two hosts are gone and one spare is not enough") {
  World world = make_world();
  const plan::LaunchPlan old = plan_of_two_stages(world);
  std::erase_if(world.fleet.nodes, [](const cluster::Node& n) { return n.name[0] == 'b' && n.name != "b2"; });
  const Refit now = refit(old, world.fleet, world.model, {});
  CHECK(now.gone.size() == 8);
  CHECK_FALSE(with_spares(old, now.gone, world.fleet));
}

TEST_CASE("a plan of interleaved chunks is priced anew, chunk by chunk") {
  const World world = make_world();
  const plan::LaunchPlan plan = interleaved_plan();
  const Refit now = refit(plan, world.fleet, plan.model, {});
  REQUIRE(now.fits());
  CHECK(now.plan->group == plan.group);
  REQUIRE(now.plan->stages.size() == plan.stages.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    CHECK(now.plan->stages[s].chunks == plan.stages[s].chunks);
    CHECK(now.plan->stages[s].warmup == plan.stages[s].warmup);
  }
  CHECK(now.plan->boundaries.size() == plan.boundaries.size());
  CHECK(now.plan->predicted.closed_form > Nanoseconds(0));
}
