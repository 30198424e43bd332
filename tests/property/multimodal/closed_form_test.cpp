// Closed forms against their definition, and against the solver's for chains.
#include "tangram/multimodal/closed_form.hpp"

#include <algorithm>

#include "definition.hpp"
#include "property/chain/random_program.hpp"
#include "property/chain/simulated_chain.hpp"
#include "random_graph.hpp"
#include "support/cases.hpp"
#include "support/catch.hpp"
#include "support/random.hpp"
#include "tangram/multimodal/timetable.hpp"

using namespace tangram;
using namespace tangram::multimodal;
using namespace tangram::tests;
using tangram::testing::cases;
using tangram::testing::enough;
using tangram::testing::pick;

namespace {

// Small numbers make ties and let every period be tried.
RandomTree small_tree(std::mt19937_64& random) {
  TreeFlavour flavour;
  flavour.most_encoders = 2;
  flavour.most_language_stages = 4;
  flavour.scale = pick(random, 3, 20);
  flavour.latency = pick(random, 0, 2) * 0.5;
  flavour.uneven_ratio = pick(random, 0, 1) == 1;
  flavour.frozen = pick(random, 0, 3) == 0;
  flavour.occupied_links = pick(random, 0, 1) == 1;
  RandomTree tree = random_tree(random, flavour);
  tree.graph.microbatches = pick(random, 1, 12);
  const std::int64_t period = slowest_stage(tree.graph) * pick(random, 90, 200) / 100;
  limit_memory(tree.graph, std::max<std::int64_t>(1, period), random, pick(random, 0, 1));
  return tree;
}

StageGraph graph_of(const chain::Program& program, const chain::Chain& chain) {
  StageGraph graph;
  graph.microbatches = program.microbatches;
  graph.graph_warmup = program.classic_warmup;
  graph.blocking_transfers = program.blocking_transfers;
  for (std::size_t s = 0; s < chain.stages.size(); ++s) {
    graph.stages.push_back({chain.stages[s].candidate});
    if (s == 0) continue;
    const int number = static_cast<int>(s);
    graph.edges.push_back({number - 1, number, chain::boundary_after(program, chain, s - 1)});
  }
  return graph;
}

// Any chain of the program whose slices have plans, good or bad.
std::optional<chain::Chain> random_chain(std::mt19937_64& random, const chain::Program& program) {
  chain::Chain chain;
  for (int first = 0; first < program.blocks;) {
    chain::ChainStage stage;
    stage.option = pick(random, 0, static_cast<int>(program.options.size()) - 1);
    stage.first = first;
    stage.last = pick(random, first + 1, program.blocks);
    const auto& plans = program.frontier(stage.option, program.signature_of(stage.first, stage.last));
    if (plans.empty()) return std::nullopt;
    stage.candidate = plans[static_cast<std::size_t>(pick(random, 0, static_cast<int>(plans.size()) - 1))];
    first = stage.last;
    chain.stages.push_back(stage);
  }
  return chain;
}

}  // namespace

TEST_CASE("closed forms of trees are what the definition says") {
  std::mt19937_64 random(3);
  int none = 0;
  int by_memory = 0;
  for (int i = 0; i < cases(4000); ++i) {
    StageGraph graph = small_tree(random).graph;
    graph.graph_warmup = i % 3 == 0;
    INFO("case " << i);
    REQUIRE(check(graph).has_value());
    const auto form = closed_form(graph);
    const auto truth = defined_form(graph);
    REQUIRE(form.has_value() == truth.has_value());
    none += truth ? 0 : 1;
    if (!truth) continue;
    REQUIRE(form->period == truth->period);
    REQUIRE(form->time == truth->time);
    by_memory += form->period > slowest_stage(graph) ? 1 : 0;
    if (graph.graph_warmup) continue;
    REQUIRE(form->in_flight == least_in_flight(graph, form->period));
  }
  CHECK(none >= enough(100));
  CHECK(by_memory >= enough(500));
}

TEST_CASE("for a chain the closed form is the solver's, and the timetable the simulator's") {
  std::mt19937_64 random(5);
  int compared = 0;
  int blocking = 0;
  int infeasible = 0;
  for (int i = 0; i < cases(20000); ++i) {
    Flavour flavour;
    flavour.most_microbatches = 16;
    flavour.tight_memory = i % 2 == 0;
    flavour.placement = i % 5 == 0;
    chain::Program program = random_program(random, flavour);
    program.classic_warmup = i % 3 != 0;
    program.blocking_transfers = i % 3 == 2;
    auto chain = random_chain(random, program);
    if (!chain) continue;
    INFO("case " << i);
    const StageGraph graph = graph_of(program, *chain);
    const auto form = closed_form(graph);
    const bool feasible = chain::evaluate(program, *chain);
    REQUIRE(form.has_value() == feasible);
    infeasible += feasible ? 0 : 1;
    if (!feasible) continue;
    REQUIRE(form->period == chain->period);
    REQUIRE(form->time == chain->time);
    for (std::size_t s = 0; s < chain->stages.size(); ++s) {
      REQUIRE(std::min(form->in_flight[s], graph.microbatches) == chain::held_by(program, *chain, s));
    }
    const auto transfers = graph.blocking_transfers ? simulate::Transfers::kBlocking : simulate::Transfers::kOverlapped;
    REQUIRE(timetable(graph, form->in_flight) == simulated(program, *chain, transfers));
    ++compared;
    blocking += graph.blocking_transfers ? 1 : 0;
  }
  CHECK(compared >= enough(3000));
  CHECK(blocking >= enough(1000));
  CHECK(infeasible >= enough(500));
}
