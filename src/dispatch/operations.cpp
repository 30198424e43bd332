#include "operations.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

namespace {

using kernels::KernelGraph;

/// Operations in order; waits are empty yet.
std::vector<Operation> in_order(const KernelGraph& graph, const kernels::Phase& phase, std::span<const int> on,
                                const std::vector<NeededCopy>& copies) {
  std::map<int, std::vector<int>> before;  // copies by reader
  std::map<int, std::vector<int>> behind;  // by writer
  for (int c = 0; c < static_cast<int>(copies.size()); ++c) {
    before[at(copies, c).reader].push_back(c);
    behind[at(copies, c).writer].push_back(c);
  }
  std::vector<Operation> operations;
  std::map<int, int> stream_of;  // by device: of its last kernel
  for (int k = phase.first; k < phase.first + phase.count; ++k) {
    const int device = at(on, k);
    const int stream = at(graph.kernels, k).stream;
    stream_of[device] = stream;
    for (const int c : before[k]) operations.push_back({Operation::Kind::kUnpack, c, device, stream, {}});
    operations.push_back({Operation::Kind::kKernel, k, device, stream, {}});
    for (const int c : behind[k]) operations.push_back({Operation::Kind::kPack, c, device, stream, {}});
  }
  for (const int c : before[-1]) {
    const int device = at(copies, c).to;
    operations.push_back({Operation::Kind::kUnpack, c, device, stream_of[device], {}});
  }
  return operations;
}

/// By stream of a device: how many of its operations end before another begins.
using Clock = std::vector<int>;

class WaitSearch {
 public:
  WaitSearch(const KernelGraph& graph, const std::vector<NeededCopy>& copies, const Pieces& pieces,
             std::vector<Operation> operations)
      : graph_(graph), copies_(copies), pieces_(pieces), operations_(std::move(operations)) {
    for (const Operation& operation : operations_) {
      stream_.push_back(streams_.try_emplace({operation.device, operation.stream}, streams_.size()).first->second);
    }
  }

  std::vector<Operation> run() && {
    std::vector<int> last_of(streams_.size(), -1);
    std::vector<int> position(streams_.size(), 0);
    for (int i = 0; i < static_cast<int>(operations_.size()); ++i) {
      const std::size_t stream = at(stream_, i);
      Clock clock = last_of[stream] < 0 ? Clock(streams_.size(), 0) : at(clocks_, last_of[stream]);
      Operation& operation = at(operations_, i);
      if (operation.kind == Operation::Kind::kUnpack) join(clock, at(clocks_, packed_.at(operation.number)));
      if (operation.kind == Operation::Kind::kPack) packed_[operation.number] = i;
      operation.waits = needed(before(i), clock);
      for (const int w : operation.waits) join(clock, at(clocks_, w));
      place_.push_back(++position[stream]);
      clock[stream] = place_.back();
      clocks_.push_back(std::move(clock));
      last_of[stream] = i;
    }
    return std::move(operations_);
  }

 private:
  struct Memory {
    std::optional<int> writer;  // operations
    int buffer = -1;            // as which it was written
    std::vector<int> readers;   // since

    /// What another buffer of the storage left is not what is read.
    [[nodiscard]] bool is_read_as(int other) const { return !writer || buffer == other; }
  };

  static void join(Clock& clock, const Clock& other) {
    for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
  }

  [[nodiscard]] bool covers(const Clock& clock, int operation) const {
    return clock[at(stream_, operation)] >= at(place_, operation);
  }

  /// Those that neither `clock` nor another one of them waits for.
  [[nodiscard]] std::vector<int> needed(std::vector<int> candidates, const Clock& clock) const {
    std::ranges::sort(candidates);
    candidates.erase(std::ranges::unique(candidates).begin(), candidates.end());
    std::erase_if(candidates, [&](int c) { return covers(clock, c); });
    std::vector<int> kept;
    for (const int c : candidates) {
      const bool follows =
          std::ranges::any_of(candidates, [&](int other) { return other != c && covers(at(clocks_, other), c); });
      if (!follows) kept.push_back(c);
    }
    return kept;
  }

  /// Operations of the device whose bytes this one reads, or overwrites, or had an order of their own with it.
  std::vector<int> before(int number) {
    const Operation& operation = at(operations_, number);
    Touches touches;
    if (operation.kind == Operation::Kind::kKernel) {
      touches = touches_of(at(graph_.kernels, operation.number), pieces_);
    } else {
      auto& list = operation.kind == Operation::Kind::kPack ? touches.reads : touches.writes;
      list = at(copies_, operation.number).ranges;
    }
    std::vector<int> found;
    std::map<int, Memory>& memory = memory_[operation.device];
    const auto visit = [](const std::vector<PieceRange>& ranges, auto&& each) {
      for (const PieceRange& range : ranges) {
        for (int p = range.first; p < range.last; ++p) each(p, range.buffer);
      }
    };
    visit(touches.reads, [&](int p, int buffer) {
      if (memory[p].writer && memory[p].is_read_as(buffer)) found.push_back(*memory[p].writer);
    });
    visit(touches.writes, [&](int p, int) {
      if (memory[p].writer) found.push_back(*memory[p].writer);
      found.insert(found.end(), memory[p].readers.begin(), memory[p].readers.end());
    });
    visit(touches.reads, [&](int p, int buffer) {
      if (memory[p].is_read_as(buffer)) memory[p].readers.push_back(number);
    });
    visit(touches.writes, [&](int p, int buffer) { memory[p] = {number, buffer, {}}; });
    if (operation.kind == Operation::Kind::kKernel) add_recorded(number, found);
    std::erase(found, number);
    return found;
  }

  /// Kernels of which not all is known keep the order that was recorded.
  void add_recorded(int number, std::vector<int>& found) {
    const Operation& operation = at(operations_, number);
    const kernels::Kernel& kernel = at(graph_.kernels, operation.number);
    for (const int earlier : kernel.after) {
      const auto place = launched_.find(earlier);
      if (place == launched_.end() || at(operations_, place->second).device != operation.device) continue;
      const bool is_known =
          kernel.pinned == kernels::Pin::kNone && at(graph_.kernels, earlier).pinned == kernels::Pin::kNone;
      if (!is_known) found.push_back(place->second);
    }
    launched_[operation.number] = number;
  }

  const KernelGraph& graph_;
  const std::vector<NeededCopy>& copies_;
  const Pieces& pieces_;
  std::vector<Operation> operations_;
  std::map<std::pair<int, int>, std::size_t> streams_;  // device and stream
  std::vector<std::size_t> stream_;                     // by operation
  std::vector<int> place_;                              // by operation: on its stream, from 1
  std::vector<Clock> clocks_;                           // by operation: when it has ended
  std::map<int, std::map<int, Memory>> memory_;         // by device, piece
  std::map<int, int> packed_;                           // by copy: the operation
  std::map<int, int> launched_;                         // by kernel: the operation
};

}  // namespace

std::vector<Operation> operations_of(const KernelGraph& graph, const kernels::Phase& phase, std::span<const int> on,
                                     const std::vector<NeededCopy>& copies, const Pieces& pieces) {
  return WaitSearch(graph, copies, pieces, in_order(graph, phase, on, copies)).run();
}

}  // namespace tangram::dispatch
