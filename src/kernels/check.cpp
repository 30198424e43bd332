#include "tangram/kernels/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "recorded_graph.hpp"
#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

constexpr double kUncertain = 0.2;  // the gains of kernel placement are of 2 to 20 %

template <class Visit>
void for_each_access(const Kernel& kernel, Visit&& visit) {
  for (const auto* accesses : {&kernel.reads, &kernel.writes, &kernel.updates}) {
    for (const Access& access : *accesses) visit(access);
  }
}

/// Kernels that are told of together.
struct Group {
  int count = 0;
  std::set<std::string> kinds;  ///< families of signatures, else names, else operators

  void add(const Kernel& kernel) {
    ++count;
    const bool has_name = !kernel.names.empty() && !kernel.names.front().empty();
    const std::string& name = !kernel.signature.empty() ? kernel.signature
                              : has_name                ? kernel.names.front()
                                                        : kernel.op;
    kinds.insert(name.substr(0, kLongestName));
  }

  [[nodiscard]] std::string text() const {
    std::string text;
    int named = 0;
    for (const std::string& kind : kinds) {
      if (named++ == kMostNamed) break;
      text += (text.empty() ? "" : ", ") + kind;
    }
    const int more = static_cast<int>(kinds.size()) - kMostNamed;
    return more > 0 ? fmt::format("{} and {} more", text, more) : text;
  }

 private:
  static constexpr int kMostNamed = 4;
  static constexpr std::size_t kLongestName = 40;
};

class GraphCheck {
 public:
  explicit GraphCheck(const KernelGraph& graph) : graph_(graph) {}

  std::vector<Finding> run() && {
    for (const Phase& phase : graph_.phases) {
      check_order(phase);
      check_epochs(phase);
      check_copies(phase);
    }
    check_times();
    check_positions();
    warn_of_pins();
    warn_of_signatures();
    warn_of_unread();
    warn_of_errors();
    std::ranges::stable_sort(findings_, {}, &Finding::severity);
    return std::move(findings_);
  }

 private:
  void error(std::string code, std::string about, std::string message) {
    findings_.push_back({Severity::kError, std::move(code), std::move(about), std::move(message)});
  }
  void warn(std::string code, std::string about, std::string message) {
    findings_.push_back({Severity::kWarning, std::move(code), std::move(about), std::move(message)});
  }

  /// Hazards follow the order of launches: what points back, or out of the phase, closes a cycle.
  void check_order(const Phase& phase) {
    for (int k = phase.first; k < phase.first + phase.count; ++k) {
      const Kernel& kernel = at(graph_.kernels, k);
      for (const int before : kernel.after) {
        const std::string& name = at(graph_.kernels, before).id;
        if (before < phase.first || before >= phase.first + phase.count) {
          error("cycle", kernel.id, fmt::format("it waits for {}, a kernel of another phase", name));
        } else if (before >= k) {
          error("cycle", kernel.id, fmt::format("it waits for {}, which is launched later", name));
        }
      }
    }
  }

  /// Buffers of one storage are used one after the other.
  void check_epochs(const Phase& phase) {
    std::map<std::string, int> epochs;
    for (int k = phase.first; k < phase.first + phase.count; ++k) {
      const Kernel& kernel = at(graph_.kernels, k);
      for_each_access(kernel, [&](const Access& access) {
        const Buffer& buffer = at(graph_.buffers, access.buffer);
        if (buffer.storage.empty()) return;
        const auto [entry, is_new] = epochs.emplace(buffer.storage, buffer.epoch);
        if (!is_new && buffer.epoch < entry->second) {
          error("epoch-order", kernel.id,
                fmt::format("it touches {} after a later buffer was in its storage", buffer.id));
        }
        entry->second = std::max(entry->second, buffer.epoch);
      });
    }
  }

  void check_copies(const Phase& phase) {
    for (int k = phase.first; k < phase.first + phase.count; ++k) {
      const std::int64_t passes = phase.passes_of(k);
      for_each_access(at(graph_.kernels, k), [&](const Access& access) {
        const Buffer& buffer = at(graph_.buffers, access.buffer);
        if (buffer.copies == 1 || buffer.copies == passes) return;
        error("copies", at(graph_.kernels, k).id,
              fmt::format("{} has {} copies for {} passes", buffer.id, buffer.copies, passes));
      });
    }
  }

  void check_times() {
    std::vector<int> without(graph_.gpus.size());
    for (const Kernel& kernel : graph_.kernels) {
      int known = 0;
      for (std::size_t gpu = 0; gpu < without.size(); ++gpu) {
        const bool has_time = gpu < kernel.times.size() && kernel.times[gpu];
        known += has_time ? 1 : 0;
        without[gpu] += has_time ? 0 : 1;
      }
      if (known == 0) error("missing-time", kernel.id, "its time is known on no GPU");
    }
    for (std::size_t gpu = 0; gpu < without.size(); ++gpu) {
      if (without[gpu] == 0 || without[gpu] == graph_.kernel_count()) continue;
      warn(
          "gpu-without-time", graph_.gpus[gpu],
          fmt::format("{} of {} kernels have no time there and cannot run there", without[gpu], graph_.kernel_count()));
    }
  }

  void check_positions() {
    if (graph_.gpu_count() < 2) return;
    for (const Kernel& kernel : graph_.kernels) {
      if (!is_by_order(kernel.position)) continue;
      error("unknown-position", kernel.id, "no operator tells that it is the same kernel on all GPUs");
      return;
    }
  }

  void warn_of_pins() {
    std::map<Pin, Group> pins;
    for (const Kernel& kernel : graph_.kernels) {
      if (kernel.pinned != Pin::kNone) pins[kernel.pinned].add(kernel);
    }
    for (const auto& [pin, group] : pins) {
      warn("pinned", "",
           fmt::format("{} of {} kernels stay with their neighbours: {} ({})", group.count, graph_.kernel_count(),
                       to_string(pin), group.text()));
    }
  }

  void warn_of_signatures() {
    Group group;
    for (const Kernel& kernel : graph_.kernels) {
      if (kernel.evidence == Evidence::kSignature) group.add(kernel);
    }
    if (group.count == 0) return;
    warn("signature", "",
         fmt::format("what {} of {} kernels touch is known by signature ({})", group.count, graph_.kernel_count(),
                     group.text()));
  }

  void warn_of_unread() {
    std::vector<bool> read(graph_.buffers.size());
    for (const Kernel& kernel : graph_.kernels) {
      for (const Access& access : kernel.reads) at(read, access.buffer) = true;
      for (const Access& access : kernel.updates) at(read, access.buffer) = true;
    }
    int unread = 0;
    for (std::size_t b = 0; b < read.size(); ++b) {
      const BufferKind kind = graph_.buffers[b].kind;
      if (!read[b] && kind != BufferKind::kOutput && kind != BufferKind::kUnknown) ++unread;
    }
    if (unread > 0) warn("unread", "", fmt::format("{} buffers that are no outputs are never read", unread));
  }

  void warn_of_errors() {
    for (std::size_t gpu = 0; gpu < graph_.gpus.size(); ++gpu) {
      double total = 0;
      double off = 0;
      for (const Kernel& kernel : graph_.kernels) {
        if (gpu >= kernel.times.size() || !kernel.times[gpu]) continue;
        total += kernel.times[gpu]->time.as_double();
        off += kernel.times[gpu]->time.as_double() * kernel.times[gpu]->error;
      }
      if (total <= 0 || off / total <= kUncertain) continue;
      warn("uncertain", graph_.gpus[gpu], fmt::format("its times are off by {:.0f} % in the mean", 100 * off / total));
    }
  }

  const KernelGraph& graph_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check(const KernelGraph& graph) { return GraphCheck(graph).run(); }

}  // namespace tangram::kernels
