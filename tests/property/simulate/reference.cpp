#include "reference.hpp"

#include <algorithm>
#include <deque>

namespace tangram::simulate {

namespace {

struct Step {
  bool forward = true;
  std::size_t chunk = 0;
  std::size_t microbatch = 0;
};

/// Chunk by chunk for each group of microbatches.
std::vector<Step> table(bool forward, std::size_t microbatches, std::size_t chunks, std::size_t group) {
  std::vector<Step> steps;
  for (std::size_t first = 0; first < microbatches; first += group) {
    for (std::size_t c = 0; c < chunks; ++c) {
      for (std::size_t m = first; m < std::min(first + group, microbatches); ++m) {
        steps.push_back({forward, forward ? c : chunks - 1 - c, m});
      }
    }
  }
  return steps;
}

std::vector<Step> list_of(const SimPipeline& pipeline, std::size_t stage, std::size_t chunks) {
  const std::size_t group = pipeline.group > 0 ? static_cast<std::size_t>(pipeline.group) : pipeline.stages.size();
  const auto M = static_cast<std::size_t>(pipeline.microbatches);
  std::vector<Step> forwards = table(true, M, chunks, chunks == 1 ? M : group);
  std::vector<Step> backwards = table(false, M, chunks, chunks == 1 ? M : group);
  std::size_t warmup = static_cast<std::size_t>(pipeline.stages[stage].warmup);
  if (pipeline.kind == ScheduleKind::kGPipe || warmup > forwards.size()) warmup = forwards.size();

  std::vector<Step> list;
  for (std::size_t k = 0; k < warmup; ++k) list.push_back(forwards[k]);
  std::size_t b = 0;
  for (std::size_t k = warmup; k < forwards.size(); ++k) {
    list.push_back(forwards[k]);
    list.push_back(backwards[b++]);
  }
  while (b < backwards.size()) list.push_back(backwards[b++]);
  return list;
}

class Graph {
 public:
  explicit Graph(std::size_t nodes) : edges_(nodes), indegree_(nodes, 0), start_(nodes, 0) {}
  void add(std::size_t from, std::size_t to, Int delay) {
    edges_[from].push_back({to, delay});
    ++indegree_[to];
  }
  /// False: there is a cycle.
  bool solve() {
    std::deque<std::size_t> ready;
    for (std::size_t v = 0; v < edges_.size(); ++v) {
      if (indegree_[v] == 0) ready.push_back(v);
    }
    std::size_t done = 0;
    for (; !ready.empty(); ready.pop_front(), ++done) {
      const std::size_t v = ready.front();
      for (const Edge& e : edges_[v]) {
        start_[e.to] = std::max(start_[e.to], start_[v] + e.delay);
        if (--indegree_[e.to] == 0) ready.push_back(e.to);
      }
    }
    return done == edges_.size();
  }
  [[nodiscard]] Int start(std::size_t v) const { return start_[v]; }

 private:
  struct Edge {
    std::size_t to;
    Int delay;
  };
  std::vector<std::vector<Edge>> edges_;
  std::vector<std::size_t> indegree_;
  std::vector<Int> start_;
};

/// Nodes: for each place in the model and microbatch a forward pass, a backward pass and the transfers that follow
/// them.
class PathBuilder {
 public:
  explicit PathBuilder(const SimPipeline& pipeline)
      : pipeline_(pipeline),
        stages_(pipeline.stages.size()),
        chunks_(pipeline.kind == ScheduleKind::kInterleaved
                    ? std::max<std::size_t>(1, pipeline.stages[0].parts[0].chunks.size())
                    : 1),
        microbatches_(static_cast<std::size_t>(pipeline.microbatches)),
        graph_(4 * chunks_ * stages_ * microbatches_) {}

  std::optional<Ends> ends() {
    std::vector<std::vector<Step>> lists;
    for (std::size_t s = 0; s < stages_; ++s) {
      lists.push_back(list_of(pipeline_, s, chunks_));
      chain(s, lists.back());
    }
    if (!graph_.solve()) return std::nullopt;
    Ends result;
    for (std::size_t s = 0; s < stages_; ++s) {
      Int end = 0;
      for (const Step& step : lists[s]) {
        if (!step.forward) end = std::max(end, graph_.start(pass(s, step)) + time(s, step));
      }
      result.push_back(end);
    }
    return result;
  }

 private:
  [[nodiscard]] std::size_t node(std::size_t place, std::size_t microbatch, std::size_t which) const {
    return (place * microbatches_ + microbatch) * 4 + which;
  }
  [[nodiscard]] std::size_t pass(std::size_t stage, const Step& step) const {
    return node(step.chunk * stages_ + stage, step.microbatch, step.forward ? 0 : 1);
  }
  [[nodiscard]] Int time(std::size_t stage, const Step& step) const {
    const SimPart& part = pipeline_.stages[stage].parts[0];
    if (pipeline_.kind != ScheduleKind::kInterleaved || part.chunks.empty()) {
      return (step.forward ? part.forward : part.backward).value();
    }
    const SimChunk& chunk = part.chunks[step.chunk];
    return (step.forward ? chunk.forward : chunk.backward).value();
  }

  void chain(std::size_t stage, const std::vector<Step>& list) {
    std::optional<std::size_t> sent_forward, sent_backward;
    for (std::size_t k = 0; k < list.size(); ++k) {
      const Step& step = list[k];
      const std::size_t v = pass(stage, step);
      const std::size_t place = step.chunk * stages_ + stage;
      if (k > 0) graph_.add(pass(stage, list[k - 1]), v, time(stage, list[k - 1]));
      if (!step.forward) graph_.add(node(place, step.microbatch, 0), v, time(stage, {true, step.chunk, 0}));
      if (step.forward && place + 1 < chunks_ * stages_) {
        const std::size_t target = node(place + 1, step.microbatch, 0);
        send(v, node(place, step.microbatch, 2), target, time(stage, step), pipeline_.stages[stage], sent_forward);
      }
      if (!step.forward && place > 0) {
        const SimStage& boundary = pipeline_.stages[(place - 1) % stages_];
        const std::size_t target = node(place - 1, step.microbatch, 1);
        send(v, node(place, step.microbatch, 3), target, time(stage, step), boundary, sent_backward);
      }
    }
  }

  void send(std::size_t from, std::size_t transfer, std::size_t to, Int duration, const SimStage& boundary,
            std::optional<std::size_t>& previous) {
    graph_.add(from, transfer, duration);
    graph_.add(transfer, to, boundary.latency.value());
    if (previous) graph_.add(*previous, transfer, boundary.occupancy.value());
    previous = transfer;
  }

  const SimPipeline& pipeline_;
  std::size_t stages_, chunks_, microbatches_;
  Graph graph_;
};

/// One executor of the ticking clock.
struct Worker {
  std::vector<Step> list;
  std::size_t next = 0;
  Int begun = 0, input_gradients = 0, weight_gradients = 0;
  Int busy_until = 0;
  int runs = 0;                             // 0: nothing, 1: forward, 2: backward, 3: weight gradient
  std::vector<Int> activations, gradients;  // arrival of each microbatch; -1: not sent
  Int forward_free = 0, backward_free = 0;
  Int end = 0;
};

class Clock {
 public:
  explicit Clock(const SimPipeline& pipeline) : pipeline_(pipeline), workers_(pipeline.stages.size()) {
    const auto M = static_cast<std::size_t>(pipeline.microbatches);
    for (std::size_t s = 0; s < workers_.size(); ++s) {
      workers_[s].list = list_of(pipeline, s, 1);
      workers_[s].activations.assign(M, s == 0 ? 0 : -1);
      workers_[s].gradients.assign(M, s + 1 == workers_.size() ? 0 : -1);
    }
  }

  Ends run() {
    Int left = 3 * pipeline_.microbatches * static_cast<Int>(workers_.size());
    for (Int now = 0; left > 0; ++now) {
      for (std::size_t s = 0; s < workers_.size(); ++s) {
        if (workers_[s].runs != 0 && workers_[s].busy_until == now) {
          finish(s, now);
          --left;
        }
      }
      for (std::size_t s = 0; s < workers_.size(); ++s) choose(s, now);
    }
    Ends ends;
    for (const Worker& w : workers_) ends.push_back(w.end);
    return ends;
  }

 private:
  void finish(std::size_t s, Int now) {
    Worker& w = workers_[s];
    if (w.runs == 3) {
      ++w.weight_gradients;
    } else {
      const Step step = w.list[w.next++];
      if (w.runs == 1 && s + 1 < workers_.size()) {
        const SimStage& boundary = pipeline_.stages[s];
        const Int leaves = std::max(now, w.forward_free);
        w.forward_free = leaves + boundary.occupancy.value();
        workers_[s + 1].activations[step.microbatch] = leaves + boundary.latency.value();
      }
      if (w.runs == 2) {
        ++w.input_gradients;
        if (s > 0) {
          const SimStage& boundary = pipeline_.stages[s - 1];
          const Int leaves = std::max(now, w.backward_free);
          w.backward_free = leaves + boundary.occupancy.value();
          workers_[s - 1].gradients[step.microbatch] = leaves + boundary.latency.value();
        }
      }
    }
    w.end = now;
    w.runs = 0;
  }

  void choose(std::size_t s, Int now) {
    Worker& w = workers_[s];
    if (w.runs != 0) return;
    const SimPart& part = pipeline_.stages[s].parts[0];
    const Int limit = pipeline_.stages[s].warmup + 1 + pipeline_.stages[s].deferrable;
    if (w.next < w.list.size()) {
      const Step step = w.list[w.next];
      const Int arrival = step.forward ? w.activations[step.microbatch] : w.gradients[step.microbatch];
      const bool arrived = arrival >= 0 && arrival <= now;
      if (arrived && step.forward && w.begun - w.weight_gradients < limit) {
        ++w.begun;
        w.runs = 1;
        w.busy_until = now + part.forward.value();
        return;
      }
      if (arrived && !step.forward) {
        w.runs = 2;
        w.busy_until = now + (part.backward - part.weight_gradient).value();
        return;
      }
    }
    if (w.input_gradients > w.weight_gradients) {
      w.runs = 3;
      w.busy_until = now + part.weight_gradient.value();
    }
  }

  const SimPipeline& pipeline_;
  std::vector<Worker> workers_;
};

}  // namespace

std::optional<Ends> longest_path(const SimPipeline& pipeline) { return PathBuilder(pipeline).ends(); }

Ends tick_zero_bubble(const SimPipeline& pipeline) { return Clock(pipeline).run(); }

}  // namespace tangram::simulate
