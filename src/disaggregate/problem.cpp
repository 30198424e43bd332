#include "tangram/disaggregate/problem.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::disaggregate {

namespace {

class ProblemCheck {
 public:
  explicit ProblemCheck(const Problem& problem) : problem_(problem) {}

  Diagnostics run() {
    counts();
    if (!found_.empty()) return std::move(found_);
    each("/classes", problem_.classes, [this](const GpuClass& c) { gpu_class(c); });
    each("/links", problem_.links, [this](const Link& link) { link_between(link); });
    each("/phases", problem_.phases, [this](const Phase& p) { phase(p); });
    each("/kernels", problem_.kernels, [this](const Kernel& k) { kernel(k); });
    each("/buffers", problem_.buffers, [this](const Buffer& b) { buffer(b); });
    each("/repeats", problem_.repeats, [this](const Repeat& r) { repeat(r); });
    return std::move(found_);
  }

 private:
  template <class List, class Look>
  void each(std::string_view list, const List& elements, Look look) {
    std::size_t i = 0;
    for (const auto& element : elements) {
      place_ = std::string(list) + '/' + std::to_string(i++);
      look(element);
    }
  }

  void need(bool holds, std::string_view key, std::string_view what) {
    if (holds) return;
    Diagnostic diagnostic;
    diagnostic.code = "disaggregate-problem";
    diagnostic.pointer = place_ + std::string(key);
    diagnostic.message = std::string(what);
    found_.push_back(std::move(diagnostic));
  }

  void counts() {
    need(!problem_.classes.empty(), "/classes", "at least one class of GPUs is needed");
    need(!problem_.phases.empty(), "/phases", "at least one phase is needed");
    need(!problem_.kernels.empty(), "/kernels", "at least one kernel is needed");
    const int classes = problem_.class_count();
    const bool square = problem_.links.rows() == classes && problem_.links.columns() == classes;
    need(square, "/links", "a link for every pair of classes is needed, a class with itself included");
  }

  void gpu_class(const GpuClass& c) {
    need(c.count > 0, "/count", "a class has at least one GPU");
    need(c.memory > 0, "/memory", "memory is more than nothing");
  }

  void link_between(const Link& link) {
    need(link.bytes_per_second > 0, "/bytes_per_second", "a link's rate is more than nothing");
    need(is_amount(link.seconds_per_message), "/seconds_per_message", "seconds are finite and not negative");
    need(is_amount(link.gpu_seconds), "/gpu_seconds", "seconds are finite and not negative");
    need(link.lanes > 0, "/lanes", "a link has at least one lane");
  }

  void phase(const Phase& p) {
    need(is_amount(p.passes) && p.passes > 0, "/passes", "a phase has a finite number of passes, more than none");
    need(p.in_flight > 0, "/in_flight", "at least one micro-batch is in flight");
  }

  void kernel(const Kernel& k) {
    need(k.phase >= 0 && k.phase < static_cast<int>(problem_.phases.size()), "/phase", "a phase of that number");
    need(is_amount(k.error) && k.error < 1, "/error", "a relative error is in [0, 1)");
    const bool whole = k.seconds.size() == problem_.classes.size();
    need(whole, "/seconds", "seconds for every class of GPUs are needed");
    if (!whole) return;
    const bool valid = std::ranges::all_of(k.seconds, [](double s) { return s >= 0; });
    need(valid, "/seconds", "seconds are not negative");
    const bool runs = std::ranges::any_of(k.seconds, [](double s) { return std::isfinite(s); });
    need(runs, "/seconds", "at least one class runs the kernel");
  }

  void buffer(const Buffer& b) {
    need(is_amount(b.bytes), "/bytes", "bytes are finite and not negative");
    need(is_amount(b.messages), "/messages", "messages are finite and not negative");
    const bool in_order = std::ranges::adjacent_find(b.readers, std::greater_equal<>()) == b.readers.end();
    const bool exist = b.readers.empty() || (b.readers.front() >= 0 && b.readers.back() < problem_.kernel_count());
    need(in_order && exist, "/readers", "readers are kernels, in ascending order");
    if (!exist) return;
    if (b.kind != BufferKind::kMessage) return need(b.writer == -1, "/writer", "weights and caches have no writer");
    const bool written = b.writer >= 0 && b.writer < problem_.kernel_count();
    need(written, "/writer", "the writer of a message is a kernel");
    if (!written) return;
    need(b.readers.empty() || b.writer < b.readers.front(), "/readers", "readers come after the writer");
    const auto in_pass = [&](int reader) { return phase_of(reader) == phase_of(b.writer); };
    const auto of_pass = std::ranges::count_if(b.readers, in_pass);
    const bool alike = of_pass == 0 || of_pass == static_cast<std::ptrdiff_t>(b.readers.size());
    need(alike, "/readers", "readers are all of the writer's phase, or none is");
  }

  void repeat(const Repeat& r) {
    const bool within = r.first >= 0 && r.kernels > 0 && r.times > 0 &&
                        r.first + static_cast<std::int64_t>(r.kernels) * r.times <= problem_.kernel_count();
    need(within, "", "a repeat lies within the kernels");
  }

  [[nodiscard]] int phase_of(int kernel) const { return at(problem_.kernels, kernel).phase; }
  [[nodiscard]] static bool is_amount(double number) { return std::isfinite(number) && number >= 0; }

  const Problem& problem_;
  std::string place_;
  Diagnostics found_;
};

}  // namespace

double Problem::messages_of(const Buffer& buffer) const {
  if (buffer.messages > 0) return buffer.messages;
  return at(phases, at(kernels, buffer.writer).phase).passes;
}

bool Problem::is_within_pass(const Buffer& buffer) const {
  return buffer.readers.empty() || at(kernels, buffer.readers.front()).phase == at(kernels, buffer.writer).phase;
}

Problem with_in_flight(Problem problem, int in_flight) {
  for (Phase& phase : problem.phases) phase.in_flight = in_flight;
  return problem;
}

Expected<void> check(const Problem& problem) {
  Diagnostics found = ProblemCheck(problem).run();
  if (found.empty()) return {};
  return fail(std::move(found));
}

}  // namespace tangram::disaggregate
