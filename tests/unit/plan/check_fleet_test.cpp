#include <algorithm>
#include <functional>

#include "support/catch.hpp"
#include "tangram/plan/check.hpp"
#include "unit/plan/example.hpp"

using namespace tangram;
using namespace tangram::plan;
using namespace tangram::plan::example;

namespace {

std::string codes(const CheckReport& report) {
  std::string text;
  for (const auto& v : report.violations) text += v.code + " (" + v.where + ": " + v.message + ") ";
  return text;
}

}  // namespace

TEST_CASE("a plan holds on the fleet and the model it was made for") {
  World world = make_world();
  const LaunchPlan plan = good_plan(world);
  CHECK(codes(check(plan, world.fleet, &world.model)).empty());
  CHECK(codes(check(plan, world.fleet, nullptr)).empty());
}

TEST_CASE("replicas on several hosts do not exchange gradients faster than the fleet's networks") {
  World world = make_world();
  const compose::Composition composition = make_composition(world, 2, 4, 8, {{8, {{0, 4, 4, strategy(2, 1, 2)}}}});
  const Nanoseconds crossing = composition.stages[0].crossing;
  REQUIRE(crossing > Nanoseconds(0));
  const LaunchPlan plan = make_plan(world, composition);
  const auto on_one_host = [](const LaunchPlan& p) {
    return std::ranges::all_of(p.ranks, [&](const Rank& rank) { return rank.host == p.ranks.front().host; });
  };
  const auto found = [&](const LaunchPlan& p) {
    return codes(check(p, world.fleet, &world.model)).find("sync-better-than-fleet") != std::string::npos;
  };
  CHECK_FALSE(found(plan));
  LaunchPlan fast = plan;
  for (Stage& stage : fast.stages) {
    for (Part& part : stage.parts) part.predicted.gradient_sync -= crossing;
  }
  CHECK(found(fast) != on_one_host(plan));
  LaunchPlan apart = fast;
  for (Rank& rank : apart.ranks) rank.host = world.fleet.nodes[rank.replica == 0 ? 0 : 1].name;
  CHECK(found(apart));
  // Of what no network can say nothing is said.
  for (Rank& rank : fast.ranks) rank.host = world.fleet.nodes[0].name;
  CHECK_FALSE(found(fast));
}

TEST_CASE("a plan for another fleet or model is found out") {
  struct Change {
    std::string code;
    std::function<void(World&)> make;
  };
  const std::vector<Change> changes{
      {"host-unknown", [](World& w) { w.fleet.nodes[0].name = std::string("a9"); }},
      {"gpu-unknown", [](World& w) { w.fleet.nodes[0].groups[0].count = w.fleet.nodes[0].groups[0].clique = 6; }},
      {"fleet-size", [](World& w) { w.fleet.nodes[0].groups[0].count += 8; }},
      {"gpu-type-differs", [](World& w) { w.fleet.nodes[0].groups[0].device = w.fleet.nodes[2].groups[0].device; }},
      {"price-below-fleet", [](World& w) { w.fleet.nodes[0].price_per_hour = Dollars(1000); }},
      {"gpu-better-than-fleet", [](World& w) { w.fleet.nodes[1].groups[0].device.memory -= Bytes(1); }},
      {"gpu-better-than-fleet",
       [](World& w) { w.fleet.nodes[3].groups[0].device.memory_bandwidth = BytesPerSecond(8e11); }},
      {"link-better-than-fleet", [](World& w) { w.fleet.nodes[0].groups[0].link.bandwidth = BytesPerSecond(2e11); }},
      {"link-better-than-fleet", [](World& w) { w.fleet.nodes[3].network.bandwidth = BytesPerSecond(4e9); }},
      {"link-better-than-fleet", [](World& w) { w.fleet.nodes[3].network.latency = Nanoseconds(40'000); }},
      {"model-differs", [](World& w) { w.model.vocabulary += 1; }},
      {"model-differs", [](World& w) { w.model.job.global_batch += 1; }},
  };
  World world = make_world();
  const LaunchPlan plan = good_plan(world);
  for (const auto& change : changes) {
    World other = world;
    change.make(other);
    const CheckReport report = check(plan, other.fleet, &other.model);
    INFO(change.code << ": " << codes(report));
    CHECK(std::ranges::any_of(report.violations, [&](const Violation& v) { return v.code == change.code; }));
  }
}
