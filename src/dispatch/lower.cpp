#include "tangram/dispatch/lower.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "operations.hpp"
#include "tangram/base/at.hpp"

namespace tangram::dispatch {

std::int64_t Copy::bytes() const {
  std::int64_t sum = 0;
  for (const ByteRange& range : ranges) sum += range.bytes;
  return sum;
}

namespace {

/// Cuts what each stream does into segments: waits and what is taken stand at their beginning, what is sent at their
/// end, and whoever is waited for is the last of its segment.
class SegmentCutter {
 public:
  SegmentCutter(const kernels::KernelGraph& graph, const std::vector<Operation>& operations, int phase, int first_copy,
                std::vector<Segment>& segments)
      : graph_(graph), operations_(operations), phase_(phase), first_copy_(first_copy), segments_(segments) {
    for (const Operation& operation : operations) {
      for (const int w : operation.waits) is_waited_for_.insert(w);
    }
  }

  void run() {
    for (int i = 0; i < static_cast<int>(operations_.size()); ++i) add(i);
  }

 private:
  void add(int number) {
    const Operation& operation = at(operations_, number);
    const int place = place_for(operation);
    segment_of_.push_back(place);
    Segment& segment = at(segments_, place);
    for (const int w : operation.waits) {
      const int waited = at(segment_of_, w);
      if (std::ranges::find(segment.waits, waited) == segment.waits.end()) segment.waits.push_back(waited);
    }
    switch (operation.kind) {
      case Operation::Kind::kUnpack: segment.takes.push_back(first_copy_ + operation.number); break;
      case Operation::Kind::kKernel: segment.kernels.push_back(at(graph_.kernels, operation.number).id); break;
      case Operation::Kind::kPack: segment.sends.push_back(first_copy_ + operation.number); break;
    }
    if (is_waited_for_.contains(number)) closed_.insert(place);
  }

  /// The open segment of the stream, or a new one where this operation cannot join it.
  int place_for(const Operation& operation) {
    const std::pair<int, int> stream{operation.device, operation.stream};
    const auto open = open_.find(stream);
    if (open != open_.end() && can_join(operation, open->second)) return open->second;
    segments_.push_back({phase_, operation.device, operation.stream, {}, {}, {}, {}, 0});
    return open_[stream] = static_cast<int>(segments_.size()) - 1;
  }

  [[nodiscard]] bool can_join(const Operation& operation, int place) const {
    const Segment& segment = at(segments_, place);
    if (operation.kind == Operation::Kind::kPack) return operation.waits.empty();
    if (closed_.contains(place) || !segment.sends.empty()) return false;
    const bool has_begun = !segment.kernels.empty();
    if (operation.kind == Operation::Kind::kUnpack) return !has_begun;
    return operation.waits.empty() || !has_begun;
  }

  const kernels::KernelGraph& graph_;
  const std::vector<Operation>& operations_;
  int phase_;
  int first_copy_;
  std::vector<Segment>& segments_;
  std::set<int> is_waited_for_;              // operations
  std::set<int> closed_;                     // segments
  std::map<std::pair<int, int>, int> open_;  // by device and stream: the segment
  std::vector<int> segment_of_;              // by operation
};

Copy copy_of(const NeededCopy& needed, const kernels::KernelGraph& graph, const Pieces& pieces) {
  Copy copy;
  copy.buffer = at(graph.buffers, needed.buffer).id;
  for (const PieceRange& range : needed.ranges) {
    const std::int64_t offset = pieces.piece(range.first).begin;
    copy.ranges.push_back({offset, pieces.piece(range.last - 1).end - offset});
  }
  copy.from = needed.from;
  copy.to = needed.to;
  return copy;
}

}  // namespace

Schedule lowered(const kernels::KernelGraph& graph, std::span<const int> on, std::vector<Device> devices) {
  Schedule schedule;
  schedule.devices = std::move(devices);
  const Pieces pieces(graph);
  const auto copies = needed_copies(graph, pieces, on);
  for (int f = 0; f < static_cast<int>(graph.phases.size()); ++f) {
    const kernels::Phase& phase = at(graph.phases, f);
    schedule.phases.push_back({phase.name, 1, 1});
    const auto operations = operations_of(graph, phase, on, at(copies, f), pieces);
    const int first_copy = static_cast<int>(schedule.copies.size());
    SegmentCutter(graph, operations, f, first_copy, schedule.segments).run();
    for (const NeededCopy& needed : at(copies, f)) schedule.copies.push_back(copy_of(needed, graph, pieces));
  }
  return schedule;
}

}  // namespace tangram::dispatch
