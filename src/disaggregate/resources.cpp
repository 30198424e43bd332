#include "resources.hpp"

#include <algorithm>
#include <numeric>

namespace tangram::disaggregate {

bool next_placement(Placement& placement, int classes) {
  for (int& on : placement) {
    if (++on < classes) return true;
    on = 0;
  }
  return false;
}

int micro_batches_on(const GpuClass& one_of, const Phase& phase) {
  return (phase.in_flight + one_of.count - 1) / one_of.count;
}

std::vector<int> receivers(const Problem& problem, const Placement& placement, const Buffer& message) {
  std::vector<char> reads(static_cast<std::size_t>(problem.class_count()), 0);
  for (const int reader : message.readers) at(reads, at(placement, reader)) = 1;
  at(reads, at(placement, message.writer)) = 0;
  std::vector<int> result;
  for (int c = 0; c < problem.class_count(); ++c) {
    if (at(reads, c) != 0) result.push_back(c);
  }
  return result;
}

double resident_bytes(const Problem& problem, const Buffer& buffer, int on) {
  if (buffer.kind == BufferKind::kWeight) return buffer.bytes;
  if (buffer.readers.empty()) return 0;
  const Phase& phase = at(problem.phases, at(problem.kernels, buffer.readers.front()).phase);
  return buffer.bytes * micro_batches_on(at(problem.classes, on), phase);
}

Resources::Resources(const Problem& problem)
    : problem_(&problem),
      classes_(problem.class_count()),
      on_path_(problem.kernels.size(), 0),
      buffers_of_(problem.kernels.size()),
      hops_of_(problem.kernels.size()) {
  for (int u = 0; u < static_cast<int>(problem.buffers.size()); ++u) {
    const Buffer& buffer = at(problem.buffers, u);
    if (buffer.writer >= 0) at(buffers_of_, buffer.writer).push_back(u);
    for (const int reader : buffer.readers) at(buffers_of_, reader).push_back(u);
  }
  for (int f = 0; f < static_cast<int>(problem.phases.size()); ++f) find_path(f);
  for (int h = 0; h < static_cast<int>(hops_.size()); ++h) {
    at(hops_of_, at(hops_, h).from).push_back(h);
    at(hops_of_, at(hops_, h).to).push_back(h);
  }
}

double Resources::memory_worth(const std::vector<double>& prices) const {
  return std::accumulate(prices.begin() + memory_row(0), prices.end(), 0.0);
}

// The longest path by the least seconds of its kernels.
void Resources::find_path(int phase) {
  struct Step {
    double seconds = 0;
    Hop before{-1, -1, -1};
  };
  std::vector<Step> best(problem_->kernels.size());
  int last = -1;
  for (int k = 0; k < problem_->kernel_count(); ++k) {
    const Kernel& kernel = at(problem_->kernels, k);
    if (kernel.phase != phase) continue;
    for (const int u : buffers_of(k)) {
      const Buffer& buffer = at(problem_->buffers, u);
      const int from = buffer.writer;
      if (from < 0 || from == k || !problem_->is_within_pass(buffer)) continue;
      if (at(best, from).seconds > at(best, k).seconds) at(best, k) = {at(best, from).seconds, {u, from, k}};
    }
    at(best, k).seconds += *std::ranges::min_element(kernel.seconds);
    if (last < 0 || at(best, k).seconds > at(best, last).seconds) last = k;
  }
  for (int k = last; k >= 0; k = at(best, k).before.from) {
    at(on_path_, k) = 1;
    if (at(best, k).before.from >= 0) hops_.push_back(at(best, k).before);
  }
}

}  // namespace tangram::disaggregate
