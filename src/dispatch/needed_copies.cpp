#include "needed_copies.hpp"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

namespace {

/// What a piece holds while a pass goes on.
struct Version {
  int writer = -1;  ///< kernel; -1: from before the pass
  int buffer = -1;
  std::set<int> devices;  ///< that have it
};

/// A message: one version of a buffer to one device.
struct Message {
  int reader = -1;
  std::set<int> pieces;
};
using Messages = std::map<std::tuple<int, int, int>, Message>;  // by writer, buffer, device

/// Devices that read a piece before the phase writes it, as which buffer, and whether the phase overwrites it.
struct Exposed {
  std::map<int, std::set<std::pair<int, int>>> readers;  // by piece: device and buffer
  std::set<int> overwritten;
};

class CopySearch {
 public:
  CopySearch(const kernels::KernelGraph& graph, const Pieces& pieces, std::span<const int> on)
      : graph_(graph), pieces_(pieces), on_(on) {
    for (const kernels::Kernel& kernel : graph.kernels) touches_.push_back(touches_of(kernel, pieces));
    for (const kernels::Phase& phase : graph.phases) exposed_.push_back(exposed_in(phase));
  }

  [[nodiscard]] std::vector<NeededCopy> of_phase(int number) const {
    const kernels::Phase& phase = at(graph_.phases, number);
    std::vector<Version> versions(static_cast<std::size_t>(pieces_.count()));
    Messages messages;
    for (int k = phase.first; k < phase.first + phase.count; ++k) {
      for (const PieceRange& read : at(touches_, k).reads) {
        for (int p = read.first; p < read.last; ++p) need(at(versions, p), p, read.buffer, at(on_, k), k, messages);
      }
      for (const PieceRange& write : at(touches_, k).writes) {
        for (int p = write.first; p < write.last; ++p) at(versions, p) = {k, write.buffer, {at(on_, k)}};
      }
    }
    need_later(number, versions, messages);
    return copies_of(messages);
  }

 private:
  static void need(Version& version, int piece, int buffer, int device, int reader, Messages& messages) {
    // What another buffer of the storage left is not what is read.
    if (version.writer < 0 || version.buffer != buffer || !version.devices.insert(device).second) return;
    Message& message = messages[{version.writer, buffer, device}];
    if (message.pieces.empty()) message.reader = reader;
    message.pieces.insert(piece);
  }

  [[nodiscard]] Exposed exposed_in(const kernels::Phase& phase) const {
    Exposed exposed;
    for (int k = phase.first; k < phase.first + phase.count; ++k) {
      for (const PieceRange& read : at(touches_, k).reads) {
        for (int p = read.first; p < read.last; ++p) {
          if (!exposed.overwritten.contains(p)) exposed.readers[p].insert({at(on_, k), read.buffer});
        }
      }
      for (const PieceRange& write : at(touches_, k).writes) {
        for (int p = write.first; p < write.last; ++p) exposed.overwritten.insert(p);
      }
    }
    return exposed;
  }

  /// What phases behind this one read of what it leaves; the last one is behind itself.
  void need_later(int number, std::vector<Version>& versions, Messages& messages) const {
    const int last = static_cast<int>(graph_.phases.size()) - 1;
    for (int p = 0; p < pieces_.count(); ++p) {
      Version& version = at(versions, p);
      if (version.writer < 0) continue;
      for (int g = number == last ? last : number + 1; g <= last; ++g) {
        const auto readers = at(exposed_, g).readers.find(p);
        if (readers != at(exposed_, g).readers.end()) {
          for (const auto& [device, buffer] : readers->second) need(version, p, buffer, device, -1, messages);
        }
        if (at(exposed_, g).overwritten.contains(p)) break;
      }
    }
  }

  [[nodiscard]] std::vector<NeededCopy> copies_of(const Messages& messages) const {
    std::vector<NeededCopy> copies;
    for (const auto& [key, message] : messages) {
      const auto [writer, buffer, device] = key;
      NeededCopy copy{buffer, {}, writer, at(on_, writer), device, message.reader};
      for (const int p : message.pieces) {
        if (copy.ranges.empty() || copy.ranges.back().last != p) copy.ranges.push_back({buffer, p, p});
        copy.ranges.back().last = p + 1;
      }
      copies.push_back(copy);
    }
    return copies;
  }

  const kernels::KernelGraph& graph_;
  const Pieces& pieces_;
  std::span<const int> on_;
  std::vector<Touches> touches_;  // by kernel
  std::vector<Exposed> exposed_;  // by phase
};

}  // namespace

std::vector<std::vector<NeededCopy>> needed_copies(const kernels::KernelGraph& graph, const Pieces& pieces,
                                                   std::span<const int> on) {
  const CopySearch search(graph, pieces, on);
  std::vector<std::vector<NeededCopy>> copies;
  for (int f = 0; f < static_cast<int>(graph.phases.size()); ++f) copies.push_back(search.of_phase(f));
  return copies;
}

}  // namespace tangram::dispatch
