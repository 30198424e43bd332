#include "tangram/disaggregate/bind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fleet_classes.hpp"
#include "merge.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/kernels/hazards.hpp"
#include "tangram/kernels/unroll.hpp"

namespace tangram::disaggregate {

namespace {

using kernels::KernelGraph;

Block block_of(kernels::Part part) {
  if (part == kernels::Part::kAttention) return Block::kAttention;
  return part == kernels::Part::kFeedForward ? Block::kFeedForward : Block::kOther;
}

// Where kernels and repeats of a graph are once it is unrolled.
std::vector<Repeat> repeats_of(const KernelGraph& graph) {
  std::vector<Repeat> repeats;
  int before = 0;  // kernels written out so far
  for (const kernels::Phase& phase : graph.phases) {
    int next = phase.first;
    for (const kernels::Repeat& repeat : phase.repeats) {
      before += repeat.first - next;
      const int times = static_cast<int>(repeat.times);
      if (times > 1) repeats.push_back({before, repeat.kernels, times});
      before += repeat.kernels * times;
      next = repeat.first + repeat.kernels;
    }
    before += phase.first + phase.count - next;
  }
  return repeats;
}

class Binding {
 public:
  Binding(const cluster::Fleet& fleet, const KernelGraph& graph, const Deployment& deployment)
      : unrolled_(kernels::unrolled(graph)), deployment_(deployment) {
    FleetClasses types = classes_of(fleet, deployment);
    result_.classes = std::move(types.classes);
    result_.links = std::move(types.links);
    result_.repeats = repeats_of(graph);
  }

  Expected<Problem> run() {
    find_gpus();
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    add_phases();
    add_kernels();
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    add_messages();
    add_resident();
    if (!pinned_.empty()) result_ = merged(result_, pinned_);
    if (auto ok = check(result_); !ok) return fail(std::move(ok.error()));
    return std::move(result_);
  }

 private:
  void mistake(std::string code, std::string message, std::string hint) {
    mistakes_.push_back(problem(ErrorKind::kInput, std::move(code), std::move(message), std::move(hint)));
  }

  void find_gpus() {
    for (const GpuClass& c : result_.classes) {
      const auto found = std::ranges::find(unrolled_.gpus, c.name);
      if (found == unrolled_.gpus.end()) {
        mistake("gpu-without-times", fmt::format("the fleet has {}, of which the kernel graph has no times", c.name),
                fmt::format("tangram kernels synth MODEL --gpu {},..., or import a recording with --onto", c.name));
      }
      gpu_of_.push_back(static_cast<int>(found - unrolled_.gpus.begin()));
    }
  }

  [[nodiscard]] bool is_free(int kernel) const { return at(unrolled_.kernels, kernel).pinned == kernels::Pin::kNone; }

  // A round is one pass of the last phase.
  void add_phases() {
    const double requests = requests_of(unrolled_);
    for (const kernels::Phase& phase : unrolled_.phases) {
      Phase added;
      added.name = phase.name;
      added.in_flight = deployment_.in_flight * most_gpus(result_);
      if (&phase != &unrolled_.phases.back()) {
        const double each = static_cast<double>(std::max<std::int64_t>(1, phase.requests));
        added.passes = requests / deployment_.generated_tokens / each;
      }
      result_.phases.push_back(std::move(added));
    }
  }

  void add_kernels() {
    for (int f = 0; f < static_cast<int>(unrolled_.phases.size()); ++f) {
      const kernels::Phase& phase = at(unrolled_.phases, f);
      int layers = 0;
      for (int k = phase.first; k < phase.first + phase.count; ++k) {
        layers = std::max(layers, at(unrolled_.kernels, k).layer + 1);
      }
      bool is_behind = false;  // the layers: the head is no embedding
      for (int k = phase.first; k < phase.first + phase.count; ++k) {
        const kernels::Kernel& kernel = at(unrolled_.kernels, k);
        is_behind = is_behind || kernel.layer >= 0;
        Kernel added = kernel_of(kernel, f);
        if (kernel.layer < 0 && is_behind) added.layer = layers;
        result_.kernels.push_back(std::move(added));
      }
    }
  }

  Kernel kernel_of(const kernels::Kernel& kernel, int phase) {
    Kernel added;
    added.name = kernel.id;
    added.phase = phase;
    added.layer = kernel.layer;
    added.block = block_of(kernel.part);
    bool runs = false;
    for (const int gpu : gpu_of_) {
      const bool is_known = static_cast<std::size_t>(gpu) < kernel.times.size() && at(kernel.times, gpu);
      added.seconds.push_back(is_known ? to_seconds(at(kernel.times, gpu)->time) : kNever);
      if (is_known) added.error = std::max(added.error, std::min(0.99, at(kernel.times, gpu)->error));
      runs = runs || is_known;
    }
    if (!runs) {
      mistake("missing-time", fmt::format("kernel {} has a time on no GPU of the fleet", kernel.id),
              "tangram kernels check names all of them");
    }
    return added;
  }

  // One for each kernel and buffer that it writes and others read.
  void add_messages() {
    for (const kernels::Phase& phase : unrolled_.phases) {
      std::map<std::pair<int, int>, Buffer> messages;  // by writer and buffer
      for (const kernels::Hazard& hazard : kernels::hazards(unrolled_, phase)) {
        if (!is_free(hazard.from) || !is_free(hazard.to)) pinned_.push_back({hazard.from, hazard.to});
        if (hazard.kind != kernels::HazardKind::kReadAfterWrite || hazard.storage) continue;
        Buffer& message = messages[{hazard.from, hazard.buffer}];
        message.writer = hazard.from;
        message.bytes = std::max(message.bytes, static_cast<double>(hazard.bytes));
        if (message.readers.empty() || message.readers.back() != hazard.to) message.readers.push_back(hazard.to);
      }
      for (auto& [key, message] : messages) result_.buffers.push_back(std::move(message));
    }
    if (unrolled_.phases.size() > 1) add_caches_sent();
  }

  // States of recurrences are updated in place: read, too.
  template <class Visit>
  void for_each_read(int kernel, Visit&& visit) const {
    const kernels::Kernel& of = at(unrolled_.kernels, kernel);
    for (const auto* accesses : {&of.reads, &of.updates}) {
      for (const kernels::Access& access : *accesses) visit(access);
    }
  }

  // What the last phase reads of caches that an earlier one wrote: all bytes of a pass, once.
  void add_caches_sent() {
    const kernels::Phase& last = unrolled_.phases.back();
    std::map<int, std::vector<int>> readers;  // by buffer
    for (int k = last.first; k < last.first + last.count; ++k) {
      for_each_read(k, [&](const kernels::Access& read) {
        if (at(unrolled_.buffers, read.buffer).kind == kernels::BufferKind::kKv) readers[read.buffer].push_back(k);
      });
    }
    for (int k = 0; k < last.first; ++k) {
      const kernels::Kernel& kernel = at(unrolled_.kernels, k);
      for (const auto* accesses : {&kernel.writes, &kernel.updates}) {
        for (const kernels::Access& write : *accesses) {
          const auto to = readers.find(write.buffer);
          if (to == readers.end()) continue;
          Buffer message;
          message.writer = k;
          message.bytes = static_cast<double>(write.bytes);
          message.readers = to->second;
          result_.buffers.push_back(std::move(message));
        }
      }
    }
  }

  // Weights, and caches where attention of the last phase reads them.
  void add_resident() {
    std::map<int, std::set<int>> readers;  // by buffer
    const int last = unrolled_.phases.back().first;
    for (int k = 0; k < unrolled_.kernel_count(); ++k) {
      for_each_read(k, [&](const kernels::Access& read) {
        const kernels::BufferKind kind = at(unrolled_.buffers, read.buffer).kind;
        if (kind == kernels::BufferKind::kWeight || (kind == kernels::BufferKind::kKv && k >= last)) {
          readers[read.buffer].insert(k);
        }
      });
    }
    for (const auto& [buffer, of_buffer] : readers) {
      const bool is_weight = at(unrolled_.buffers, buffer).kind == kernels::BufferKind::kWeight;
      Buffer held;
      held.kind = is_weight ? BufferKind::kWeight : BufferKind::kCache;
      held.bytes = at(unrolled_.buffers, buffer).bytes.as_double();
      held.readers.assign(of_buffer.begin(), of_buffer.end());
      result_.buffers.push_back(std::move(held));
    }
  }

  const KernelGraph unrolled_;
  const Deployment& deployment_;
  std::vector<int> gpu_of_;  // by class: in the graph
  Problem result_;
  std::vector<KernelRange> pinned_;  // with all that they read from or write for, and what is launched in between
  Diagnostics mistakes_;
};

}  // namespace

int requests_of(const KernelGraph& graph) {
  return graph.phases.empty() ? 1 : static_cast<int>(std::max<std::int64_t>(1, graph.phases.back().requests));
}

int most_gpus(const Problem& problem) { return std::ranges::max_element(problem.classes, {}, &GpuClass::count)->count; }

Expected<Problem> problem_of(const cluster::Fleet& fleet, const KernelGraph& graph, const Deployment& deployment) {
  return Binding(fleet, graph, deployment).run();
}

}  // namespace tangram::disaggregate
