// Pipelines that are not alike, on random fleets: what the search returns is a plan that the judge accepts, with the
// batch and the islands allocated to the last.
#include <algorithm>
#include <random>
#include <set>
#include <string>

#include "support/cases.hpp"
#include "support/catch.hpp"
#include "tangram/ensemble/ensemble.hpp"
#include "tangram/evolve/refit.hpp"
#include "tangram/parallelizer/parallelizer.hpp"
#include "tangram/plan/assemble.hpp"
#include "tangram/plan/check.hpp"
#include "tangram/simulate/simulate.hpp"

using namespace tangram;
using tangram::testing::cases;
using tangram::testing::enough;

namespace {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  int below(int count) { return static_cast<int>(random_() % static_cast<std::uint64_t>(count)); }
  template <std::size_t N>
  std::string of(const char* const (&texts)[N]) {
    return texts[below(static_cast<int>(N))];
  }

 private:
  std::mt19937_64 random_;
};

std::string random_fleet(Draws& draws) {
  std::string nodes;
  const int kinds = 1 + draws.below(3);
  for (int k = 0; k < kinds; ++k) {
    const std::string name = std::string(1, static_cast<char>('a' + k));
    nodes += std::string(k == 0 ? "" : ",") + R"({"name": ")" + name + "-[1-" + std::to_string(1 + draws.below(4)) +
             R"(]", "gpus": [{"type": ")" + draws.of({"A100-40GB-SXM", "V100-16GB-SXM", "T4"}) + R"(", "count": )" +
             draws.of({"1", "2", "4"}) + R"(}], "network": {"bandwidth_gbit_s": )" + draws.of({"25", "100", "400"}) +
             R"(, "kind": "ethernet"}, "labels": {"zone": ")" + draws.of({"x", "y"}) + R"("}})";
  }
  return R"({"schema": "tangram.cluster/1", "name": "random", "nodes": [)" + nodes +
         R"(], "links": [{"between": "zone", "bandwidth_gbit_s": )" + draws.of({"5", "50"}) +
         R"(, "latency_us": 500}]})";
}

std::string random_model(Draws& draws) {
  return "schema: tangram.model/1\nname: random\narchitecture:\n  vocabulary: 32000\n  hidden: 2048\n  layers: " +
         draws.of({"3", "8", "12"}) +
         "\n  heads: 16\n  ffn_hidden: 5504\n  tied_embeddings: " + draws.of({"true", "false"}) +
         "\ntraining:\n  sequence_length: 2048\n  global_batch_samples: " + draws.of({"21", "96", "192", "256"}) + "\n";
}

struct World {
  cluster::Fleet fleet;
  cluster::IslandHierarchy hierarchy;
  model::Model model;
};

World random_world(Draws& draws) {
  auto fleet = cluster::read_fleet(random_fleet(draws), "fleet.json");
  auto model = model::read_model(random_model(draws), "model.yaml");
  INFO((fleet ? "" : render(fleet.error())) << (model ? "" : render(model.error())));
  REQUIRE((fleet && model));
  return {*fleet, cluster::find_islands(*fleet, 0.10), *model};
}

/// No GPU in two groups, none from elsewhere.
void require_dealt(const compose::Ensemble& ensemble, const cluster::IslandLevel& level) {
  for (std::size_t k = 0; k < level.classes.size(); ++k) {
    std::set<std::pair<std::size_t, int>> given;  // node, first GPU
    for (const compose::PipelineGroup& group : ensemble.groups) {
      for (const int id : group.level.classes[k].islands) {
        REQUIRE(std::ranges::count(level.classes[k].islands, id) == 1);
        const auto& members = group.level.islands[static_cast<std::size_t>(id)].members;
        REQUIRE(static_cast<int>(members.size()) == group.level.classes[k].members_per_island);
        for (const cluster::IslandMember& m : members) REQUIRE(given.insert({m.node, m.first_gpu}).second);
      }
    }
    REQUIRE(static_cast<int>(given.size()) <= level.classes[k].member_count());
  }
}

plan::LaunchPlan require_sound(const compose::Ensemble& ensemble, const World& world) {
  const cluster::IslandLevel& level = world.hierarchy.levels[static_cast<std::size_t>(ensemble.level)];
  REQUIRE(ensemble.groups.size() > 1);
  require_dealt(ensemble, level);
  plan::LaunchPlan plan = plan::assemble(ensemble, world.fleet, level, world.model);
  const simulate::Result simulated = simulate::simulate(simulate::schedule_of(plan));
  REQUIRE_FALSE(simulated.deadlock);
  simulate::predict(plan, simulated, FlopsPerSecond(1e15));
  plan.targets = plan::target_verdicts(plan);
  const plan::CheckReport report = plan::check(plan, world.fleet, &world.model);
  for (const plan::Violation& v : report.violations) FAIL_CHECK(v.code << " " << v.where << " " << v.message);
  REQUIRE(report.ok());
  for (const plan::Stage& stage : plan.stages) {
    for (const plan::Part& part : stage.parts) {
      REQUIRE(part.predicted.gradient_sync >= part.predicted.gradient_sync_exposed);
    }
  }
  return plan;
}

/// On the fleet it was made for, a plan exchanges the gradients that it exchanged when it was made.
void require_same_syncs(const plan::LaunchPlan& plan, const World& world) {
  const evolve::Refit now = evolve::refit(plan, world.fleet, world.model, {});
  REQUIRE(now.plan);
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    for (std::size_t p = 0; p < plan.stages[s].parts.size(); ++p) {
      const plan::PartPrediction& then = plan.stages[s].parts[p].predicted;
      const plan::PartPrediction& today = now.plan->stages[s].parts[p].predicted;
      INFO("stage " << s << " part " << p);
      CHECK(today.gradient_sync == then.gradient_sync);
      CHECK(today.gradient_sync_exposed == then.gradient_sync_exposed);
    }
  }
}

}  // namespace

TEST_CASE("property ensemble: what is found is sound, and beats what was to beat") {
  Draws draws(42);
  int found = 0;
  int faster = 0;
  for (int i = 0; i < cases(40); ++i) {
    const World world = random_world(draws);
    const auto enumerator = parallelizer::make_enumerator(world.model);
    const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get()};
    compose::SearchOptions options;
    options.label_budget = 100'000;
    const compose::SearchResult equal = compose::search(world.model, world.hierarchy, parallelizers, options);
    if (equal.best.empty()) continue;
    // Any that is not twice as slow, so that there is something to look at.
    options.incumbent = equal.best.front().closed_form * 2;
    const ensemble::EnsembleSearch search =
        ensemble::search_ensemble(world.model, world.hierarchy, parallelizers, options);
    if (!search.best) continue;
    ++found;
    INFO("case " << i);
    REQUIRE(search.best->closed_form < options.incumbent);
    require_same_syncs(require_sound(*search.best, world), world);
    if (search.best->closed_form < equal.best.front().closed_form) ++faster;
  }
  CHECK(found >= enough(10));
  CHECK(faster >= enough(2));
}

TEST_CASE("property ensemble: three alike hosts train as three pipelines") {
  // One or two equal pipelines cannot share the hosts as well as three can.
  auto fleet = cluster::read_fleet(
      R"({"schema": "tangram.cluster/1", "name": "three", "nodes": [{"name": "n-[1-3]",
          "gpus": [{"type": "A100-40GB-SXM", "count": 1}], "network": {"bandwidth_gbit_s": 200, "kind": "ethernet"}}]})",
      "three.json");
  auto model = model::read_model(
      "schema: tangram.model/1\nname: m\narchitecture:\n  vocabulary: 1024\n  hidden: 1024\n  layers: 7\n  heads: 16\n"
      "  ffn_hidden: 4096\ntraining:\n  sequence_length: 2048\n  global_batch_samples: 96\n",
      "m.yaml");
  REQUIRE((fleet && model));
  model->job.allow.dp = false;  // else one stage with its samples on all three is as good
  const World world{*fleet, cluster::find_islands(*fleet, 0.10), *model};
  const auto enumerator = parallelizer::make_enumerator(world.model);
  const parallelizer::Parallelizer* const parallelizers[] = {enumerator.get()};
  compose::SearchOptions options;
  const compose::SearchResult three = compose::search(world.model, world.hierarchy, parallelizers, options);
  REQUIRE_FALSE(three.best.empty());
  CHECK(three.best.front().replicas == 3);
  options.max_replicas = 2;
  const compose::SearchResult equal = compose::search(world.model, world.hierarchy, parallelizers, options);
  REQUIRE_FALSE(equal.best.empty());
  options.max_replicas = 3;
  options.incumbent = equal.best.front().closed_form;
  const ensemble::EnsembleSearch search =
      ensemble::search_ensemble(world.model, world.hierarchy, parallelizers, options);
  REQUIRE(search.best);
  int pipelines = 0;
  for (const compose::PipelineGroup& group : search.best->groups) pipelines += group.composition.replicas;
  CHECK(pipelines == 3);
  static_cast<void>(require_sound(*search.best, world));
  // Seven layers over three hosts: one has three, where 7/3 would do.
  CHECK(to_seconds(search.best->closed_form) < 0.9 * to_seconds(options.incumbent));

  options.max_replicas = 2;
  const ensemble::EnsembleSearch fewer =
      ensemble::search_ensemble(world.model, world.hierarchy, parallelizers, options);
  if (fewer.best)
    CHECK(plan::assemble(*fewer.best, world.fleet, world.hierarchy.levels.front(), world.model).pipelines.size() == 2);
  options.max_replicas = 1;
  CHECK_FALSE(ensemble::search_ensemble(world.model, world.hierarchy, parallelizers, options).best);
}
