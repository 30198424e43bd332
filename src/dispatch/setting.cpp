#include "setting.hpp"

#include <algorithm>
#include <utility>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

namespace {

std::vector<kernels::Access> copied(const kernels::KernelGraph& graph, const Schedule& schedule) {
  std::vector<kernels::Access> accesses;
  for (const Copy& copy : schedule.copies) {
    const auto buffer = std::ranges::find(graph.buffers, copy.buffer, &kernels::Buffer::id);
    const int number = static_cast<int>(buffer - graph.buffers.begin());
    for (const ByteRange& range : copy.ranges) accesses.push_back({number, range.offset, range.bytes, true});
  }
  return accesses;
}

/// What kernels of a device touch, it has as at the beginning: whole storages.
std::vector<std::vector<RunNumber>> held_at_first(const Setting& setting) {
  const std::vector<RunNumber> none(static_cast<std::size_t>(setting.pieces.count()), kNothing);
  std::vector<std::vector<RunNumber>> holds(setting.schedule.devices.size(), none);
  for (int k = 0; k < setting.graph.kernel_count(); ++k) {
    std::vector<RunNumber>& held = at(holds, at(setting.device_of, k));
    for (const auto* ranges : {&at(setting.touches, k).reads, &at(setting.touches, k).writes}) {
      for (const PieceRange& range : *ranges) {
        const PieceRange whole = setting.pieces.storage_around(range.buffer);
        std::fill(held.begin() + whole.first, held.begin() + whole.last, kFirst);
      }
    }
  }
  return holds;
}

}  // namespace

Expected<Setting> set_up(const kernels::KernelGraph& graph, const Schedule& schedule, const EmulationOptions& options) {
  const auto accesses = copied(graph, schedule);
  Setting setting{graph, schedule, options, Pieces(graph, accesses), {}, {}, {}, {}, {}, {}, {}, {}};
  auto next = accesses.begin();
  for (const Copy& copy : schedule.copies) {
    auto& ranges = setting.copies.emplace_back();
    for (std::size_t r = 0; r < copy.ranges.size(); ++r, ++next) {
      ranges.push_back(setting.pieces.range(next->buffer, next->offset, next->end()));
    }
  }
  for (int k = 0; k < graph.kernel_count(); ++k) {
    setting.kernel_named.emplace(at(graph.kernels, k).id, k);
    setting.touches.push_back(touches_of(at(graph.kernels, k), setting.pieces));
  }
  setting.device_of.assign(graph.kernels.size(), 0);
  for (const Segment& segment : schedule.segments) {
    for (const std::string& name : segment.kernels) {
      at(setting.device_of, setting.kernel_named.at(name)) = segment.device;
    }
  }
  for (int f = 0; f < static_cast<int>(graph.phases.size()); ++f) setting.steps.push_back(steps_of(schedule, f));
  setting.first_holds = held_at_first(setting);
  if (options.code != nullptr) {
    setting.first_contents = contents_at_first(graph, setting.pieces, *options.code, options.seed);
  }
  auto reference = run_reference(graph, setting.pieces, setting.touches, setting.first_contents, options);
  if (!reference) return fail(std::move(reference.error()));
  setting.reference = *std::move(reference);
  return setting;
}

}  // namespace tangram::dispatch
