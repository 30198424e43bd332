#include "earliest_starts.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

class StartsOfGraph {
 public:
  StartsOfGraph(const StageGraph& graph, const Neighbours& neighbours) : graph_(graph), neighbours_(neighbours) {
    starts_.phi.assign(graph.stages.size(), 0);
    starts_.back.assign(graph.stages.size(), 0);
  }

  EarliestStarts run() {
    forward_passes();
    backward_passes();
    return std::move(starts_);
  }

 private:
  void forward_passes() {
    leaves_.assign(graph_.edges.size(), 0);
    for (std::size_t s = 0; s < graph_.stages.size(); ++s) {
      starts_.phi[s] = arrival(neighbours_.in[s]);
      leave(starts_.phi[s] + graph_.stages[s].plan.F, neighbours_.out[s]);
    }
  }

  void backward_passes() {
    leaves_.assign(graph_.edges.size(), 0);
    for (std::size_t s = graph_.stages.size(); s-- > 0;) {
      const Stage& stage = graph_.stages[s];
      const bool is_last = stage.is_frozen() || neighbours_.out[s].empty();
      starts_.back[s] = is_last ? starts_.phi[s] + stage.plan.F : arrival(neighbours_.out[s]);
      if (stage.is_frozen()) continue;
      std::vector<int> trained = neighbours_.in[s];
      std::erase_if(trained, [&](int e) { return at(graph_.stages, at(graph_.edges, e).from).is_frozen(); });
      leave(starts_.back[s] + stage.backward(), trained);
    }
  }

  // When all that comes over the edges is there.
  [[nodiscard]] std::int64_t arrival(const std::vector<int>& edges) const {
    std::int64_t all = 0;
    for (const int e : edges) {
      const std::int64_t latency = at(graph_.edges, e).price.latency;
      all =
          graph_.blocking_transfers ? std::max(all, at(leaves_, e)) + latency : std::max(all, at(leaves_, e) + latency);
    }
    return all;
  }

  void leave(std::int64_t now, const std::vector<int>& edges) {
    for (const int e : edges) {
      at(leaves_, e) = now;
      if (graph_.blocking_transfers) now += at(graph_.edges, e).price.latency;
    }
  }

  const StageGraph& graph_;
  const Neighbours& neighbours_;
  std::vector<std::int64_t> leaves_;  // [edge] when what it carries leaves
  EarliestStarts starts_;
};

}  // namespace

EarliestStarts earliest_starts(const StageGraph& graph, const Neighbours& neighbours) {
  return StartsOfGraph(graph, neighbours).run();
}

}  // namespace tangram::multimodal
