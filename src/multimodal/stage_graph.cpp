#include "tangram/multimodal/stage_graph.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

class GraphCheck {
 public:
  explicit GraphCheck(const StageGraph& graph) : graph_(graph) {}

  Diagnostics run() {
    need(!graph_.stages.empty(), "/stages", "at least one stage is needed");
    need(graph_.microbatches > 0, "/microbatches", "at least one microbatch is needed");
    need(graph_.graph_warmup || !graph_.blocking_transfers, "/graph_warmup",
         "transfers that block need graph warm-ups: with others, stages wait for each other for ever");
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
      place_ = "/stages/" + std::to_string(s);
      stage(graph_.stages[s]);
    }
    for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
      place_ = "/edges/" + std::to_string(e);
      edge(graph_.edges[e]);
    }
    return std::move(found_);
  }

 private:
  void need(bool holds, std::string_view key, std::string_view what) {
    if (holds) return;
    Diagnostic diagnostic;
    diagnostic.code = "stage-graph";
    diagnostic.pointer = place_ + std::string(key);
    diagnostic.message = std::string(what);
    found_.push_back(std::move(diagnostic));
  }

  void stage(const Stage& stage) {
    const Candidate& plan = stage.plan;
    need(plan.F >= 0 && plan.F <= plan.T, "/F", "a forward pass takes no less than nothing and no more than T");
    need(plan.T > 0, "/T", "a microbatch takes more than nothing");
    need(plan.A >= plan.T, "/A", "A is T and what is synchronised: no less than T");
    need(plan.o >= 0, "/o", "an optimizer step takes no less than nothing");
    need(plan.n_max > 0, "/n_max", "a stage holds at least one microbatch");
    need(stage.prefetch >= 0, "/prefetch", "0 for a stage with a backward pass, else the depth of the prefetch");
    const bool only_forward = plan.T == plan.F && plan.A == plan.T;
    need(!stage.is_frozen() || only_forward, "/prefetch", "a frozen stage has no backward pass and no gradients");
  }

  void edge(const Edge& edge) {
    const bool exist = edge.from >= 0 && edge.from < edge.to && edge.to < static_cast<int>(graph_.stages.size());
    need(exist, "", "an edge leads from a stage to a later one");
    if (!exist) return;
    need(edge.price.latency >= 0 && edge.price.occupancy >= 0, "/price", "latency and occupancy are not negative");
    need(pairs_.emplace(edge.from, edge.to).second, "", "one edge at most between two stages");
    const bool gradients_end = at(graph_.stages, edge.from).is_frozen() || !at(graph_.stages, edge.to).is_frozen();
    need(gradients_end, "/to", "a stage behind one that is trained has a backward pass");
  }

  const StageGraph& graph_;
  std::string place_;
  std::set<std::pair<int, int>> pairs_;
  Diagnostics found_;
};

}  // namespace

Expected<void> check(const StageGraph& graph) {
  Diagnostics found = GraphCheck(graph).run();
  if (found.empty()) return {};
  return fail(std::move(found));
}

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
