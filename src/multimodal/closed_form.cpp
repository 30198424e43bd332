#include "tangram/multimodal/closed_form.hpp"

#include <algorithm>

#include "earliest_starts.hpp"
#include "neighbours.hpp"
#include "stage_terms.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

class FormOfGraph {
 public:
  explicit FormOfGraph(const StageGraph& graph) : graph_(graph), neighbours_(graph), in_flight_(count(), 0) {
    if (graph.graph_warmup) warmups_ = graph_warmups(graph);
  }

  std::optional<ClosedForm> run() {
    if (std::ranges::any_of(graph_.edges, [](const Edge& edge) { return edge.price.is_none(); })) return std::nullopt;
    if (!limits()) return std::nullopt;
    const std::int64_t period = graph_.blocking_transfers ? blocking_period() : overlapped_period();
    if (period == 0) return std::nullopt;
    if (graph_.graph_warmup) in_flight_ = warm_in_flight();
    const EarliestStarts starts = earliest_starts(graph_, neighbours_);
    std::int64_t last_gradient = 0;
    std::int64_t last_backward = 0;
    std::int64_t step = 0;
    for (std::size_t s = 0; s < count(); ++s) {
      const Stage& stage = graph_.stages[s];
      const std::int64_t end = starts.back[s] + stage.backward();
      last_backward = std::max(last_backward, end);
      last_gradient = std::max(last_gradient, end + stage.plan.A - stage.plan.T);
      step = std::max(step, stage.plan.o);
    }
    const std::int64_t time = last_gradient + (graph_.microbatches - 1) * period + step;
    return ClosedForm{period, last_backward, time, std::move(in_flight_)};
  }

 private:
  [[nodiscard]] std::size_t count() const { return graph_.stages.size(); }
  [[nodiscard]] const Edge& edge(int number) const { return at(graph_.edges, number); }

  [[nodiscard]] std::vector<std::int64_t> warm_in_flight() const {
    std::vector<std::int64_t> held = warmups_;
    for (std::size_t s = 0; s < held.size(); ++s) {
      held[s] = graph_.stages[s].is_frozen() ? graph_.stages[s].prefetch : held[s] + 1;
    }
    return held;
  }

  // False: a stage can not hold what it must.
  bool limits() {
    for (std::size_t s = 0; s < count(); ++s) {
      const auto warmup = graph_.graph_warmup ? std::optional(warmups_[s]) : std::nullopt;
      limits_.push_back(in_flight_of(graph_.stages[s], graph_.microbatches, warmup));
    }
    return std::ranges::all_of(limits_, [](const InFlight& limit) { return limit.least <= limit.most; });
  }

  // Each microbatch keeps a stage for its passes and for all that it hands over. A stage whose warm-up is longer than
  // its reader's by one more than itself is always one meeting ahead of it, and the two take turns; further ahead, both
  // wait for ever. 0: they do.
  [[nodiscard]] std::int64_t blocking_period() const {
    std::vector<std::int64_t> kept;
    for (std::size_t s = 0; s < count(); ++s) {
      kept.push_back(graph_.stages[s].plan.T);
      for (const int e : neighbours_.in[s]) kept.back() += edge(e).price.latency;
      for (const int e : neighbours_.out[s]) kept.back() += edge(e).price.latency;
    }
    std::int64_t period = std::max<std::int64_t>(1, *std::ranges::max_element(kept));
    for (const Edge& e : graph_.edges) {
      if (at(graph_.stages, e.from).is_frozen()) continue;
      const std::int64_t ahead = std::min(at(warmups_, e.from), graph_.microbatches) - at(warmups_, e.to) - 1;
      if (ahead > 1) return 0;
      if (ahead == 1) period = std::max(period, at(kept, e.from) + at(kept, e.to));
    }
    return period;
  }

  // 0: there is none.
  std::int64_t overlapped_period() {
    std::int64_t lowest = 1;
    for (const Stage& stage : graph_.stages) lowest = std::max(lowest, stage.plan.T);
    for (const Edge& e : graph_.edges) {
      lowest = std::max(lowest, least_period(at(graph_.stages, e.from), e.price, graph_.microbatches));
    }
    // At the longest round trip every stage holds one more than those behind it.
    std::int64_t highest = std::max(lowest, longest_round_trip());
    if (!holds(highest)) return 0;
    while (lowest < highest) {
      const std::int64_t middle = lowest + (highest - lowest) / 2;
      if (holds(middle)) {
        highest = middle;
      } else {
        lowest = middle + 1;
      }
    }
    holds(highest);
    return highest;
  }

  [[nodiscard]] std::int64_t longest_round_trip() const {
    std::vector<std::int64_t> trip(count(), 0);
    for (std::size_t s = count(); s-- > 0;) {
      for (const int e : neighbours_.out[s]) {
        trip[s] = std::max(trip[s], at(trip, edge(e).to) + 2 * edge(e).price.latency);
      }
      trip[s] += graph_.stages[s].plan.T;
    }
    return *std::ranges::max_element(trip);
  }

  // The recursion of README.md, from the sinks to the sources: whether every stage holds its microbatches.
  bool holds(std::int64_t period) {
    std::vector<std::int64_t> q(count(), 0);
    for (std::size_t s = count(); s-- > 0;) {
      const Stage& stage = graph_.stages[s];
      if (stage.is_frozen()) {
        in_flight_[s] = stage.prefetch;
        continue;
      }
      std::int64_t behind = 0;
      std::int64_t most = 0;
      for (const int e : neighbours_.out[s]) {
        behind = std::max(behind, at(q, edge(e).to) + 2 * edge(e).price.latency);
        most = std::max(most, at(in_flight_, edge(e).to));
      }
      const std::int64_t x = stage.plan.T + behind;
      in_flight_[s] = std::max({most + 1, ceil_divide(x, period), limits_[s].least});
      if (in_flight_[s] > limits_[s].most) return false;
      q[s] = std::max(period * (in_flight_[s] - 1) + stage.plan.T, x);
    }
    return true;
  }

  const StageGraph& graph_;
  Neighbours neighbours_;
  std::vector<std::int64_t> warmups_;  // empty: they are not the graph's
  std::vector<InFlight> limits_;
  std::vector<std::int64_t> in_flight_;
};

}  // namespace

std::optional<ClosedForm> closed_form(const StageGraph& graph) { return FormOfGraph(graph).run(); }

}  // namespace tangram::multimodal
