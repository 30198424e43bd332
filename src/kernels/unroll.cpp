#include "tangram/kernels/unroll.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

constexpr Repeat kOnce{0, 0, 1};

std::string numbered(const std::string& name, std::int64_t pass, bool repeated) {
  return repeated ? fmt::format("{}[{}]", name, pass) : name;
}

class Unroller {
 public:
  Unroller(const KernelGraph& graph, std::int64_t most_passes) : graph_(graph), most_(most_passes) {
    out_.sources = graph.sources;
    out_.gpus = graph.gpus;
    copy_buffers();
  }

  KernelGraph run() && {
    for (const Phase& phase : graph_.phases) add_phase(phase);
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::int64_t passes(std::int64_t times) const { return std::min(times, most_); }

  void copy_buffers() {
    for (const Buffer& buffer : graph_.buffers) {
      first_copy_.push_back(static_cast<int>(out_.buffers.size()));
      const bool repeated = buffer.copies > 1;
      for (std::int64_t copy = 0; copy < passes(buffer.copies); ++copy) {
        Buffer one = buffer;
        one.id = numbered(buffer.id, copy, repeated);
        one.copies = 1;
        if (!one.storage.empty()) one.storage = numbered(buffer.storage, copy, repeated);
        out_.buffers.push_back(std::move(one));
      }
    }
  }

  void add_phase(const Phase& phase) {
    Phase out = phase;
    out.first = out_.kernel_count();
    out.repeats.clear();
    last_place_.assign(graph_.kernels.size(), 0);
    order_ = 0;
    int next = phase.first;
    for (const Repeat& repeat : phase.repeats) {
      add_passes(next, repeat.first - next, kOnce);
      add_passes(repeat.first, repeat.kernels, repeat);
      next = repeat.first + repeat.kernels;
    }
    add_passes(next, phase.first + phase.count - next, kOnce);
    out.count = out_.kernel_count() - out.first;
    out_.phases.push_back(std::move(out));
  }

  void add_passes(int first, int count, const Repeat& repeat) {
    std::set<int> layers;
    for (int k = first; k < first + count; ++k) {
      if (at(graph_.kernels, k).layer >= 0) layers.insert(at(graph_.kernels, k).layer);
    }
    for (std::int64_t pass = 0; pass < passes(repeat.times); ++pass) {
      for (int k = first; k < first + count; ++k) {
        add_kernel(k, pass, repeat.times > 1, static_cast<int>(layers.size()));
      }
    }
  }

  void add_kernel(int number, std::int64_t pass, bool repeated, int layers_each) {
    Kernel kernel = at(graph_.kernels, number);
    kernel.id = numbered(kernel.id, pass, repeated);
    kernel.position = numbered(kernel.position, pass, repeated);
    if (kernel.layer >= 0) kernel.layer += static_cast<int>(pass) * layers_each;
    kernel.order = order_++;
    for (auto* accesses : {&kernel.reads, &kernel.writes, &kernel.updates}) {
      for (Access& access : *accesses) access.buffer = copy_of(access.buffer, pass);
    }
    for (int& before : kernel.after) before = at(last_place_, before);
    at(last_place_, number) = out_.kernel_count();
    out_.kernels.push_back(std::move(kernel));
  }

  [[nodiscard]] int copy_of(int buffer, std::int64_t pass) const {
    const std::int64_t copies = passes(at(graph_.buffers, buffer).copies);
    return at(first_copy_, buffer) + static_cast<int>(std::min(pass, copies - 1));
  }

  const KernelGraph& graph_;
  std::int64_t most_;
  KernelGraph out_;
  std::vector<int> first_copy_;  ///< by buffer
  std::vector<int> last_place_;  ///< by kernel: its last pass so far
  std::int64_t order_ = 0;
};

}  // namespace

KernelGraph unrolled(const KernelGraph& graph, std::int64_t most_passes) {
  return Unroller(graph, std::max<std::int64_t>(1, most_passes)).run();
}

}  // namespace tangram::kernels
