// Members and islands that are interchangeable are chosen by what they did before.
#include <map>

#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

/// The layers that each host runs, "0-4" of all its GPUs together.
std::map<std::string, std::string> layers_by_host(const LaunchPlan& plan) {
  std::map<std::string, std::string> layers;
  for (const Rank& rank : plan.ranks) {
    const Stage& stage = plan.stage(rank.stage);
    layers[rank.host] = std::to_string(stage.first()) + "-" + std::to_string(stage.last());
  }
  return layers;
}

/// Three stages on hosts of B: two hosts, one host, one host.
compose::Composition on_b(World& world) {
  return make_composition(
      world, 1, 4, 8,
      {{3, {{1, 8, 4, strategy(4, 1, 2)}}}, {6, {{1, 4, 4, strategy(4, 1, 1)}}}, {8, {{1, 4, 4, strategy(2, 1, 2)}}}});
}

}  // namespace

TEST_CASE("islands and members change places to keep what hosts did") {
  World world = make_world();
  const compose::Composition composition = on_b(world);
  const LaunchPlan placed = assemble(composition, world.fleet, world.level, world.model);
  // As placed: island 1 holds stage 0, island 2 the stages 1 and 2 in that order.
  REQUIRE(layers_by_host(placed) ==
          std::map<std::string, std::string>{{"b0", "0-3"}, {"b1", "0-3"}, {"b2", "3-6"}, {"b3", "6-8"}});
  // Before, stage 2 was on b0, stage 1 on b1, stage 0 on b2 and b3.
  LaunchPlan before = placed;
  const std::map<std::string, std::string> other{{"b0", "b2"}, {"b1", "b3"}, {"b2", "b1"}, {"b3", "b0"}};
  for (Rank& rank : before.ranks) rank.host = other.at(rank.host);
  const LaunchPlan kept = assemble(composition, world.fleet, world.level, world.model, nullptr, &before);
  CHECK(layers_by_host(kept) == layers_by_host(before));
  LaunchPlan judged = kept;
  judged.predicted.iteration = judged.predicted.closed_form;
  judged.targets = target_verdicts(judged);
  CHECK(check(judged).violations.size() == check(make_plan(world, composition)).violations.size());
}

TEST_CASE("a plan stays where it is") {
  World world = make_world();
  const compose::Composition composition = on_b(world);
  LaunchPlan placed = assemble(composition, world.fleet, world.level, world.model);
  LaunchPlan again = assemble(composition, world.fleet, world.level, world.model, nullptr, &placed);
  CHECK(write_plan(again) == write_plan(placed));
}

TEST_CASE("what nobody did before stays where it is placed") {
  World world = make_world();
  const compose::Composition composition = on_b(world);
  LaunchPlan placed = assemble(composition, world.fleet, world.level, world.model);
  LaunchPlan stranger = placed;
  for (Rank& rank : stranger.ranks) rank.host += "-elsewhere";
  LaunchPlan again = assemble(composition, world.fleet, world.level, world.model, nullptr, &stranger);
  CHECK(write_plan(again) == write_plan(placed));
}
