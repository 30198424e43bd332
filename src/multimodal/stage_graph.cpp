#include "tangram/multimodal/stage_graph.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "faults.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

class GraphCheck {
 public:
  explicit GraphCheck(const StageGraph& graph) : graph_(graph) {}

  Expected<void> run() {
    faults_.need(!graph_.stages.empty(), "/stages", "at least one stage is needed");
    faults_.need(graph_.microbatches > 0, "/microbatches", "at least one microbatch is needed");
    faults_.need(graph_.graph_warmup || !graph_.blocking_transfers, "/graph_warmup",
                 "transfers that block need graph warm-ups: with others, stages wait for each other for ever");
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) stage("/stages/" + std::to_string(s), graph_.stages[s]);
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) edge("/edges/" + std::to_string(e), graph_.edges[e]);
    return std::move(faults_).answer();
  }

 private:
  void stage(const std::string& place, const Stage& stage) {
    const Candidate& plan = stage.plan;
    const bool fits = plan.F >= 0 && plan.F <= plan.T;
    faults_.need(fits, place + "/F", "a forward pass takes no less than nothing and no more than T");
    faults_.need(plan.T > 0, place + "/T", "a microbatch takes more than nothing");
    faults_.need(plan.A >= plan.T, place + "/A", "A is T and what is synchronised: no less than T");
    faults_.need(plan.o >= 0, place + "/o", "an optimizer step takes no less than nothing");
    faults_.need(plan.n_max > 0, place + "/n_max", "a stage holds at least one microbatch");
    faults_.need(stage.prefetch >= 0, place + "/prefetch",
                 "0 for a stage with a backward pass, else the depth of the prefetch");
    const bool only_forward = plan.T == plan.F && plan.A == plan.T;
    faults_.need(!stage.is_frozen() || only_forward, place + "/prefetch",
                 "a frozen stage has no backward pass and no gradients");
  }

  void edge(const std::string& place, const Edge& edge) {
    const bool exist = edge.from >= 0 && edge.from < edge.to && edge.to < static_cast<int>(graph_.stages.size());
    faults_.need(exist, place, "an edge leads from a stage to a later one");
    if (!exist) return;
    faults_.need(edge.price.latency >= 0 && edge.price.occupancy >= 0, place + "/price",
                 "latency and occupancy are not negative");
    faults_.need(pairs_.emplace(edge.from, edge.to).second, place, "one edge at most between two stages");
    const bool gradients_end = at(graph_.stages, edge.from).is_frozen() || !at(graph_.stages, edge.to).is_frozen();
    faults_.need(gradients_end, place + "/to", "a stage behind one that is trained has a backward pass");
  }

  const StageGraph& graph_;
  std::set<std::pair<int, int>> pairs_;
  Faults faults_{"stage-graph"};
};

}  // namespace

Expected<void> check(const StageGraph& graph) { return GraphCheck(graph).run(); }

std::vector<std::int64_t> graph_warmups(const StageGraph& graph) {
  // Edges in any order: stages are, so that those in front of a stage are known before it.
  std::vector<std::vector<int>> readers(graph.stages.size());
  for (const Edge& edge : graph.edges) at(readers, edge.from).push_back(edge.to);
  std::vector<std::int64_t> in_front(graph.stages.size(), 0);
  for (std::size_t s = 0; s < readers.size(); ++s) {
    for (const int reader : readers[s]) at(in_front, reader) = std::max(at(in_front, reader), in_front[s] + 1);
  }
  const std::int64_t longest = *std::ranges::max_element(in_front);
  std::vector<std::int64_t> warmups;
  for (const std::int64_t before : in_front) warmups.push_back(longest - before);
  return warmups;
}

InFlight in_flight_of(const Stage& stage, std::int64_t microbatches, std::optional<std::int64_t> warmup) {
  constexpr InFlight kNone{1, 0};
  constexpr InFlight kAny{};
  const std::int64_t memory = stage.plan.n_max;
  if (stage.is_frozen()) return std::min(stage.prefetch, microbatches) > memory ? kNone : kAny;
  if (!warmup) return memory >= microbatches ? kAny : InFlight{1, memory};
  if (std::min(*warmup + 1, microbatches) > memory) return kNone;
  return *warmup + 1 >= microbatches ? kAny : InFlight{*warmup + 1, *warmup + 1};
}

}  // namespace tangram::multimodal
