#include "tangram/kernels/launched_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "place.hpp"
#include "tangram/base/at.hpp"
#include "tangram/kernels/signatures.hpp"
#include "tangram/ptx/analysis.hpp"

namespace tangram::kernels {

namespace {

/// The runs of a set of bytes, ascending; of too many, one that holds all of them.
std::vector<Access> runs_of(const ptx::ByteSet& set, int buffer, bool exact) {
  constexpr std::int64_t kMostRuns = 256;
  std::int64_t count = 1;
  for (const ptx::Repeat& repeat : set.repeats) count = std::min(kMostRuns + 1, count * repeat.count);
  if (!exact || count > kMostRuns) return {{buffer, set.first, set.end() - set.first, false}};
  std::vector<Access> runs{{buffer, set.first, set.run, true}};
  for (const ptx::Repeat& repeat : set.repeats) {
    const std::size_t before = runs.size();
    for (std::int64_t i = 1; i < repeat.count; ++i) {
      for (std::size_t r = 0; r < before; ++r) {
        runs.push_back(runs[r]);
        runs.back().offset += i * repeat.stride;
      }
    }
  }
  return runs;
}

/// Exact accesses that touch or overlap are one.
std::vector<Access> joined(std::vector<Access> accesses) {
  std::ranges::sort(accesses, {}, [](const Access& a) { return std::tuple(a.buffer, !a.exact, a.offset); });
  std::vector<Access> result;
  for (const Access& next : accesses) {
    const bool joins = !result.empty() && result.back().buffer == next.buffer && result.back().exact == next.exact &&
                       next.offset <= result.back().end();
    if (joins) {
      result.back().bytes = std::max(result.back().end(), next.end()) - result.back().offset;
    } else {
      result.push_back(next);
    }
  }
  return result;
}

class LaunchedGraph {
 public:
  LaunchedGraph(std::span<const ptx::Module> modules, const std::string& file, std::span<const cluster::GpuType> gpus,
                const KernelCosts& costs)
      : modules_(modules), file_(file), gpus_(gpus), costs_(costs) {
    for (const cluster::GpuType& gpu : gpus) graph_.gpus.push_back(gpu.name);
  }

  Expected<KernelGraph> run(const std::vector<ptx::RecordedLaunch>& launches) && {
    for (const ptx::RecordedLaunch& launch : launches) add(launch);
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    for (int b = 0; b < static_cast<int>(graph_.buffers.size()); ++b) at(graph_.buffers, b).kind = kind_of_buffer(b);
    Phase phase;
    phase.name = "step";
    phase.count = graph_.kernel_count();
    graph_.phases.push_back(std::move(phase));
    return std::move(graph_);
  }

 private:
  void add(const ptx::RecordedLaunch& recorded) {
    const ptx::Launch& launch = recorded.launch;
    const auto touch = touch_of(at(modules_, recorded.module), launch);
    if (!touch) {
      for (Diagnostic wrong : touch.error()) {
        wrong.where = {file_, recorded.line, 1};
        mistakes_.push_back(std::move(wrong));
      }
      return;
    }
    for (const ptx::Argument& argument : launch.arguments) {
      if (const auto* buffer = std::get_if<ptx::BufferArgument>(&argument)) note(*buffer, recorded.line);
    }
    Kernel kernel;
    kernel.order = graph_.kernel_count();
    kernel.id = fmt::format("{}.{}", kernel.order, launch.entry);
    kernel.position = kernel.id;
    kernel.op = "stream";
    kernel.launch = Launch{launch.grid, launch.block, Bytes(0)};
    kernel.evidence = touch->evidence;
    if (touch->signature != nullptr) kernel.signature = touch->signature->family;
    makes_results_.push_back(touch->signature != nullptr && touch->signature->results > 0 ? 1 : 0);
    kernel.pinned = touch->pinned;
    for (const ptx::BufferRange& range : touch->ranges.ranges) add_range(launch, range, kernel);
    for (auto* accesses : {&kernel.reads, &kernel.writes, &kernel.updates}) *accesses = joined(std::move(*accesses));
    add_times(kernel);
    kernel.names.assign(gpus_.size(), launch.entry);
    graph_.kernels.push_back(std::move(kernel));
  }

  void note(const ptx::BufferArgument& buffer, int line) {
    const auto [place, is_new] = buffers_.try_emplace(buffer.name, static_cast<int>(graph_.buffers.size()));
    if (is_new) {
      Buffer added;
      added.id = buffer.name;
      added.bytes = Bytes(buffer.bytes);
      graph_.buffers.push_back(std::move(added));
      has_integers_.push_back(0);
    }
    if (!buffer.integers.empty()) at(has_integers_, place->second) = 1;
    const std::int64_t bytes = at(graph_.buffers, place->second).bytes.value();
    if (bytes == buffer.bytes) return;
    mistakes_.push_back(mistake_at(
        file_, line, 1, "inconsistent-value",
        fmt::format("\"{}\" has {} bytes here, and {} in an earlier launch", buffer.name, buffer.bytes, bytes),
        "allocations of other sizes need other names"));
  }

  void add_range(const ptx::Launch& launch, const ptx::BufferRange& range, Kernel& kernel) const {
    const auto& argument = std::get<ptx::BufferArgument>(at(launch.arguments, range.argument));
    auto& accesses = range.effect == ptx::Effect::kRead    ? kernel.reads
                     : range.effect == ptx::Effect::kWrite ? kernel.writes
                                                           : kernel.updates;
    for (const ptx::ByteSet& set : range.bytes) {
      const auto runs = runs_of(set, buffers_.at(argument.name), range.exact);
      accesses.insert(accesses.end(), runs.begin(), runs.end());
    }
  }

  void add_times(Kernel& kernel) const {
    std::int64_t bytes = 0;
    for (const Access& access : kernel.reads) bytes += access.bytes;
    for (const Access& access : kernel.writes) bytes += access.bytes;
    for (const Access& access : kernel.updates) bytes += 2 * access.bytes;
    kernel.shape = {std::max<std::int64_t>(1, bytes)};
    for (const cluster::GpuType& gpu : gpus_) {
      kernel.times.push_back(costs_.time(Operator::kStream, kernel.shape, DType::kFp32, gpu));
    }
  }

  [[nodiscard]] BufferKind kind_of_buffer(int buffer) const {
    bool is_read = false;
    bool is_written = false;
    bool is_kept = false;                          // from step to step
    std::map<std::int64_t, std::int64_t> written;  // begin and end of runs
    for (const Kernel& kernel : graph_.kernels) {
      for (const auto* accesses : {&kernel.reads, &kernel.updates}) {
        // A product may add to what is there; whoever wants that has written it before.
        if (accesses == &kernel.updates && at(makes_results_, kernel.order) != 0) continue;
        for (const Access& access : *accesses) {
          if (access.buffer != buffer) continue;
          is_read = true;
          is_kept = is_kept || !covers(written, access);
        }
      }
      for (const auto* accesses : {&kernel.writes, &kernel.updates}) {
        for (const Access& access : *accesses) {
          if (access.buffer != buffer) continue;
          is_written = true;
          if (access.exact) written[access.offset] = std::max(written[access.offset], access.end());
        }
      }
    }
    if (!is_written) return at(has_integers_, buffer) != 0 ? BufferKind::kInput : BufferKind::kWeight;
    if (!is_read) return BufferKind::kOutput;
    return is_kept ? BufferKind::kKv : BufferKind::kActivation;
  }

  static bool covers(const std::map<std::int64_t, std::int64_t>& written, const Access& access) {
    std::int64_t until = access.offset;
    for (const auto& [begin, end] : written) {
      if (begin > until) break;
      until = std::max(until, end);
    }
    return until >= access.end();
  }

  std::span<const ptx::Module> modules_;
  const std::string& file_;
  std::span<const cluster::GpuType> gpus_;
  const KernelCosts& costs_;
  KernelGraph graph_;
  std::unordered_map<std::string, int> buffers_;
  std::vector<char> has_integers_;   // by buffer
  std::vector<char> makes_results_;  // by kernel: known by a signature that says which tensors it reads
  Diagnostics mistakes_;
};

}  // namespace

Expected<KernelGraph> graph_of_launches(std::span<const ptx::Module> modules,
                                        const std::vector<ptx::RecordedLaunch>& launches, const std::string& file,
                                        std::span<const cluster::GpuType> gpus, const KernelCosts& costs) {
  return LaunchedGraph(modules, file, gpus, costs).run(launches);
}

}  // namespace tangram::kernels
