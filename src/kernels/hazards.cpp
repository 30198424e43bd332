// One sweep over the launches. Each storage is cut into segments of bytes that the same kernels touched; a segment
// keeps who may have written it since it was last surely written, and who read it since.
#include "tangram/kernels/hazards.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "tangram/base/at.hpp"

namespace tangram::kernels {
namespace {

/// An access in the past.
struct Touch {
  int kernel = 0;
  int buffer = 0;
  bool exact = true;
};

struct Segment {
  std::int64_t end = 0;
  std::vector<Touch> writers;
  std::vector<Touch> readers;
};

/// The bytes of a storage from 0 on, by the first byte of each segment.
class SegmentMap {
 public:
  /// Calls visit(segment, bytes) for what covers [begin, end), which from here on has segment borders at both ends.
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t end, Visit&& visit) {
    cover(end);
    split(begin);
    split(end);
    for (auto place = segments_.find(begin); place != segments_.end() && place->first < end; ++place) {
      visit(place->second, place->second.end - place->first);
    }
  }

 private:
  void cover(std::int64_t end) {
    const std::int64_t covered = segments_.empty() ? 0 : segments_.rbegin()->second.end;
    if (covered < end) segments_[covered].end = end;
  }

  void split(std::int64_t at) {
    auto after = segments_.upper_bound(at);
    if (after == segments_.begin()) return;
    const auto holds = std::prev(after);
    if (holds->first == at || holds->second.end <= at) return;
    Segment rest = holds->second;
    holds->second.end = at;
    segments_.emplace(at, std::move(rest));
  }

  std::map<std::int64_t, Segment> segments_;
};

class HazardSweep {
 public:
  explicit HazardSweep(const KernelGraph& graph)
      : graph_(graph), storages_(storages_of(graph)), segments_(static_cast<std::size_t>(storages_.count)) {}

  void launch(int number) {
    const Kernel& kernel = at(graph_.kernels, number);
    found_.clear();
    for (const Access& read : kernel.reads) look_for_writers(number, read);
    for (const Access& update : kernel.updates) look_for_writers(number, update);
    for (const Access& write : kernel.writes) look_for_all(number, write, starts_afresh(kernel, write));
    for (const Access& update : kernel.updates) look_for_all(number, update, false);
    for (const Access& read : kernel.reads) note_read(number, read);
    for (const Access& write : kernel.writes) note_write(number, write);
    // What an update leaves depends on what was there, which its own read-after-write hazards keep in order.
    for (const Access& update : kernel.updates) note_write(number, update);
    for (auto& [key, hazard] : found_) hazards_.push_back(hazard);
  }

  std::vector<Hazard> finished() && { return std::move(hazards_); }

 private:
  SegmentMap& segments_of(const Access& access) { return at(segments_, at(storages_.of, access.buffer)); }

  /// Whether the kernel overwrites all of the buffer, and reads none of it.
  bool starts_afresh(const Kernel& kernel, const Access& write) const {
    const auto touches = [&](const Access& access) { return access.buffer == write.buffer; };
    const std::int64_t size = at(graph_.buffers, write.buffer).bytes.value();
    const auto fills = [&](const Access& access) { return touches(access) && access.exact && access.bytes == size; };
    return std::ranges::any_of(kernel.writes, fills) && std::ranges::none_of(kernel.reads, touches) &&
           std::ranges::none_of(kernel.updates, touches);
  }

  void look_for_writers(int number, const Access& read) {
    segments_of(read).visit(read.offset, read.end(), [&](const Segment& segment, std::int64_t bytes) {
      for (const Touch& writer : segment.writers) {
        if (writer.buffer != read.buffer) continue;  // of another epoch: nothing that is read here
        add(writer, number, HazardKind::kReadAfterWrite, read, bytes, false);
      }
    });
  }

  void look_for_all(int number, const Access& write, bool afresh) {
    segments_of(write).visit(write.offset, write.end(), [&](const Segment& segment, std::int64_t bytes) {
      for (const Touch& reader : segment.readers) {
        const bool storage = afresh || reader.buffer != write.buffer;
        add(reader, number, HazardKind::kWriteAfterRead, write, bytes, storage);
      }
      for (const Touch& writer : segment.writers) {
        const bool storage = afresh || writer.buffer != write.buffer;
        add(writer, number, HazardKind::kWriteAfterWrite, write, bytes, storage);
      }
    });
  }

  void add(const Touch& from, int to, HazardKind kind, const Access& access, std::int64_t bytes, bool storage) {
    if (from.kernel == to) return;
    Hazard hazard{from.kernel, to, kind, access.buffer, 0, true, storage};
    const auto place = found_.try_emplace({from.kernel, kind, access.buffer, storage}, hazard).first;
    place->second.bytes += bytes;
    place->second.exact = place->second.exact && from.exact && access.exact;
  }

  void note_read(int number, const Access& read) {
    segments_of(read).visit(read.offset, read.end(), [&](Segment& segment, std::int64_t) {
      note({number, read.buffer, read.exact}, segment.readers);
    });
  }

  void note_write(int number, const Access& write) {
    segments_of(write).visit(write.offset, write.end(), [&](Segment& segment, std::int64_t) {
      if (write.exact) {
        std::erase_if(segment.writers, [&](const Touch& touch) { return touch.kernel != number; });
        segment.readers.clear();
      }
      note({number, write.buffer, write.exact}, segment.writers);
    });
  }

  static void note(const Touch& touch, std::vector<Touch>& touches) {
    const bool known = std::ranges::any_of(
        touches, [&](const Touch& t) { return t.kernel == touch.kernel && t.buffer == touch.buffer; });
    if (!known) touches.push_back(touch);
  }

  using Key = std::tuple<int, HazardKind, int, bool>;  // from, kind, buffer, storage

  const KernelGraph& graph_;
  Storages storages_;
  std::vector<SegmentMap> segments_;  ///< by storage
  std::map<Key, Hazard> found_;       ///< of the kernel that is launched
  std::vector<Hazard> hazards_;
};

}  // namespace

std::vector<Hazard> hazards(const KernelGraph& graph, const Phase& phase) {
  HazardSweep sweep(graph);
  for (int kernel = phase.first; kernel < phase.first + phase.count; ++kernel) sweep.launch(kernel);
  return std::move(sweep).finished();
}

}  // namespace tangram::kernels
