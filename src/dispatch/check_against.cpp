#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tangram/base/at.hpp"
#include "tangram/base/problem.hpp"
#include "tangram/dispatch/emulate.hpp"

namespace tangram::dispatch {

namespace {

class Comparison {
 public:
  Comparison(const kernels::KernelGraph& graph, const Schedule& schedule, const std::string& file)
      : graph_(graph), schedule_(schedule), file_(file) {}

  Expected<void> run() {
    compare_phases();
    if (mistakes_.empty()) compare_kernels();
    for (int c = 0; c < static_cast<int>(schedule_.copies.size()); ++c) compare_copy(c);
    if (!mistakes_.empty()) return fail(std::move(mistakes_));
    return {};
  }

 private:
  void mistake(std::string code, std::string message, std::string pointer) {
    Diagnostic wrong = problem(ErrorKind::kInput, std::move(code), std::move(message),
                               "make the schedule of this graph with tangram disaggregate plan -o");
    wrong.where.file = file_;
    wrong.pointer = std::move(pointer);
    mistakes_.push_back(std::move(wrong));
  }

  void compare_phases() {
    const bool same = std::ranges::equal(schedule_.phases, graph_.phases, {}, &Phase::name, &kernels::Phase::name);
    if (!same) mistake("other-graph", "the phases are not those of the kernel graph", "/phases");
  }

  void compare_kernels() {
    std::map<std::string, int> phase_of;
    for (int f = 0; f < static_cast<int>(graph_.phases.size()); ++f) {
      const kernels::Phase& phase = at(graph_.phases, f);
      for (int k = phase.first; k < phase.first + phase.count; ++k) phase_of[at(graph_.kernels, k).id] = f;
    }
    std::set<std::string> placed;
    for (std::size_t s = 0; s < schedule_.segments.size(); ++s) {
      const Segment& segment = schedule_.segments[s];
      for (const std::string& name : segment.kernels) {
        const auto found = phase_of.find(name);
        const std::string pointer = fmt::format("/segments/{}/kernels", s);
        if (found == phase_of.end()) {
          mistake("unknown-kernel", fmt::format("the kernel graph has no kernel \"{}\"", name), pointer);
        } else if (found->second != segment.phase) {
          mistake("other-phase", fmt::format("\"{}\" is a kernel of {}", name, at(graph_.phases, found->second).name),
                  pointer);
        } else if (!placed.insert(name).second) {
          mistake("duplicate-kernel", fmt::format("\"{}\" runs twice", name), pointer);
        }
      }
    }
    for (const kernels::Kernel& kernel : graph_.kernels) {
      if (placed.contains(kernel.id)) continue;
      mistake("missing-kernel", fmt::format("kernel \"{}\" of the graph runs nowhere", kernel.id), "/segments");
    }
  }

  void compare_copy(int number) {
    const Copy& copy = at(schedule_.copies, number);
    const auto buffer = std::ranges::find(graph_.buffers, copy.buffer, &kernels::Buffer::id);
    const std::string pointer = fmt::format("/copies/{}/buffer", number);
    if (buffer == graph_.buffers.end()) {
      mistake("unknown-buffer", fmt::format("the kernel graph has no buffer \"{}\"", copy.buffer), pointer);
      return;
    }
    for (const ByteRange& range : copy.ranges) {
      const std::int64_t end = range.offset + range.bytes;
      if (end <= buffer->bytes.value()) continue;
      mistake(
          "out-of-range",
          fmt::format("bytes {} to {} of \"{}\", which has {}", range.offset, end, copy.buffer, buffer->bytes.value()),
          fmt::format("/copies/{}/ranges", number));
    }
  }

  const kernels::KernelGraph& graph_;
  const Schedule& schedule_;
  const std::string& file_;
  Diagnostics mistakes_;
};

}  // namespace

Expected<void> check_against(const kernels::KernelGraph& graph, const Schedule& schedule, const std::string& file) {
  return Comparison(graph, schedule, file).run();
}

}  // namespace tangram::dispatch
