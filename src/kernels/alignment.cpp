#include "tangram/kernels/alignment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "recorded_graph.hpp"
#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"

namespace tangram::kernels {
namespace {

/// Kernels [first, first + count) that one operator launched one after the other.
struct OperatorRun {
  int first = 0;
  int count = 0;
};

std::vector<OperatorRun> operator_runs(const KernelGraph& graph, const Phase& phase) {
  std::vector<OperatorRun> runs;
  for (int k = phase.first; k < phase.first + phase.count; ++k) {
    const bool goes_on =
        !runs.empty() && at(graph.kernels, runs.back().first).position == at(graph.kernels, k).position;
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({k, 1});
    }
  }
  return runs;
}

bool by_order(const KernelGraph& graph) {
  return std::ranges::any_of(graph.kernels, [](const Kernel& kernel) { return is_by_order(kernel.position); });
}

Diagnostics refused(std::string message, std::string hint) {
  return {problem(ErrorKind::kInput, "not-aligned", std::move(message), std::move(hint))};
}

std::string shown(const KernelGraph& graph, int kernel) {
  const Kernel& k = at(graph.kernels, kernel);
  const std::string name = k.names.empty() || k.names.front().empty() ? k.op : k.names.front();
  return fmt::format("{} ({})", k.position, name.substr(0, 60));
}

class Alignment {
 public:
  Alignment(const KernelGraph& graph, const KernelGraph& recording) : graph_(graph), recording_(recording) {}

  Expected<KernelGraph> run() && {
    if (recording_.gpus.size() != 1) return fail(refused("a recording is of one GPU", "name it with --gpu"));
    if (graph_.phases.size() != recording_.phases.size()) {
      return fail(refused(
          fmt::format("the graph has {} phases, the recording {}", graph_.phases.size(), recording_.phases.size()),
          "record the same step"));
    }
    for (const Phase& phase : graph_.phases) {
      if (!phase.repeats.empty()) return fail(refused("the graph has repeats", "align recordings with recordings"));
    }
    add_gpu();
    places_.assign(graph_.kernels.size(), 0);
    for (std::size_t phase = 0; phase < graph_.phases.size(); ++phase) {
      const Diagnostics wrong = by_order(recording_)
                                    ? align_by_order(graph_.phases[phase], recording_.phases[phase])
                                    : align_by_operator(graph_.phases[phase], recording_.phases[phase]);
      if (!wrong.empty()) return fail(wrong);
    }
    for (Kernel& kernel : out_.kernels) repair_after(kernel);
    return std::move(out_);
  }

 private:
  void add_gpu() {
    out_.sources = graph_.sources;
    out_.sources.insert(out_.sources.end(), recording_.sources.begin(), recording_.sources.end());
    out_.gpus = graph_.gpus;
    out_.buffers = graph_.buffers;
    const std::string& name = recording_.gpus.front();
    gpu_ = static_cast<std::size_t>(std::ranges::find(out_.gpus, name) - out_.gpus.begin());
    if (!knows_gpu()) out_.gpus.push_back(name);
  }

  [[nodiscard]] bool knows_gpu() const { return gpu_ < graph_.gpus.size(); }

  Diagnostics align_by_order(const Phase& phase, const Phase& recorded) {
    if (!knows_gpu()) {
      return refused(
          fmt::format("the recording knows no operators, and the graph no {}", recording_.gpus.front()),
          "without operators kernels are matched by order and name, which only holds on the same GPU: record "
          "a Kineto trace");
    }
    begin_phase(phase);
    for (int i = 0; i < std::min(phase.count, recorded.count); ++i) {
      const Kernel& mine = at(graph_.kernels, phase.first + i);
      const Kernel& theirs = at(recording_.kernels, recorded.first + i);
      const std::string& other = theirs.names.empty() ? theirs.op : theirs.names.front();
      if (gpu_ < mine.names.size() && mine.names[gpu_] != other) {
        return refused(fmt::format("kernel {} is \"{}\" in the graph and \"{}\" in the recording", i,
                                   mine.names[gpu_].substr(0, 60), other.substr(0, 60)),
                       "record the same step of the same program");
      }
      add_pair(phase.first + i, recorded.first + i);
    }
    if (phase.count != recorded.count) {
      return refused(fmt::format("the graph has {} kernels, the recording {}", phase.count, recorded.count),
                     "record the same step");
    }
    end_phase();
    return {};
  }

  Diagnostics align_by_operator(const Phase& phase, const Phase& recorded) {
    begin_phase(phase);
    const std::vector<OperatorRun> mine = operator_runs(graph_, phase);
    const std::vector<OperatorRun> theirs = operator_runs(recording_, recorded);
    for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
      const bool both = i < mine.size() && i < theirs.size();
      if (!both || at(graph_.kernels, mine[i].first).position != at(recording_.kernels, theirs[i].first).position) {
        return refused(fmt::format("operator {} is {} in the graph and {} in the recording", i,
                                   i < mine.size() ? shown(graph_, mine[i].first) : "missing",
                                   i < theirs.size() ? shown(recording_, theirs[i].first) : "missing"),
                       "record the same step of the same program on both GPUs");
      }
      if (mine[i].count == theirs[i].count) {
        for (int k = 0; k < mine[i].count; ++k) add_pair(mine[i].first + k, theirs[i].first + k);
      } else {
        add_sum(mine[i], theirs[i]);
      }
    }
    end_phase();
    return {};
  }

  void begin_phase(const Phase& phase) {
    Phase out = phase;
    out.first = out_.kernel_count();
    out_.phases.push_back(std::move(out));
  }

  void end_phase() { out_.phases.back().count = out_.kernel_count() - out_.phases.back().first; }

  void add_pair(int mine, int theirs) {
    Kernel kernel = at(graph_.kernels, mine);
    take_time(kernel, at(recording_.kernels, theirs).times, joined_names({theirs, 1}));
    at(places_, mine) = out_.kernel_count();
    out_.kernels.push_back(std::move(kernel));
  }

  /// All kernels of the operator as one.
  void add_sum(const OperatorRun& mine, const OperatorRun& theirs) {
    Kernel kernel = at(graph_.kernels, mine.first);
    for (int k = mine.first; k < mine.first + mine.count; ++k) at(places_, k) = out_.kernel_count();
    for (int k = mine.first + 1; k < mine.first + mine.count; ++k) merge(at(graph_.kernels, k), kernel);
    kernel.launch.reset();
    std::optional<KernelTime> time = at(recording_.kernels, theirs.first).times.front();
    for (int k = theirs.first + 1; k < theirs.first + theirs.count; ++k) {
      add_time(at(recording_.kernels, k).times.front(), time);
    }
    take_time(kernel, {time}, joined_names(theirs));
    out_.kernels.push_back(std::move(kernel));
  }

  static void add_time(const std::optional<KernelTime>& part, std::optional<KernelTime>& sum) {
    if (!part || !sum) {
      sum.reset();
    } else {
      sum->time += part->time;
      sum->from = std::max(sum->from, part->from);
      sum->error = std::max(sum->error, part->error);
    }
  }

  /// What both touch, one after the other: whatever any of them surely writes is surely written, but may be read
  /// before.
  static void merge(const Kernel& part, Kernel& whole) {
    for (std::size_t gpu = 0; gpu < whole.times.size(); ++gpu) add_time(part.times[gpu], whole.times[gpu]);
    for (std::size_t gpu = 0; gpu < std::min(whole.names.size(), part.names.size()); ++gpu) {
      if (!part.names[gpu].empty()) whole.names[gpu] += " + " + part.names[gpu];
    }
    const auto add = [](const std::vector<Access>& from, std::vector<Access>& to) {
      for (const Access& access : from) {
        if (std::ranges::find(to, access) == to.end()) to.push_back(access);
      }
    };
    add(part.reads, whole.reads);
    add(part.writes, whole.writes);
    add(part.updates, whole.updates);
    whole.after.insert(whole.after.end(), part.after.begin(), part.after.end());
    whole.evidence = std::max(whole.evidence, part.evidence);
    whole.pinned = whole.pinned == Pin::kNone ? part.pinned : whole.pinned;
    if (whole.signature != part.signature) whole.signature.clear();
  }

  [[nodiscard]] std::string joined_names(const OperatorRun& run) const {
    std::string names;
    for (int k = run.first; k < run.first + run.count; ++k) {
      const Kernel& kernel = at(recording_.kernels, k);
      if (kernel.names.empty() || kernel.names.front().empty()) continue;
      names += (names.empty() ? "" : " + ") + kernel.names.front();
    }
    return names;
  }

  void take_time(Kernel& kernel, const std::vector<std::optional<KernelTime>>& times, std::string name) const {
    kernel.times.resize(out_.gpus.size());
    if (!times.empty() && times.front()) kernel.times[gpu_] = times.front();
    if (name.empty() && kernel.names.empty()) return;
    kernel.names.resize(out_.gpus.size());
    if (!name.empty()) kernel.names[gpu_] = std::move(name);
  }

  /// Kernels of the graph became kernels of the result.
  void repair_after(Kernel& kernel) const {
    const int own = static_cast<int>(&kernel - out_.kernels.data());
    for (int& before : kernel.after) before = at(places_, before);
    std::ranges::sort(kernel.after);
    const auto same = std::ranges::unique(kernel.after);
    kernel.after.erase(same.begin(), same.end());
    std::erase(kernel.after, own);
  }

  const KernelGraph& graph_;
  const KernelGraph& recording_;
  KernelGraph out_;
  std::size_t gpu_ = 0;      ///< of the recording, in the result
  std::vector<int> places_;  ///< of the graph's kernels in the result
};

}  // namespace

Expected<KernelGraph> aligned(const KernelGraph& graph, const KernelGraph& recording) {
  return Alignment(graph, recording).run();
}

}  // namespace tangram::kernels
