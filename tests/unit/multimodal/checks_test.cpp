// What is refused, and the words for it.
#include "support/catch.hpp"
#include "tangram/multimodal/colocated.hpp"
#include "tangram/multimodal/stage_graph.hpp"

using namespace tangram;
using namespace tangram::multimodal;

namespace {

StageGraph two_stages() {
  StageGraph graph;
  graph.stages.assign(2, {{.T = 30, .F = 10, .A = 35, .o = 2, .n_max = 4}});
  graph.edges = {{0, 1, {.latency = 3, .occupancy = 1}}};
  return graph;
}

// The places of what is wrong, in order.
template <class Checked>
std::vector<std::string> places(const Checked& checked) {
  std::vector<std::string> result;
  const auto answer = check(checked);
  if (answer) return result;
  for (const Diagnostic& diagnostic : answer.error()) result.push_back(diagnostic.pointer);
  return result;
}

using Places = std::vector<std::string>;

}  // namespace

TEST_CASE("a graph of stages is taken as it is, or every fault is named by its place") {
  StageGraph graph = two_stages();
  CHECK(places(graph).empty());
  SECTION("passes") {
    graph.stages[1].plan = {.T = 0, .F = 1, .A = -1, .o = -1, .n_max = 0};
    CHECK(places(graph) == Places{"/stages/1/F", "/stages/1/T", "/stages/1/A", "/stages/1/o", "/stages/1/n_max"});
  }
  SECTION("nothing to run") {
    graph = {};
    graph.microbatches = 0;
    CHECK(places(graph) == Places{"/stages", "/microbatches"});
  }
  SECTION("edges that lead back, twice, or nowhere") {
    graph.edges.push_back({1, 0, {}});
    graph.edges.push_back({0, 1, {}});
    graph.edges.push_back({1, 2, {}});
    graph.edges.push_back({0, 1, {.latency = -1}});
    CHECK(places(graph) == Places{"/edges/1", "/edges/2", "/edges/3", "/edges/4/price", "/edges/4"});
  }
  SECTION("a frozen stage behind one that is trained") {
    graph.stages[1].prefetch = 2;
    CHECK(places(graph) == Places{"/stages/1/prefetch", "/edges/0/to"});
    graph.stages[1].plan.T = graph.stages[1].plan.A = graph.stages[1].plan.F;
    CHECK(places(graph) == Places{"/edges/0/to"});
  }
  SECTION("transfers that block need the warm-ups of the graph") {
    graph.blocking_transfers = true;
    CHECK(places(graph) == Places{"/graph_warmup"});
  }
}

TEST_CASE("a colocated plan is taken as it is, or every fault is named by its place") {
  Colocated plan;
  SuperLane& own = plan.super_lanes.emplace_back();
  own.lanes.push_back({0, 10, 20});
  own.language = two_stages();
  for (Stage& stage : own.language.stages) stage.plan.A = stage.plan.T;
  CHECK(places(plan).empty());
  SECTION("no lanes, no rounds") {
    own.lanes.clear();
    plan.rounds = 0;
    CHECK(places(plan) == Places{"/rounds", "/super_lanes/0/lanes"});
  }
  SECTION("gradients of its own") {
    own.language.stages[0].plan.A += 1;
    CHECK(places(plan) == Places{"/super_lanes/0/language"});
  }
  SECTION("what is wrong with the language model") {
    own.language.microbatches = 0;
    CHECK(places(plan) == Places{"/super_lanes/0/language/microbatches"});
  }
  SECTION("lanes elsewhere") {
    own.lanes[0].stage = 2;
    own.lanes[0].forward = -1;
    plan.sync = plan.step = own.gather = -1;
    CHECK(places(plan) == Places{"/sync", "/step", "/super_lanes/0", "/super_lanes/0/lanes", "/super_lanes/0/lanes"});
  }
}
