#include "definition.hpp"

#include <algorithm>
#include <functional>

#include "tangram/base/at.hpp"

namespace tangram::tests {

namespace {

using multimodal::Edge;
using multimodal::Stage;
using multimodal::StageGraph;

// Calls `visit(stage, T and 2 c on the way)` for every stage behind `from`, once for every path there.
void follow(const StageGraph& graph, int from, std::int64_t way, const std::function<void(int, std::int64_t)>& visit) {
  way += at(graph.stages, from).plan.T;
  visit(from, way);
  for (const Edge& edge : graph.edges) {
    if (edge.from == from) follow(graph, edge.to, way + 2 * edge.price.latency, visit);
  }
}

// The longest chain of passes that ends with the backward pass of a stage: forward from a source to a sink, and back.
struct Ways {
  std::vector<std::int64_t> there;  // until the forward pass of a stage ends
  std::vector<std::int64_t> back;   // until its backward pass ends, of its own if it has none

  explicit Ways(const StageGraph& graph) : there(graph.stages.size(), 0), back(graph.stages.size(), 0) {
    for (std::size_t s = 0; s < graph.stages.size(); ++s) {
      const bool is_source =
          std::ranges::none_of(graph.edges, [&](const Edge& e) { return e.to == static_cast<int>(s); });
      if (is_source) go(graph, static_cast<int>(s), 0);
    }
  }

 private:
  void go(const StageGraph& graph, int stage, std::int64_t now) {
    now += at(graph.stages, stage).plan.F;
    at(there, stage) = std::max(at(there, stage), now);
    bool is_sink = true;
    for (const Edge& edge : graph.edges) {
      if (edge.from != stage) continue;
      is_sink = false;
      go(graph, edge.to, now + edge.price.latency);
    }
    if (is_sink) come(graph, stage, now);
    if (at(graph.stages, stage).is_frozen()) at(back, stage) = std::max(at(back, stage), now);
  }

  void come(const StageGraph& graph, int stage, std::int64_t now) {
    if (at(graph.stages, stage).is_frozen()) return;
    now += at(graph.stages, stage).backward();
    at(back, stage) = std::max(at(back, stage), now);
    for (const Edge& edge : graph.edges) {
      if (edge.to == stage) come(graph, edge.from, now + edge.price.latency);
    }
  }
};

// Stages of the longest path to a stage, less itself.
std::int64_t in_front(const StageGraph& graph, int stage) {
  std::int64_t most = 0;
  for (const Edge& edge : graph.edges) {
    if (edge.to == stage) most = std::max(most, in_front(graph, edge.from) + 1);
  }
  return most;
}

// Microbatches in flight with the warm-ups of the longest path.
std::vector<std::int64_t> warm_in_flight(const StageGraph& graph) {
  std::vector<std::int64_t> before;
  for (std::size_t s = 0; s < graph.stages.size(); ++s) before.push_back(in_front(graph, static_cast<int>(s)));
  const std::int64_t longest = *std::ranges::max_element(before);
  for (std::int64_t& stages : before) stages = longest - stages + 1;
  return before;
}

// What stages must hold at a period, no less than `n`.
std::vector<std::int64_t> raised(const StageGraph& graph, std::int64_t period, std::vector<std::int64_t> n) {
  for (std::size_t s = n.size(); s-- > 0;) {
    const Stage& stage = graph.stages[s];
    if (stage.is_frozen()) {
      n[s] = stage.prefetch;
      continue;
    }
    follow(graph, static_cast<int>(s), 0, [&](int behind, std::int64_t way) {
      if (behind == static_cast<int>(s)) return;
      n[s] = std::max({n[s], at(n, behind) + 1, at(n, behind) - 1 + (way + period - 1) / period});
    });
  }
  return n;
}

// Warm-ups of the graph are what they are: a stage that needs more waits, if not all of its microbatches are in flight.
bool holds(const StageGraph& graph, std::int64_t period) {
  const std::vector<std::int64_t> warm = warm_in_flight(graph);
  const std::vector<std::int64_t> needed =
      graph.graph_warmup ? raised(graph, period, warm) : least_in_flight(graph, period);
  for (std::size_t s = 0; s < needed.size(); ++s) {
    const Stage& stage = graph.stages[s];
    if (graph.graph_warmup && !stage.is_frozen() && needed[s] > warm[s] && warm[s] < graph.microbatches) return false;
    const std::int64_t held = graph.graph_warmup && !stage.is_frozen() ? warm[s] : needed[s];
    if (std::min(held, graph.microbatches) > stage.plan.n_max) return false;
  }
  return true;
}

}  // namespace

std::vector<std::int64_t> least_in_flight(const StageGraph& graph, std::int64_t period) {
  return raised(graph, period, std::vector<std::int64_t>(graph.stages.size(), 1));
}

std::optional<DefinedForm> defined_form(const StageGraph& graph) {
  std::int64_t shortest = 1;
  std::int64_t longest = 0;
  std::int64_t step = 0;
  std::int64_t end = 0;
  const Ways ways(graph);
  for (std::size_t s = 0; s < graph.stages.size(); ++s) {
    const Stage& stage = graph.stages[s];
    shortest = std::max(shortest, stage.plan.T);
    longest += stage.plan.T;
    step = std::max(step, stage.plan.o);
    end = std::max(end, ways.back[s] + stage.plan.A - stage.plan.T);
  }
  for (const Edge& edge : graph.edges) {
    const Stage& from = at(graph.stages, edge.from);
    shortest = std::max(shortest, edge.price.occupancy);
    longest += 2 * edge.price.latency;
    if (!from.is_frozen() || from.prefetch >= graph.microbatches) continue;
    while (shortest * from.prefetch < from.plan.F + edge.price.latency) ++shortest;
  }
  for (std::int64_t period = shortest; period <= std::max(shortest, longest); ++period) {
    if (holds(graph, period)) return DefinedForm{period, end + (graph.microbatches - 1) * period + step};
  }
  return std::nullopt;
}

}  // namespace tangram::tests
