#include "definition.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::tests {

namespace {

using namespace disaggregate;

struct Message {
  int from = 0;
  int to = 0;
  const Buffer* buffer = nullptr;
};

std::vector<Message> messages_of(const Problem& problem, const Placement& on) {
  std::vector<Message> all;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.writer < 0) continue;
    std::set<int> readers;
    for (const int reader : buffer.readers) readers.insert(at(on, reader));
    readers.erase(at(on, buffer.writer));
    for (const int to : readers) all.push_back({at(on, buffer.writer), to, &buffer});
  }
  return all;
}

// One pass, by fixed point: every start is the latest of what it waits for, until nothing moves any more.
class NaivePass {
 public:
  NaivePass(const Problem& problem, const Placement& on, int phase) : problem_(problem), on_(on) {
    for (int k = 0; k < problem.kernel_count(); ++k) {
      if (at(problem.kernels, k).phase == phase) kernels_.push_back(k);
    }
    for (const Message& message : messages_of(problem, on)) {
      const int first_reader = message.buffer->readers.front();
      if (at(problem.kernels, message.buffer->writer).phase != phase) continue;
      if (at(problem.kernels, first_reader).phase == phase) messages_.push_back(message);
    }
    arrival_.assign(messages_.size(), 0);
    end_.assign(problem.kernels.size(), 0);
    while (settle()) {
    }
  }

  [[nodiscard]] double end() const { return *std::ranges::max_element(end_); }

 private:
  // End of a kernel with what it sends.
  bool settle() {
    const std::vector<double> before = end_;
    const std::vector<double> arrived = arrival_;
    std::map<int, double> gpu;
    std::map<std::pair<int, int>, double> link;
    std::set<std::size_t> taken_in;
    for (const int k : kernels_) {
      double& now = gpu[at(on_, k)];
      for (std::size_t i = 0; i < messages_.size(); ++i) {
        const Message& m = messages_[i];
        const bool reads = m.to == at(on_, k) && std::ranges::count(m.buffer->readers, k) > 0;
        if (!reads || !taken_in.insert(i).second) continue;
        now = std::max(now, arrival_[i]) + problem_.links(m.from, m.to).gpu_seconds;
      }
      now += at(at(problem_.kernels, k).seconds, at(on_, k));
      for (std::size_t i = 0; i < messages_.size(); ++i) {
        const Message& m = messages_[i];
        if (m.buffer->writer != k) continue;
        const Link& over = problem_.links(m.from, m.to);
        now += over.gpu_seconds;
        double& free = link[{m.from, m.to}];
        free = std::max(free, now) + over.seconds_per_message + m.buffer->bytes / over.bytes_per_second;
        arrival_[i] = free;
      }
      at(end_, k) = now;
    }
    return end_ != before || arrival_ != arrived;
  }

  const Problem& problem_;
  const Placement& on_;
  std::vector<int> kernels_;
  std::vector<Message> messages_;
  std::vector<double> arrival_;
  std::vector<double> end_;
};

double resident(const Problem& problem, const Placement& on, int c) {
  double bytes = 0;
  const int gpus = at(problem.classes, c).count;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.writer >= 0) continue;
    const bool is_here = std::ranges::any_of(buffer.readers, [&](int k) { return at(on, k) == c; });
    if (!is_here) continue;
    const double in_flight = at(problem.phases, at(problem.kernels, buffer.readers.front()).phase).in_flight;
    bytes += buffer.bytes * (buffer.kind == BufferKind::kCache ? std::ceil(in_flight / gpus) : 1);
  }
  return bytes;
}

// At each kernel the messages that are there and still to be read, or just written.
double most_alive(const Problem& problem, const Placement& on, int c, int phase) {
  double most = 0;
  for (int now = 0; now < problem.kernel_count(); ++now) {
    double alive = 0;
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.writer < 0 || at(problem.kernels, buffer.writer).phase != phase || now < buffer.writer) continue;
      const auto in_pass = [&](int k) { return at(problem.kernels, k).phase == phase; };
      if (!std::ranges::all_of(buffer.readers, in_pass)) continue;
      const bool is_written_here = at(on, buffer.writer) == c && now == buffer.writer;
      const bool is_to_be_read = std::ranges::any_of(buffer.readers, [&](int k) { return at(on, k) == c && now <= k; });
      if (is_written_here || is_to_be_read) alive += buffer.bytes;
    }
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

Taken taken_by(const Problem& problem, const Placement& on) {
  Taken taken;
  std::map<int, double> gpu;
  std::map<std::pair<int, int>, double> link;
  for (int k = 0; k < problem.kernel_count(); ++k) {
    const Kernel& kernel = at(problem.kernels, k);
    gpu[at(on, k)] += at(problem.phases, kernel.phase).passes * at(kernel.seconds, at(on, k));
  }
  for (const Message& m : messages_of(problem, on)) {
    const Link& over = problem.links(m.from, m.to);
    const double passes = at(problem.phases, at(problem.kernels, m.buffer->writer).phase).passes;
    const double times = m.buffer->messages > 0 ? m.buffer->messages : passes;
    gpu[m.from] += times * over.gpu_seconds;
    gpu[m.to] += times * over.gpu_seconds;
    link[{m.from, m.to}] += times * (over.seconds_per_message + m.buffer->bytes / over.bytes_per_second) / over.lanes;
  }
  for (const auto& [c, seconds] : gpu) taken.period = std::max(taken.period, seconds / at(problem.classes, c).count);
  for (const auto& [pair, seconds] : link) taken.period = std::max(taken.period, seconds);
  for (int f = 0; f < static_cast<int>(problem.phases.size()); ++f) {
    const double latency = NaivePass(problem, on, f).end();
    taken.latency += at(problem.phases, f).passes * latency;
    taken.period = std::max(taken.period, at(problem.phases, f).passes * latency / at(problem.phases, f).in_flight);
  }
  for (int c = 0; c < problem.class_count(); ++c) {
    double bytes = resident(problem, on, c);
    for (int f = 0; f < static_cast<int>(problem.phases.size()); ++f) {
      const double held = std::ceil(1.0 * at(problem.phases, f).in_flight / at(problem.classes, c).count);
      bytes += held * most_alive(problem, on, c, f);
    }
    taken.fits = taken.fits && bytes <= at(problem.classes, c).memory;
  }
  taken.fits = taken.fits && std::isfinite(taken.period);
  return taken;
}

void each_placement(const Problem& problem, const std::function<void(const Placement&)>& look) {
  Placement placement(problem.kernels.size(), 0);
  for (bool more = true; more;) {
    look(placement);
    more = false;
    for (int& on : placement) {
      if (++on < problem.class_count()) {
        more = true;
        break;
      }
      on = 0;
    }
  }
}

double least_value(const Problem& problem, Objective objective) {
  double least = kNever;
  each_placement(problem, [&](const Placement& placement) {
    const Taken taken = taken_by(problem, placement);
    if (!taken.fits) return;
    least = std::min(least, objective == Objective::kThroughput ? taken.period : taken.latency);
  });
  return least;
}

}  // namespace tangram::tests
