#include "blocking_run.hpp"

#include <algorithm>

#include "sweep.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

BlockingRun::BlockingRun(const StageGraph& graph, std::span<const std::int64_t> in_flight, std::int64_t start,
                         PassTimes times)
    : graph_(graph), times_(times), neighbours_(graph), workers_(graph.stages.size()) {
  for (std::size_t s = 0; s < workers_.size(); ++s) {
    workers_[s].now = workers_[s].last_pass = start;
    workers_[s].steps = graph.stages[s].is_frozen() ? frozen_steps(s) : trained_steps(s, in_flight[s]);
  }
  const auto microbatches = static_cast<std::size_t>(graph.microbatches);
  const Posts none{std::vector<int>(microbatches, 0), std::vector<std::int64_t>(microbatches, 0)};
  activations_.assign(graph.edges.size(), none);
  gradients_.assign(graph.edges.size(), none);
}

// Warm-up: receive, forward, send. Then forward; send it and receive a gradient together; backward; send its gradient
// and receive the next activation together. At the end: receive a gradient, backward, send its gradient.
std::vector<BlockingRun::Step> BlockingRun::trained_steps(std::size_t stage, std::int64_t in_flight) const {
  const std::int64_t all = graph_.microbatches;
  const std::int64_t lead = std::min(all, in_flight - 1);
  std::vector<Step> steps;
  const auto meet = [&](const std::vector<int>& edges, std::int64_t activation, std::int64_t gradient) {
    for (const int e : edges) {
      const Step step{e, activation < all ? activation : kNothing, has_gradients(e) ? gradient : kNothing};
      if (step.activation != kNothing || step.gradient != kNothing) steps.push_back(step);
    }
  };
  for (std::int64_t f = 0; f < lead; ++f) {
    meet(neighbours_.in[stage], f, kNothing);
    steps.push_back({.activation = f});
    meet(neighbours_.out[stage], f, kNothing);
  }
  if (lead < all) meet(neighbours_.in[stage], lead, kNothing);
  for (std::int64_t b = 0; b < all; ++b) {
    const std::int64_t f = b + lead;
    if (f < all) steps.push_back({.activation = f});
    meet(neighbours_.out[stage], f, b);
    steps.push_back({.gradient = b});
    meet(neighbours_.in[stage], f + 1, b);
  }
  return steps;
}

std::vector<BlockingRun::Step> BlockingRun::frozen_steps(std::size_t stage) const {
  std::vector<Step> steps;
  for (std::int64_t f = 0; f < graph_.microbatches; ++f) {
    for (const int e : neighbours_.in[stage]) steps.push_back({e, f, kNothing});
    steps.push_back({.activation = f});
    for (const int e : neighbours_.out[stage]) steps.push_back({e, f, kNothing});
  }
  return steps;
}

bool BlockingRun::has_gradients(int edge) const { return !at(graph_.stages, at(graph_.edges, edge).from).is_frozen(); }

bool BlockingRun::run() {
  sweep(workers_.size(), [&](std::size_t stage) { return advance(stage); });
  return std::ranges::all_of(workers_, [](const Worker& worker) { return worker.next == worker.steps.size(); });
}

std::vector<std::int64_t> BlockingRun::ends() const {
  std::vector<std::int64_t> result;
  for (const Worker& worker : workers_) result.push_back(worker.last_pass);
  return result;
}

// As far as the stage comes; false: nothing happened.
bool BlockingRun::advance(std::size_t stage) {
  Worker& self = workers_[stage];
  bool moved = false;
  for (; self.next < self.steps.size(); ++self.next) {
    const Step& step = self.steps[self.next];
    if (step.edge == kNoEdge) {
      pass(stage, step);
    } else {
      if (!self.posted) {
        post(self, step);
        moved = true;
      }
      const std::int64_t arrived = arrival(step);
      self.posted = arrived == kNothing;
      if (self.posted) break;
      self.now = arrived;
    }
    moved = true;
  }
  return moved;
}

void BlockingRun::pass(std::size_t stage, const Step& step) {
  Worker& self = workers_[stage];
  self.now +=
      step.gradient == kNothing ? times_.forward(stage, step.activation) : times_.backward(stage, step.gradient);
  self.last_pass = self.now;
}

void BlockingRun::post(const Worker& self, const Step& step) {
  const auto note = [&](Posts& posts, std::int64_t microbatch) {
    if (microbatch == kNothing) return;
    ++at(posts.ends, microbatch);
    at(posts.last, microbatch) = std::max(at(posts.last, microbatch), self.now);
  };
  note(at(activations_, step.edge), step.activation);
  note(at(gradients_, step.edge), step.gradient);
}

std::int64_t BlockingRun::arrival(const Step& step) const {
  constexpr int kBoth = 2;
  std::int64_t last = 0;
  bool all = true;
  const auto look = [&](const Posts& posts, std::int64_t microbatch) {
    if (microbatch == kNothing) return;
    all = all && at(posts.ends, microbatch) == kBoth;
    last = std::max(last, at(posts.last, microbatch));
  };
  look(at(activations_, step.edge), step.activation);
  look(at(gradients_, step.edge), step.gradient);
  return all ? last + at(graph_.edges, step.edge).price.latency : kNothing;
}

}  // namespace tangram::multimodal
