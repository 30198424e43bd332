#include "blame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tangram/base/at.hpp"

namespace tangram::dispatch {

namespace {

class Blame {
 public:
  Blame(const Scene& scene, const Wrong& wrong) : scene_(scene), setting_(scene.setting), wrong_(wrong) {
    const Piece& first = setting_.pieces.piece(wrong.range.first);
    const kernels::Buffer& buffer = at(setting_.graph.buffers, wrong.range.buffer);
    found_.buffer = buffer.id;
    found_.offset = first.begin;
    found_.bytes = setting_.pieces.piece(wrong.range.last - 1).end - first.begin;
    found_.device = device(wrong.device);
    found_.kernel = wrong.reader >= 0 ? kernel(wrong.reader) : kernel(wrong.wanted);
    found_.from_device = wrong.wanted >= 0 ? device(device_of(wrong.wanted)) : found_.device;
    if (wrong.held >= 0) found_.other = kernel(wrong.held);
  }

  Finding run() && {
    if (wrong_.held > wrong_.wanted) {
      overwritten();
    } else if (wrong_.wanted == kFirst) {
      overwritten_by_copy();
    } else if (device_of(wrong_.wanted) == wrong_.device) {
      from_here();
    } else {
      from_elsewhere();
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] int device_of(RunNumber run) const {
    return at(setting_.device_of, at(setting_.reference.runs, run).kernel);
  }
  [[nodiscard]] const std::string& device(int number) const { return at(setting_.schedule.devices, number).name; }
  [[nodiscard]] const std::string& kernel(RunNumber run) const {
    return at(setting_.graph.kernels, at(setting_.reference.runs, run).kernel).id;
  }
  [[nodiscard]] std::string bytes() const {
    return fmt::format("bytes [{}, {}) of {} on {}", found_.offset, found_.offset + found_.bytes, found_.buffer,
                       found_.device);
  }
  [[nodiscard]] std::string left_by(RunNumber run) const {
    if (run == kNothing) return "nothing was ever put there";
    return run == kFirst ? "they are as at the beginning" : fmt::format("they are as {} left them", kernel(run));
  }

  void overwritten() {
    found_.fault = Fault::kOverwritten;
    if (wrong_.reader < 0) {
      found_.message = fmt::format("{} are in the end as {} left them, which does not wait for {}", bytes(),
                                   found_.other, found_.kernel);
      return;
    }
    found_.message = fmt::format("{} are overwritten by {} before {} reads them: it does not wait for that", bytes(),
                                 found_.other, found_.kernel);
  }

  /// The only way from what was there at the beginning to nothing.
  void overwritten_by_copy() {
    found_.fault = Fault::kOverwritten;
    found_.message =
        fmt::format("{} are overwritten before {} reads them: a copy brings them from where they never were", bytes(),
                    found_.kernel);
  }

  /// Written on the device itself.
  void from_here() {
    const std::string& writer = kernel(wrong_.wanted);
    if (at(scene_.has_run, wrong_.wanted) == 0) {
      found_.fault = Fault::kTooEarly;
      found_.message = fmt::format("{} reads {} before {} has written them: it does not wait for that", found_.kernel,
                                   bytes(), writer);
      return;
    }
    found_.fault = Fault::kOverwritten;
    const std::string reader = wrong_.reader < 0 ? "are left" : fmt::format("are read by {}", found_.kernel);
    found_.message = fmt::format("{} {} as {} wrote them, which should have run before {}", bytes(), reader,
                                 found_.other.empty() ? "a copy" : found_.other, writer);
  }

  void from_elsewhere() {
    const int copy = copy_that_brings();
    if (copy < 0) {
      const bool is_cache = at(setting_.graph.buffers, wrong_.range.buffer).kind == kernels::BufferKind::kKv;
      found_.fault = is_cache && wrong_.held != kNothing ? Fault::kStale : Fault::kNotCopied;
      found_.message = fmt::format("{} reads {}, which {} writes on {}: no copy brings them, {}", found_.kernel,
                                   bytes(), kernel(wrong_.wanted), found_.from_device, left_by(wrong_.held));
      return;
    }
    found_.fault = Fault::kTooEarly;
    const bool has_come = at(scene_.has_come, copy) != 0;
    found_.message = fmt::format("{} reads {}, which {} writes on {}: {}, {}", found_.kernel, bytes(),
                                 kernel(wrong_.wanted), found_.from_device,
                                 has_come ? fmt::format("copy {} was packed before that", copy)
                                          : fmt::format("it does not wait for copy {}", copy),
                                 left_by(wrong_.held));
  }

  [[nodiscard]] int copy_that_brings() const {
    const int from = device_of(wrong_.wanted);
    for (int c = 0; c < static_cast<int>(setting_.copies.size()); ++c) {
      const Copy& copy = at(setting_.schedule.copies, c);
      const bool covers = std::ranges::any_of(at(setting_.copies, c), [&](const PieceRange& range) {
        return range.first <= wrong_.range.first && wrong_.range.first < range.last;
      });
      if (copy.from == from && copy.to == wrong_.device && covers && sends(c)) return c;
    }
    return -1;
  }

  /// Whether a segment sends the copy behind the kernel that wrote what is wanted.
  [[nodiscard]] bool sends(int copy) const {
    for (const Segment& segment : setting_.schedule.segments) {
      if (std::ranges::find(segment.sends, copy) == segment.sends.end()) continue;
      if (std::ranges::find(segment.kernels, kernel(wrong_.wanted)) != segment.kernels.end()) return true;
    }
    return false;
  }

  const Scene& scene_;
  const Setting& setting_;
  const Wrong& wrong_;
  Finding found_;
};

}  // namespace

Finding blame(const Scene& scene, const Wrong& wrong) { return Blame(scene, wrong).run(); }

}  // namespace tangram::dispatch
