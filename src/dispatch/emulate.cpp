#include "tangram/dispatch/emulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "blame.hpp"
#include "setting.hpp"
#include "tangram/base/at.hpp"

namespace tangram::dispatch {

namespace {

/// One timing.
class Timing {
 public:
  Timing(const Setting& setting, int number)
      : at_(setting),
        random_(setting.options.seed * 1'000'003 + static_cast<std::uint64_t>(number)),
        holds_(setting.first_holds),
        packed_(setting.copies.size()),
        has_run_(setting.reference.runs.size(), 0) {
    if (setting.has_code()) place_first_contents();
  }

  /// Adds to `result`; false: the end, with a finding.
  Expected<bool> run(Emulation& result) {
    for (const Pass& pass : at_.reference.passes) {
      has_come_.assign(at_.copies.size(), 0);
      const auto& steps = at(at_.steps, pass.phase);
      for (const int step : random_order(steps, random_)) {
        auto going = take(at(steps, step), pass, result);
        if (!going || !*going) return going;
      }
    }
    return !look_at_the_end(result);
  }

 private:
  /// One range of a copy, as it was packed.
  struct Packed {
    std::vector<RunNumber> holds;
    std::vector<std::uint8_t> bytes;  // with PTX
  };

  void place_first_contents() {
    for (const std::vector<RunNumber>& holds : holds_) {
      DeviceMemory& memory = memories_.emplace_back(at_.pieces);
      for (int p = 0; p < at_.pieces.count(); ++p) {
        if (at(holds, p) == kFirst) memory.place(at_.pieces.piece(p), at_.first_contents);
      }
    }
  }

  Expected<bool> take(const Step& step, const Pass& pass, Emulation& result) {
    const int device = at(at_.schedule.segments, step.segment).device;
    switch (step.kind) {
      case Step::Kind::kPack: pack(step.copy, device); return true;
      case Step::Kind::kUnpack: unpack(step.copy, device); return true;
      case Step::Kind::kKernel: return launch(at_.kernel_named.at(step.kernel), pass, device, result);
    }
    return true;
  }

  void pack(int copy, int device) {
    std::vector<Packed>& packed = at(packed_, copy);
    packed.clear();
    const std::vector<RunNumber>& holds = at(holds_, device);
    for (const PieceRange& range : at(at_.copies, copy)) {
      Packed& one = packed.emplace_back();
      one.holds.assign(holds.begin() + range.first, holds.begin() + range.last);
      if (at_.has_code()) one.bytes = at(memories_, device).read(range);
    }
  }

  void unpack(int copy, int device) {
    at(has_come_, copy) = 1;
    const std::vector<Packed>& packed = at(packed_, copy);
    for (std::size_t r = 0; r < packed.size(); ++r) {
      const PieceRange& range = at(at_.copies, copy)[r];
      std::ranges::copy(packed[r].holds, at(holds_, device).begin() + range.first);
      if (at_.has_code()) at(memories_, device).write(range, packed[r].bytes);
    }
  }

  Expected<bool> launch(int kernel, const Pass& pass, int device, Emulation& result) {
    const RunNumber number = pass.first + kernel - at(at_.graph.phases, pass.phase).first;
    const ReferenceRun& wanted = at(at_.reference.runs, number);
    const Touches& touches = at(at_.touches, kernel);
    for (std::size_t r = 0; r < touches.reads.size() && !at_.options.by_bytes_alone; ++r) {
      if (compare(number, device, touches.reads[r], wanted.reads[r], result)) return false;
    }
    ++result.kernels;
    at(has_run_, number) = 1;
    if (at_.has_code()) {
      auto done = at(memories_, device).run(*at_.options.code, kernel, at_.graph);
      if (!done) return fail(std::move(done.error()));
    }
    for (std::size_t w = 0; w < touches.writes.size(); ++w) {
      const PieceRange& write = touches.writes[w];
      std::fill(at(holds_, device).begin() + write.first, at(holds_, device).begin() + write.last, number);
      if (at_.has_code() && differs(number, device, write, wanted.writes[w], result)) return false;
    }
    return true;
  }

  /// True: the device does not hold what the reader wants.
  bool compare(RunNumber reader, int device, const PieceRange& range, const std::vector<RunNumber>& wanted,
               Emulation& result) {
    const auto& holds = at(holds_, device);
    for (int p = range.first; p < range.last; ++p) {
      const RunNumber want = at(wanted, p - range.first);
      if (want == kUnasked || at(holds, p) == want) continue;
      int last = p + 1;
      while (last < range.last && at(holds, last) == at(holds, p) && at(wanted, last - range.first) == want) ++last;
      found({reader, device, {range.buffer, p, last}, want, at(holds, p)}, result);
      return true;
    }
    return false;
  }

  void found(const Wrong& wrong, Emulation& result) const {
    result.finding = blame({at_, has_run_, has_come_}, wrong);
    result.finding->timing = result.timings + 1;
  }

  /// True: the kernel wrote other bytes than on one device.
  bool differs(RunNumber number, int device, const PieceRange& range, const std::vector<std::uint8_t>& wanted,
               Emulation& result) {
    const std::vector<std::uint8_t> bytes = at(memories_, device).read(range);
    result.bytes_compared += static_cast<std::int64_t>(bytes.size());
    const auto place = std::ranges::mismatch(bytes, wanted).in1;
    if (place == bytes.end()) return false;
    const std::int64_t offset = at_.pieces.piece(range.first).begin + (place - bytes.begin());
    Finding& finding = result.finding.emplace();
    finding.fault = Fault::kOtherBytes;
    finding.kernel = at(at_.graph.kernels, at(at_.reference.runs, number).kernel).id;
    finding.buffer = at(at_.graph.buffers, range.buffer).id;
    finding.offset = offset;
    finding.bytes = at_.pieces.piece(range.last - 1).end - offset;
    finding.device = finding.from_device = at(at_.schedule.devices, device).name;
    finding.timing = result.timings + 1;
    finding.message =
        fmt::format("{} writes other bytes to {} on {} than on one device, from byte {} on, and was given the same",
                    finding.kernel, finding.buffer, finding.device, offset);
    return true;
  }

  /// What each run left last is where it ran.
  bool look_at_the_end(Emulation& result) const {
    if (at_.options.by_bytes_alone) return false;
    for (int p = 0; p < at_.pieces.count(); ++p) {
      const RunNumber want = at(at_.reference.end, p);
      if (want < 0) continue;
      const int kernel = at(at_.reference.runs, want).kernel;
      const int device = at(at_.device_of, kernel);
      if (at(at(holds_, device), p) == want) continue;
      const auto& writes = at(at_.touches, kernel).writes;
      const auto write = std::ranges::find_if(writes, [&](const PieceRange& w) { return w.first <= p && p < w.last; });
      found({kNothing, device, {write->buffer, p, p + 1}, want, at(at(holds_, device), p)}, result);
      return true;
    }
    return false;
  }

  const Setting& at_;
  std::mt19937_64 random_;
  std::vector<std::vector<RunNumber>> holds_;  // by device and piece
  std::vector<DeviceMemory> memories_;         // with PTX
  std::vector<std::vector<Packed>> packed_;    // by copy and range
  std::vector<char> has_run_;
  std::vector<char> has_come_;
};

std::optional<Finding> deadlock(const Setting& setting) {
  for (const auto& steps : setting.steps) {
    const int step = deadlocked(steps);
    if (step < 0) continue;
    const Segment& segment = at(setting.schedule.segments, at(steps, step).segment);
    Finding finding;
    finding.fault = Fault::kDeadlock;
    finding.device = at(setting.schedule.devices, segment.device).name;
    if (!segment.kernels.empty()) finding.kernel = segment.kernels.front();
    finding.message =
        fmt::format("segment {} on {} waits for itself by way of others", at(steps, step).segment, finding.device);
    return finding;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::kNotCopied: return "not copied";
    case Fault::kStale: return "stale cache";
    case Fault::kTooEarly: return "too early";
    case Fault::kOverwritten: return "overwritten";
    case Fault::kDeadlock: return "deadlock";
    case Fault::kUnlisted: return "unlisted";
    case Fault::kOtherBytes: return "other bytes";
  }
  return "";
}

Expected<Emulation> emulate(const kernels::KernelGraph& graph, const Schedule& schedule,
                            const EmulationOptions& options) {
  const auto setting = set_up(graph, schedule, options);
  if (!setting) return fail(setting.error());
  Emulation result;
  result.finding = deadlock(*setting);
  if (!result.finding) result.finding = setting->reference.unlisted;
  while (!result.finding && result.timings < options.timings) {
    const auto done = Timing(*setting, result.timings).run(result);
    if (!done) return fail(done.error());
    ++result.timings;
  }
  return result;
}

}  // namespace tangram::dispatch
