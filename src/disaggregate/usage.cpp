#include "tangram/disaggregate/usage.hpp"

#include <algorithm>
#include <cmath>

#include "resources.hpp"
#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

namespace {

void add_kernels(const Problem& problem, const Placement& placement, Usage& usage) {
  for (int k = 0; k < problem.kernel_count(); ++k) {
    const Kernel& kernel = at(problem.kernels, k);
    const int on = at(placement, k);
    const double seconds = at(kernel.seconds, on);
    if (std::isinf(seconds)) usage.fits = false;
    at(usage.gpu, on) += at(problem.phases, kernel.phase).passes * seconds / at(problem.classes, on).count;
  }
}

void add_message(const Problem& problem, const Placement& placement, const Buffer& buffer, Usage& usage) {
  const int from = at(placement, buffer.writer);
  const double messages = problem.messages_of(buffer);
  for (const int to : receivers(problem, placement, buffer)) {
    const Link& link = problem.links(from, to);
    usage.link(from, to) += messages * link.seconds(buffer.bytes) / link.lanes;
    for (const int end : {from, to}) {
      at(usage.gpu, end) += messages * link.gpu_seconds / at(problem.classes, end).count;
    }
  }
}

void add_resident(const Problem& problem, const Placement& placement, const Buffer& buffer, Usage& usage) {
  for (int c = 0; c < problem.class_count(); ++c) {
    const bool is_read = std::ranges::any_of(buffer.readers, [&](int reader) { return at(placement, reader) == c; });
    if (is_read) at(usage.memory, c) += resident_bytes(problem, buffer, c);
  }
}

// One pass, kernel by kernel in the order of all.
class PassTimes {
 public:
  PassTimes(const Problem& problem, const Placement& placement, int phase)
      : problem_(problem),
        placement_(placement),
        gpu_(problem.classes.size(), 0),
        link_(problem.class_count(), problem.class_count(), 0),
        arrival_(problem.buffers.size(), problem.classes.size(), kNever),
        taken_in_(problem.buffers.size(), problem.classes.size(), 0),
        reads_(problem.kernels.size()),
        writes_(problem.kernels.size()) {
    for (int u = 0; u < static_cast<int>(problem.buffers.size()); ++u) {
      const Buffer& buffer = at(problem.buffers, u);
      if (buffer.kind != BufferKind::kMessage || !problem.is_within_pass(buffer)) continue;
      at(writes_, buffer.writer).push_back(u);
      for (const int reader : buffer.readers) at(reads_, reader).push_back(u);
    }
    for (int k = 0; k < problem.kernel_count(); ++k) {
      if (at(problem.kernels, k).phase == phase) run(k);
    }
  }

  [[nodiscard]] double end() const { return *std::ranges::max_element(gpu_); }

 private:
  void run(int kernel) {
    const int on = at(placement_, kernel);
    for (const int u : at(reads_, kernel)) take_in(u, on);
    at(gpu_, on) += at(at(problem_.kernels, kernel).seconds, on);
    for (const int u : at(writes_, kernel)) send(u, on);
  }

  void take_in(int message, int on) {
    const int from = at(placement_, at(problem_.buffers, message).writer);
    if (from == on || taken_in_(message, on) != 0) return;
    taken_in_(message, on) = 1;
    at(gpu_, on) = std::max(at(gpu_, on), arrival_(message, on)) + problem_.links(from, on).gpu_seconds;
  }

  void send(int message, int from) {
    const Buffer& buffer = at(problem_.buffers, message);
    for (const int to : receivers(problem_, placement_, buffer)) {
      const Link& link = problem_.links(from, to);
      at(gpu_, from) += link.gpu_seconds;
      link_(from, to) = std::max(link_(from, to), at(gpu_, from)) + link.seconds(buffer.bytes);
      arrival_(message, to) = link_(from, to);
    }
  }

  const Problem& problem_;
  const Placement& placement_;
  std::vector<double> gpu_;  // until then
  Grid<double> link_;        // until then
  Grid<double> arrival_;     // by message and class
  Grid<char> taken_in_;      // by message and class
  std::vector<std::vector<int>> reads_;
  std::vector<std::vector<int>> writes_;
};

}  // namespace

double pass_latency(const Problem& problem, const Placement& placement, int phase) {
  return PassTimes(problem, placement, phase).end();
}

std::vector<double> live_messages(const Problem& problem, const Placement& placement, int phase) {
  const auto kernels = problem.kernels.size();
  Grid<double> change(problem.classes.size(), kernels + 1, 0);  // by class and kernel
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.kind != BufferKind::kMessage || at(problem.kernels, buffer.writer).phase != phase) continue;
    if (!problem.is_within_pass(buffer)) continue;
    std::vector<int> last(problem.classes.size(), -1);
    at(last, at(placement, buffer.writer)) = buffer.writer;
    for (const int reader : buffer.readers) at(last, at(placement, reader)) = reader;
    for (int c = 0; c < problem.class_count(); ++c) {
      if (at(last, c) < 0) continue;
      change(c, buffer.writer) += buffer.bytes;
      change(c, at(last, c) + 1) -= buffer.bytes;
    }
  }
  std::vector<double> most(problem.classes.size(), 0);
  for (int c = 0; c < problem.class_count(); ++c) {
    double alive = 0;
    for (const double bytes : change.row(c)) {
      alive += bytes;
      at(most, c) = std::max(at(most, c), alive);
    }
  }
  return most;
}

Usage usage_of(const Problem& problem, const Placement& placement) {
  const int classes = problem.class_count();
  Usage usage;
  usage.gpu.assign(problem.classes.size(), 0);
  usage.link.assign(classes, classes, 0.0);
  usage.memory.assign(problem.classes.size(), 0);
  add_kernels(problem, placement, usage);
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.kind == BufferKind::kMessage) {
      add_message(problem, placement, buffer, usage);
    } else {
      add_resident(problem, placement, buffer, usage);
    }
  }
  usage.period = std::max(*std::ranges::max_element(usage.gpu), *std::ranges::max_element(usage.link));
  for (int f = 0; f < static_cast<int>(problem.phases.size()); ++f) {
    const Phase& phase = at(problem.phases, f);
    usage.latency.push_back(pass_latency(problem, placement, f));
    usage.period = std::max(usage.period, phase.passes * usage.latency.back() / phase.in_flight);
    const std::vector<double> live = live_messages(problem, placement, f);
    for (int c = 0; c < classes; ++c) {
      at(usage.memory, c) += at(live, c) * micro_batches_on(at(problem.classes, c), phase);
    }
  }
  for (int c = 0; c < classes; ++c) usage.fits = usage.fits && at(usage.memory, c) <= at(problem.classes, c).memory;
  return usage;
}

}  // namespace tangram::disaggregate
