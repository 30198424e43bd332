#include "overlapped_run.hpp"

#include <algorithm>

#include "sweep.hpp"
#include "tangram/base/at.hpp"

namespace tangram::multimodal {

namespace {

constexpr std::int64_t kNotYet = -1;

std::int64_t entry_or_not_yet(const std::vector<std::int64_t>& times, std::int64_t number) {
  return number < static_cast<std::int64_t>(times.size()) ? at(times, number) : kNotYet;
}

// The later of both, if both are known.
std::int64_t later(std::int64_t a, std::int64_t b) { return a == kNotYet || b == kNotYet ? kNotYet : std::max(a, b); }

}  // namespace

OverlappedRun::OverlappedRun(const StageGraph& graph, std::span<const std::int64_t> in_flight, std::int64_t start,
                             PassTimes times)
    : graph_(graph),
      in_flight_(in_flight),
      times_(times),
      neighbours_(graph),
      start_(start),
      progress_(graph.stages.size(), Progress{.free_at = start}),
      down_(graph.edges.size()),
      up_(graph.edges.size()),
      begun_(graph.stages.size()) {}

bool OverlappedRun::run() {
  sweep(progress_.size(), [&](std::size_t stage) { return advance(stage); });
  for (std::size_t s = 0; s < progress_.size(); ++s) {
    if (!is_done(s)) return false;
  }
  return true;
}

std::vector<std::int64_t> OverlappedRun::ends() const {
  std::vector<std::int64_t> result;
  for (const Progress& progress : progress_) result.push_back(progress.free_at);
  return result;
}

bool OverlappedRun::is_done(std::size_t stage) const {
  const Progress& progress = progress_[stage];
  return (graph_.stages[stage].is_frozen() ? progress.forwards : progress.backwards) == graph_.microbatches;
}

// All passes whose inputs are there; false: there were none.
bool OverlappedRun::advance(std::size_t stage) {
  Progress& self = progress_[stage];
  bool moved = false;
  while (!is_done(stage)) {
    const bool forward = runs_forward_next(stage);
    const std::int64_t ready = forward ? forward_ready(stage) : backward_ready(stage);
    if (ready == kNotYet) break;
    const std::int64_t begin = std::max(self.free_at, ready);
    self.free_at = begin + (forward ? times_.forward(stage, self.forwards) : times_.backward(stage, self.backwards));
    ++(forward ? self.forwards : self.backwards);
    if (forward) begun_[stage].push_back(begin);
    for (const int e : forward ? neighbours_.out[stage] : neighbours_.in[stage]) {
      send(at(forward ? down_ : up_, e), at(graph_.edges, e).price, self.free_at);
    }
    moved = true;
  }
  return moved;
}

bool OverlappedRun::runs_forward_next(std::size_t stage) const {
  const Progress& self = progress_[stage];
  if (graph_.stages[stage].is_frozen()) return true;
  return self.forwards < graph_.microbatches && self.forwards - self.backwards < in_flight_[stage];
}

std::int64_t OverlappedRun::forward_ready(std::size_t stage) const {
  std::int64_t ready = start_;
  for (const int e : neighbours_.in[stage]) {
    ready = later(ready, entry_or_not_yet(at(down_, e).arrivals, progress_[stage].forwards));
  }
  return graph_.stages[stage].is_frozen() ? later(ready, readers_ready(stage)) : ready;
}

// When those that read a frozen stage have begun the pass that frees the place for the next output.
std::int64_t OverlappedRun::readers_ready(std::size_t stage) const {
  const std::int64_t read = progress_[stage].forwards - graph_.stages[stage].prefetch;
  std::int64_t ready = start_;
  if (read < 0) return ready;
  for (const int e : neighbours_.out[stage]) {
    ready = later(ready, entry_or_not_yet(at(begun_, at(graph_.edges, e).to), read));
  }
  return ready;
}

std::int64_t OverlappedRun::backward_ready(std::size_t stage) const {
  const Progress& self = progress_[stage];
  std::int64_t ready = self.forwards > self.backwards ? start_ : kNotYet;
  for (const int e : neighbours_.out[stage]) {
    ready = later(ready, entry_or_not_yet(at(up_, e).arrivals, self.backwards));
  }
  return ready;
}

void OverlappedRun::send(Lane& lane, const Price& price, std::int64_t now) {
  const std::int64_t begin = std::max(now, lane.free_at);
  lane.free_at = begin + price.occupancy;
  lane.arrivals.push_back(begin + price.latency);
}

}  // namespace tangram::multimodal
