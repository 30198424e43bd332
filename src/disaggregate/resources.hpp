// What placements draw on, as rows of a linear program. Goes in: a problem. Comes out: how much of each row a kernel on
// a class, a message between two classes or a buffer held on a class takes. Rows are additive over kernels and buffers,
// which usage_of is not: a pass counts by one path through its kernels, memory without activations. So no placement
// takes less of any row than usage_of says of it.
#pragma once

#include <cmath>
#include <vector>

#include "tangram/base/at.hpp"
#include "tangram/base/grid.hpp"
#include "tangram/disaggregate/problem.hpp"

namespace tangram::disaggregate {

/// The next of all ways to put kernels (or groups of them) on classes, from all on class 0 on; false: that was the
/// last.
[[nodiscard]] bool next_placement(Placement& placement, int classes);

/// Micro-batches of a phase that one GPU of a class has under way.
[[nodiscard]] int micro_batches_on(const GpuClass& one_of, const Phase& phase);

/// Classes other than the writer's that read a message, ascending.
[[nodiscard]] std::vector<int> receivers(const Problem& problem, const Placement& placement, const Buffer& message);

/// Bytes that a weight or cache takes on one GPU of a class that reads it. A cache: of the micro-batches that come
/// there.
[[nodiscard]] double resident_bytes(const Problem& problem, const Buffer& buffer, int on);

/// From a kernel to the next one on the path by which the latency of its phase counts.
struct Hop {
  int buffer = 0;
  int from = 0;
  int to = 0;
};

/// Rows: seconds a round of GPUs, then of links, then of passes, none of which may exceed the period; then memory as a
/// share of what a class has, which may not exceed 1.
class Resources {
 public:
  explicit Resources(const Problem& problem);

  [[nodiscard]] int rows() const { return path_row(static_cast<int>(problem_->phases.size())) + classes_; }
  [[nodiscard]] int memory_row(int on) const { return path_row(static_cast<int>(problem_->phases.size())) + on; }
  [[nodiscard]] bool is_memory(int row) const { return row >= memory_row(0); }
  /// What all memory together is worth at prices by row.
  [[nodiscard]] double memory_worth(const std::vector<double>& prices) const;
  [[nodiscard]] int gpu_row(int on) const { return on; }
  [[nodiscard]] int link_row(int from, int to) const { return classes_ * (from + 1) + to; }
  [[nodiscard]] int path_row(int phase) const { return classes_ * (classes_ + 1) + phase; }

  [[nodiscard]] const Problem& problem() const { return *problem_; }
  [[nodiscard]] const std::vector<Hop>& hops() const { return hops_; }
  /// Numbers of the buffers that a kernel writes or reads, ascending.
  [[nodiscard]] const std::vector<int>& buffers_of(int kernel) const { return at(buffers_of_, kernel); }
  /// Numbers of the hops to and from it.
  [[nodiscard]] const std::vector<int>& hops_of(int kernel) const { return at(hops_of_, kernel); }
  [[nodiscard]] bool is_on_path(int kernel) const { return at(on_path_, kernel) != 0; }

  /// Each calls add(row, amount) for every row of which something is taken.
  template <class Add>
  void kernel(int number, int on, Add add) const {
    const Kernel& kernel = at(problem_->kernels, number);
    const Phase& phase = at(problem_->phases, kernel.phase);
    const double seconds = phase.passes * at(kernel.seconds, on);
    add(gpu_row(on), seconds / at(problem_->classes, on).count);
    if (is_on_path(number)) add(path_row(kernel.phase), seconds / phase.in_flight);
  }
  template <class Add>
  void message(const Buffer& buffer, int from, int to, Add add) const {
    const Link& link = problem_->links(from, to);
    const double messages = problem_->messages_of(buffer);
    add(gpu_row(from), messages * link.gpu_seconds / at(problem_->classes, from).count);
    add(gpu_row(to), messages * link.gpu_seconds / at(problem_->classes, to).count);
    add(link_row(from, to), messages * link.seconds(buffer.bytes) / link.lanes);
  }
  template <class Add>
  void hop(const Hop& hop, int from, int to, Add add) const {
    const Link& link = problem_->links(from, to);
    const int number = at(problem_->kernels, hop.from).phase;
    const Phase& phase = at(problem_->phases, number);
    const double seconds = 2 * link.gpu_seconds + link.seconds(at(problem_->buffers, hop.buffer).bytes);
    add(path_row(number), phase.passes * seconds / phase.in_flight);
  }
  template <class Add>
  void resident(const Buffer& buffer, int on, Add add) const {
    const double memory = at(problem_->classes, on).memory;
    if (!std::isinf(memory)) add(memory_row(on), resident_bytes(*problem_, buffer, on) / memory);
  }

 private:
  void find_path(int phase);

  const Problem* problem_;
  int classes_;
  std::vector<Hop> hops_;
  std::vector<char> on_path_;                 // by kernel
  std::vector<std::vector<int>> buffers_of_;  // by kernel
  std::vector<std::vector<int>> hops_of_;     // by kernel
};

}  // namespace tangram::disaggregate
